// Asks the server for one answer and writes it into a node of the conversation as it comes. Knows
// nothing of how it is shown.
//
// An answer's node: status "streaming", "done", "stopped" (by the reader), "cut" (the stream ended
// without [DONE]) or "error"; model, finish, error {message, status, ...}, warnings, timings (the
// server's), usage, ttft_ms and total_ms (as seen here), reasoning (where the server sends it apart).
import { ApiError, streamJson } from "./api.js";
import { chatMessages, completionPrompt } from "./conversation.js";
import { samplingFields } from "./sampling.js";

function requestOf(conversation, node, isBase) {
  const common = { model: node.model, stream: true, stream_options: { include_usage: true },
                   ...samplingFields(conversation.settings) };
  return isBase
    ? ["v1/completions", { ...common, prompt: completionPrompt(conversation, node.parent) }]
    : ["v1/chat/completions", { ...common, messages: chatMessages(conversation, node.parent) }];
}

function take(node, chunk) {
  if (chunk.usage) node.usage = chunk.usage;
  if (chunk.timings) node.timings = chunk.timings;
  if (chunk.warnings?.length) node.warnings = chunk.warnings;
  if (chunk.model) node.model = chunk.model;
  const choice = chunk.choices?.[0];
  if (!choice) return false;
  const text = choice.delta?.content ?? choice.text ?? "";
  const reasoning = choice.delta?.reasoning_content ?? "";
  if (choice.finish_reason) node.finish = choice.finish_reason;
  node.text += text;
  if (reasoning) node.reasoning = (node.reasoning ?? "") + reasoning;
  return text !== "" || reasoning !== "";
}

/// Runs until the answer ends, however it does; never throws. `onChange` is called after each piece.
export async function writeAnswer({ conversation, node, isBase, signal, onChange }) {
  const begin = performance.now();
  Object.assign(node, { status: "streaming", text: "", isBase });
  try {
    const [path, body] = requestOf(conversation, node, isBase);
    const stream = streamJson(path, body, signal);
    for (;;) {
      const { value, done } = await stream.next();
      if (done) {
        node.status = value ? "done" : "cut";
        break;
      }
      if (take(node, value) && node.ttft_ms === undefined) node.ttft_ms = performance.now() - begin;
      onChange();
    }
  } catch (error) {
    if (error.name === "AbortError") {
      node.status = "stopped";
    } else {
      node.status = "error";
      const { message, status, type, code, param, retryAfter } = error;
      node.error = error instanceof ApiError ? { message, status, type, code, param, retryAfter } : { message };
    }
  }
  node.total_ms = performance.now() - begin;
  conversation.updated = Date.now();
  onChange();
}
