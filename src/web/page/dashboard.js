// The dashboard: asks for the figures once a second, keeps those of the last minutes, shows them.
import { getJson } from "./api.js";
import { byId, h, themeButton } from "./dom.js";
import { count, duration, percent, plural, rate } from "./format.js";
import { perBucket, quantile, since, totalOf } from "./histogram.js";
import { askForKey } from "./key_dialog.js";
import { decodeMap, drawMap } from "./kv_map.js";
import { HistogramPlot, RatePlot, colour } from "./plots.js";
import { recall, remember } from "./store.js";

const kPollMs = 1000;
const kKeepMs = 300000;   // of history
const kSmoothMs = 3000;   // a rate is over so long
const kWindows = [[60000, "1\u00a0min"], [300000, "5\u00a0min"], [Infinity, "All"]];

const kRungs = {
  evict_prefixes: "Cached prefixes written over", drop_caches: "Other caches emptied (there are none)", stop_admitting: "Requests kept waiting",
  shrink_chunks: "Prompts in smaller pieces", lower_batch: "Fewer at once", preempt: "Requests begun again",
  lighter_model: "Answered by a lighter model", fail_request: "Requests failed",
};

let samples = [];       // {time, uptime, models: Map of name to figures}
let chosen = recall("dashboardModel", "");
let windowMs = 300000;
let lastAnswer = 0;
let isAsking = false;   // for the key
const plots = {};

// Figures

const latest = () => samples.at(-1);
const figures = (sample) => sample?.models.get(chosen);

/// The newest sample that is at least `ms` older than the last one, or the oldest.
function sampleBefore(ms, from = samples.length - 1) {
  const time = samples[from].time - ms;
  for (let i = from; i > 0; --i) {
    if (samples[i - 1].time < time || i === 1) return samples[i - 1];
  }
  return null;
}

function rateAt(index, name) {
  const now = samples[index];
  const before = sampleBefore(kSmoothMs, index);
  const a = before && figures(before);
  const b = figures(now);
  if (!a || !b || now.time <= before.time) return NaN;
  return Math.max(0, (b[name] - a[name]) * 1000 / (now.time - before.time));
}

function inWindow(name) {
  const model = figures(latest());
  const before = windowMs === Infinity ? null : figures(sampleBefore(windowMs));
  return since(model[name], before?.[name]);
}

function hitRate(model) {
  const before = windowMs === Infinity ? null : figures(sampleBefore(windowMs));
  const asked = model.prefix_query_tokens - (before?.prefix_query_tokens ?? 0);
  return asked > 0 ? (model.prefix_hit_tokens - (before?.prefix_hit_tokens ?? 0)) / asked : NaN;
}

// Showing

function setTile(id, label, value, detail) {
  const tile = byId(`tile-${id}`) ?? byId("tiles").appendChild(
    h("div", { class: "tile", id: `tile-${id}` }, h("span", { class: "tile-label" }), h("strong"), h("span", { class: "tile-detail" })));
  [label, value, detail].forEach((text, i) => {
    if (tile.children[i].textContent !== text) tile.children[i].textContent = text;
  });
}

function showTiles(model) {
  const last = samples.length - 1;
  const paused = model.paused > 0 ? `, ${count(model.paused)} paused` : "";
  setTile("running", "Running", count(model.running), `of ${count(model.batch_limit)}${paused}`);
  setTile("waiting", "Waiting", count(model.waiting), plural(model.waiting_tokens, "token"));
  const speed = rateAt(last, "generated_tokens");
  const { bound } = model;
  const ofBound = (now, most) => (most > 0 && Number.isFinite(now) ? `tokens/s, ${percent(now / most)} of the bound` : "tokens/s");
  setTile("generated", "Generated", rate(speed), ofBound(speed, bound?.decode_tokens_per_second));
  const computed = rateAt(last, "computed_prompt_tokens");
  setTile("prompt", "Prompts computed", rate(computed), ofBound(computed, bound?.prefill_tokens_per_second));
  setTile("prefix", "Prefix hits", percent(hitRate(model)), `of prompt tokens, ${windowName()}`);
  setTile("kv", "KV cache", percent(model.kv.usage), `slots ${percent(model.kv.token_slot_utilisation)} full`);
}

const windowName = () => (windowMs === Infinity ? "since the start" : `last ${kWindows.find(([ms]) => ms === windowMs)[1]}`);

function pointsOf(name) {
  const end = latest().time;
  return samples.map((sample, i) => ({ x: (sample.time - end) / 1000, y: rateAt(i, name) })).filter(({ y }) => Number.isFinite(y));
}

function showThroughput(model) {
  const decode = model.bound?.decode_tokens_per_second;
  const prefill = model.bound?.prefill_tokens_per_second;
  plots.generated.set(pointsOf("generated_tokens"), decode);
  plots.prompt.set(pointsOf("computed_prompt_tokens"), prefill);
  const shares = [
    decode > 0 && `bounds now (dashed): generating ${rate(decode)} tokens/s`,
    prefill > 0 && `prompts ${rate(prefill)} tokens/s`,
    model.bound?.fraction_of_bandwidth > 0 && `decoding uses ${percent(model.bound.fraction_of_bandwidth)} of the memory bandwidth`,
  ].filter(Boolean);
  byId("throughput-note").textContent = shares.join(", ") || "last five minutes";
}

function showHistogram(name, field, what) {
  const histogram = inWindow(field);
  const total = totalOf(histogram);
  const shown = [[.5, "p50"], [.95, "p95"], [.99, "p99"]].map(([q, label]) => [label, duration(quantile(histogram, q) * 1000)]);
  byId(`${name}-figures`).replaceChildren(
    ...shown.map(([label, value]) => h("span", {}, h("span", { class: "q", text: label }), value)));
  byId(`${name}-total`).textContent = plural(total, what);
  const summary = total > 0 ? shown.map(([label, value]) => `${label} ${value}`).join(", ") : "nothing yet";
  plots[name].set(histogram.le, perBucket(histogram), `${summary}, ${windowName()}`);
}

function showKv({ kv }) {
  const box = byId("kv-groups");
  const colours = ["kv-free", "kv-cached", "kv-held"].map(colour);
  if (box.children.length !== kv.groups.length) {
    box.replaceChildren(...kv.groups.map(() => h("div", { class: "kv-group" }, h("p"), h("div", {}, h("canvas", { role: "img" })))));
  }
  kv.groups.forEach((group, i) => {
    const title = group.window > 0 ? `Layers with a window of ${count(group.window)} tokens` : "Layers that see everything";
    const free = group.num_blocks - group.held - group.cached;
    const text = `${count(group.num_blocks)} blocks of ${count(group.block_tokens)} tokens: ${count(group.held)} held, ${count(group.cached)} cached, ${count(free)} free`;
    const [caption, frame] = box.children[i].children;
    caption.textContent = kv.groups.length > 1 ? `${title}. ${text}` : text;
    frame.firstChild.setAttribute("aria-label", `Map of ${text}`);
    drawMap(frame.firstChild, decodeMap(group.map, group.num_blocks), colours);
  });
  byId("kv-note").textContent = `${percent(kv.usage)} in use`;
}

function showLadder(model) {
  const before = figures(sampleBefore(10000))?.rungs ?? {};
  const names = [...new Set([...Object.keys(kRungs), ...Object.keys(model.rungs)])].filter((name) => name in model.rungs);
  byId("ladder").replaceChildren(...names.map((name) => {
    const n = model.rungs[name];
    const state = n > (before[name] ?? n) ? "now" : n > 0 ? "" : "never";
    return h("li", { class: state }, h("span", { text: kRungs[name] ?? name }), h("strong", { text: count(n) }));
  }));
}

function showTotals(model, sample) {
  const rows = [["Prompt tokens", model.prompt_tokens], ["Generated tokens", model.generated_tokens], ["Steps", model.steps],
                ["Prompt tokens found in the prefix cache", model.prefix_hit_tokens],
                ["Requests cancelled", model.cancelled], ["Requests failed", model.errors]];
  byId("totals").replaceChildren(...rows.map(([name, n]) => h("div", {}, h("dt", { text: name }), h("dd", { text: count(n) }))));
  byId("uptime").textContent = `up ${duration(sample.uptime * 1000)}, version ${sample.version}`;
}

function showModels() {
  const names = [...latest().models.keys()];
  const select = byId("model");
  if (!names.includes(chosen)) chosen = names[0] ?? "";
  if ([...select.options].map((option) => option.value).join("\n") !== names.join("\n") || select.disabled) {
    select.replaceChildren(...names.map((name) => h("option", { value: name, text: name })));
    select.disabled = names.length === 0;
  }
  select.value = chosen;
}

function render() {
  if (!latest()) return;
  showModels();
  const model = figures(latest());
  if (!model) return;
  showTiles(model);
  showThroughput(model);
  showKv(model);
  showHistogram("ttft", "ttft_seconds", "answer");
  showHistogram("itl", "itl_seconds", "gap");
  showHistogram("step", "step_seconds", "step");
  showLadder(model);
  showTotals(model, latest());
}

// Asking

function take(data) {
  const last = latest();
  if (last && (data.uptime_s < last.uptime || data.now_ms < last.time)) samples = [];  // the server began anew
  if (last && data.now_ms === last.time) return;
  samples.push({ time: data.now_ms, uptime: data.uptime_s, version: data.version,
                 models: new Map(data.models.map((model) => [model.name, model])) });
  samples = samples.filter(({ time }) => time >= data.now_ms - kKeepMs - kSmoothMs);
}

function showLive(error) {
  const live = byId("live");
  const text = !error ? "Live" : lastAnswer ? `No figures for ${duration(Date.now() - lastAnswer)}` : "No figures";
  if (live.textContent !== text) live.textContent = text;
  live.classList.toggle("off", Boolean(error));
  byId("fault").hidden = !error;
  if (!error) return;
  byId("fault-text").textContent = error.message;
  byId("fault-key").hidden = error.status !== 401;
}

async function enterKey(message) {
  isAsking = true;
  await askForKey(message);
  isAsking = false;
}

async function poll() {
  if (!document.hidden && !isAsking) {
    try {
      take(await getJson("dashboard/data", AbortSignal.timeout(5000)));
      lastAnswer = Date.now();
      showLive(null);
      render();
    } catch (error) {
      const isLate = error.name === "TimeoutError" || error.name === "AbortError";
      if (error.status === 401 && byId("fault").hidden) enterKey(error.message);
      showLive(isLate ? { message: "The server does not answer." } : error);
    }
  }
  setTimeout(poll, kPollMs);
}

function showWindows() {
  byId("windows").replaceChildren(...kWindows.map(([ms, label]) =>
    h("button", { type: "button", text: label, "aria-pressed": String(ms === windowMs),
                  on: { click: () => { windowMs = ms; showWindows(); render(); } } })));
}

function start() {
  plots.generated = new RatePlot(byId("generated-plot"), "Generated tokens", "series-decode");
  plots.prompt = new RatePlot(byId("prompt-plot"), "Prompt tokens", "series-prefill");
  plots.ttft = new HistogramPlot(byId("ttft-plot"), "Time to first token", "series-prefill");
  plots.itl = new HistogramPlot(byId("itl-plot"), "Time between tokens", "series-decode");
  plots.step = new HistogramPlot(byId("step-plot"), "Time of a step", "series-step");
  const retint = () => {
    Object.values(plots).forEach((plot) => plot.retint());
    render();
  };
  themeButton(byId("theme-button"), retint);
  showWindows();
  byId("fault-key").addEventListener("click", () => enterKey());
  byId("model").addEventListener("change", (event) => {
    chosen = event.target.value;
    remember("dashboardModel", chosen);
    render();
  });
  addEventListener("resize", () => latest() && showKv(figures(latest())));
  poll();
}

start();
