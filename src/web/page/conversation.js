// A conversation is a tree of messages: an edit or a retry begins a branch, nothing is lost. Pure data
// and functions on it; what is stored and exported is this object as it is.
//
// {id, title, named, created, updated, model, settings, nodes: {id: node}, chosen: {parent: child}}
// node: {id, parent, role, text, time} and for answers status and more (answer.js)

export const kRoot = "root";

export const newNodeId = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");
};

export function newConversation(model, settings) {
  const now = Date.now();
  return { format: 1, id: newNodeId(), title: "", named: false, created: now, updated: now, model,
           settings: { ...settings }, nodes: {}, chosen: {} };
}

/// The children of a node in the order they came.
export function childrenOf(conversation, parent) {
  return Object.values(conversation.nodes)
    .filter((node) => node.parent === parent)
    .sort((a, b) => a.time - b.time || (a.id < b.id ? -1 : 1));
}

/// The messages that show: from the root, at each fork the branch that was chosen or came last.
export function pathOf(conversation) {
  const path = [];
  for (let at = kRoot; ;) {
    const children = childrenOf(conversation, at);
    if (children.length === 0) return path;
    const node = children.find((child) => child.id === conversation.chosen[at]) ?? children.at(-1);
    path.push(node);
    at = node.id;
  }
}

/// The messages from the root up to and with `id`.
export function ancestry(conversation, id) {
  const path = [];
  for (let node = conversation.nodes[id]; node; node = conversation.nodes[node.parent]) path.unshift(node);
  return path;
}

/// Adds a message below `parent` and makes it the branch that shows.
export function addNode(conversation, parent, fields) {
  const last = childrenOf(conversation, parent).at(-1);
  const node = { id: newNodeId(), parent, time: Math.max(Date.now(), (last?.time ?? 0) + 1), text: "", ...fields };
  conversation.nodes[node.id] = node;
  conversation.chosen[parent] = node.id;
  conversation.updated = Date.now();
  if (!conversation.named && parent === kRoot && node.role === "user") conversation.title = titleOf(node.text);
  return node;
}

/// Where a node stands among its siblings: {index, siblings}.
export function branchOf(conversation, node) {
  const siblings = childrenOf(conversation, node.parent);
  return { index: siblings.findIndex((other) => other.id === node.id), siblings };
}

export function titleOf(text) {
  const line = text.trim().split("\n")[0].trim();
  return line.length > 60 ? `${line.slice(0, 59).trimEnd()}…` : line;
}

/// What /v1/chat/completions gets for an answer to `id`. Answers without text are left out, and
/// messages of one role that then follow each other become one: many templates want turns.
export function chatMessages(conversation, id) {
  const messages = [];
  const system = (conversation.settings.system ?? "").trim();
  if (system) messages.push({ role: "system", content: system });
  for (const { role, text } of ancestry(conversation, id)) {
    const last = messages.at(-1);
    if (!text) continue;
    if (last?.role === role) last.content += `\n\n${text}`;
    else messages.push({ role, content: text });
  }
  return messages;
}

/// What /v1/completions gets: all text up to and with `id`, for a base model to go on with.
export const completionPrompt = (conversation, id) =>
  ancestry(conversation, id).map((node) => node.text).join("");

/// After a reload nothing is being written any more: what was is marked as cut.
export function settle(conversation) {
  for (const node of Object.values(conversation.nodes)) {
    if (node.status === "streaming") node.status = "cut";
  }
  return conversation;
}
