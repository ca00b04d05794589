// A conversation from a file that "Export JSON" made, or that somebody wrote: nothing of it is taken
// over unless it is what it must be. Pure functions; knows nothing of how it is kept or shown.
import { kRoot, newConversation, newNodeId, titleOf } from "./conversation.js";
import { faultOf, kSampling } from "./sampling.js";

export const kMaxFileBytes = 16 << 20;
const kMaxNodes = 5000;
const kMaxTitle = 200;
const kMaxWarnings = 100;
const kEndings = ["done", "stopped", "cut", "error"];

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const textOr = (value, otherwise) => (typeof value === "string" ? value : otherwise);
const timeOr = (value, otherwise) => (Number.isFinite(value) && value >= 0 ? value : otherwise);

/// The members of `from` called `names` that `holds` holds of.
function pick(from, names, holds) {
  if (!isObject(from)) return {};
  return Object.fromEntries(names.filter((name) => holds(from[name])).map((name) => [name, from[name]]));
}

function settingsOf(from) {
  const out = pick(from, ["system"], (value) => typeof value === "string");
  for (const parameter of kSampling) {
    const value = from?.[parameter.name];
    if (Number.isFinite(value) && faultOf(parameter, String(value)) === "") out[parameter.name] = value;
  }
  return out;
}

/// What an answer has besides its text (answer.js).
function answerFields(from) {
  const numbers = (object, names) => pick(object, names, (value) => Number.isFinite(value));
  const strings = (object, names) => pick(object, names, (value) => typeof value === "string");
  const out = { status: kEndings.includes(from.status) ? from.status : "cut", isBase: from.isBase === true,
                ...strings(from, ["model", "finish", "reasoning"]), ...numbers(from, ["ttft_ms", "total_ms"]) };
  if (isObject(from.error)) {
    out.error = { ...strings(from.error, ["message", "type", "code", "param"]), ...numbers(from.error, ["status"]) };
  }
  if (Array.isArray(from.warnings)) {
    out.warnings = from.warnings.filter((each) => typeof each === "string").slice(0, kMaxWarnings);
  }
  if (isObject(from.timings)) {
    out.timings = numbers(from.timings, ["queue_ms", "tokenize_ms", "prompt_n", "prompt_ms", "cache_n", "predicted_n",
                                         "predicted_ms", "predicted_per_second"]);
  }
  if (isObject(from.usage)) {
    const details = numbers(from.usage.prompt_tokens_details, ["cached_tokens"]);
    out.usage = { ...numbers(from.usage, ["prompt_tokens", "completion_tokens"]), prompt_tokens_details: details };
  }
  return out;
}

function checkNode(node, id) {
  if (!isObject(node) || node.id !== id || typeof node.parent !== "string" || typeof node.text !== "string"
      || !["user", "assistant"].includes(node.role)) {
    throw new Error("The file has a message that is none, so nothing of it was imported.");
  }
}

/// Takes the messages over from the root on, each with an id of its own.
function takeNodes(from, conversation) {
  const entries = Object.entries(from.nodes);
  if (entries.length > kMaxNodes) throw new Error(`The file has more than ${kMaxNodes} messages.`);
  const children = new Map();
  for (const [id, node] of entries) {
    checkNode(node, id);
    if (!children.has(node.parent)) children.set(node.parent, []);
    children.get(node.parent).push(node);
  }
  const ids = new Map([[kRoot, kRoot]]);
  const waiting = [kRoot];
  for (let parent = waiting.pop(); parent !== undefined; parent = waiting.pop()) {
    for (const node of children.get(parent) ?? []) {
      if (ids.has(node.id)) continue;  // one that is called as the root is
      const id = newNodeId();
      ids.set(node.id, id);
      waiting.push(node.id);
      conversation.nodes[id] = { id, parent: ids.get(parent), role: node.role, text: node.text, time: timeOr(node.time, 0),
                                 ...(node.role === "assistant" ? answerFields(node) : {}) };
    }
  }
  if (ids.size !== entries.length + 1) {
    throw new Error("The file has messages that belong to no conversation, so nothing of it was imported.");
  }
  for (const [parent, child] of Object.entries(isObject(from.chosen) ? from.chosen : {})) {
    const chosen = conversation.nodes[ids.get(child)];
    if (chosen && chosen.parent === ids.get(parent)) conversation.chosen[chosen.parent] = chosen.id;
  }
}

/// The conversation that the text of a file is, with ids of its own; it counts as changed now. Throws an
/// Error whose message is for the reader.
export function importedConversation(text) {
  let from;
  try {
    from = JSON.parse(text);
  } catch {
    throw new Error("The file is not JSON.");
  }
  if (!isObject(from) || !isObject(from.nodes)) throw new Error("The file is no conversation that this page exported.");
  if (from.format !== 1) throw new Error("The file was exported by another version of this page.");
  const conversation = newConversation(textOr(from.model, ""), settingsOf(from.settings));
  takeNodes(from, conversation);
  if (Object.keys(conversation.nodes).length === 0) throw new Error("The file has no messages.");
  conversation.title = titleOf(textOr(from.title, "").slice(0, kMaxTitle)) || "Imported chat";
  conversation.named = from.named === true;
  conversation.created = timeOr(from.created, conversation.created);
  return conversation;
}
