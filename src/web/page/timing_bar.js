// The read-out below an answer: tokens, speed, time to the first token, and a bar of where the time went.
import { h } from "./dom.js";
import { count, duration, plural, rate } from "./format.js";

/// The phases of an answer in milliseconds, of the server's `timings`.
export function phasesOf(timings) {
  return [
    { name: "queue", label: "Queue", ms: (timings.queue_ms ?? 0) + (timings.tokenize_ms ?? 0) },
    { name: "prefill", label: "Prefill", ms: timings.prompt_ms ?? 0 },
    { name: "decode", label: "Decode", ms: timings.predicted_ms ?? 0 },
  ];
}

function factsOf({ timings = {}, usage, ttft_ms: ttft }) {
  const facts = [];
  const add = (name, text, title) => facts.push(h("span", { class: "fact", "data-fact": name, title, text }));
  const cached = timings.cache_n ?? usage?.prompt_tokens_details?.cached_tokens;
  const prompt = usage?.prompt_tokens ?? (timings.prompt_n ?? NaN) + (cached ?? 0);
  const written = usage?.completion_tokens ?? timings.predicted_n;
  if (Number.isFinite(timings.predicted_per_second) && timings.predicted_per_second > 0) {
    add("speed", `${rate(timings.predicted_per_second)} tokens/s`, "Speed of writing");
  }
  if (Number.isFinite(written)) add("written", plural(written, "token"), "Length of the answer");
  if (Number.isFinite(ttft)) add("ttft", `first after ${duration(ttft)}`, "Time to the first token, as seen here");
  if (Number.isFinite(prompt)) {
    const text = cached > 0 ? `${count(prompt)} prompt, ${count(cached)} cached` : `${count(prompt)} prompt`;
    add("prompt", text, "Tokens of the prompt, and how many of them were in the prefix cache");
  }
  return facts;
}

function barOf(timings) {
  const phases = phasesOf(timings);
  const total = phases.reduce((sum, phase) => sum + phase.ms, 0);
  if (!(total > 0)) return null;
  const label = phases.map(({ label: name, ms }) => `${name.toLowerCase()} ${duration(ms)}`).join(", ");
  const strip = h("span", { class: "bar-strip" });
  const legend = h("span", { class: "bar-legend", "aria-hidden": "true" });
  for (const { name, label: text, ms } of phases) {
    const part = h("span", { class: `part ${name}` });
    part.style.flexGrow = String(ms / total);
    strip.append(part);
    legend.append(h("span", {}, h("i", { class: name }), `${text.toLowerCase()} ${duration(ms)}`));
  }
  return h("span", { class: "timing-bar", role: "img", "aria-label": `Latency: ${label}` }, strip, legend);
}

/// The read-out of an answer's node, or null where the server said nothing.
export function timingReadout(node) {
  const facts = factsOf(node);
  const bar = node.timings ? barOf(node.timings) : null;
  if (facts.length === 0 && !bar) return null;
  const model = node.model ? [h("span", { class: "fact", "data-fact": "model", text: node.model })] : [];
  return h("div", { class: "readout" }, h("div", { class: "facts" }, model, facts), bar);
}
