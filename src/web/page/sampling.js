// The sampling parameters that the page offers: names as in the API, ranges, words. Pure data.

/// `step` "any" but for whole numbers. `fallback`: shown where the server does not say its default.
export const kSampling = [
  { name: "temperature", label: "Temperature", min: 0, max: 2, step: 0.05, fallback: "1",
    hint: "0 always takes the likeliest token; higher is more varied." },
  { name: "top_p", label: "Top-p", min: 0, max: 1, step: 0.01, fallback: "1",
    hint: "The likeliest tokens that together have this probability." },
  { name: "top_k", label: "Top-k", min: 0, max: 1000, step: 1, fallback: "off",
    hint: "As many of the likeliest tokens; 0 is all." },
  { name: "min_p", label: "Min-p", min: 0, max: 1, step: 0.01, fallback: "0",
    hint: "Tokens at least this likely, relative to the likeliest." },
  { name: "max_tokens", label: "Max tokens", min: 1, max: 1000000, step: 1, fallback: "no limit",
    hint: "The longest answer." },
  { name: "seed", label: "Seed", min: 0, max: Number.MAX_SAFE_INTEGER, step: 1, fallback: "random",
    hint: "The same seed gives the same answer." },
];

/// The fields of a request: only what was set.
export function samplingFields(settings) {
  const fields = {};
  for (const { name } of kSampling) {
    if (Number.isFinite(settings[name])) fields[name] = settings[name];
  }
  return fields;
}

/// What is wrong with the text of a field, or "".
export function faultOf(parameter, text) {
  if (text.trim() === "") return "";
  const value = Number(text);
  if (!Number.isFinite(value)) return "Not a number";
  if (parameter.step === 1 && !Number.isInteger(value)) return "A whole number";
  if (value < parameter.min || value > parameter.max) return `${parameter.min} to ${parameter.max}`;
  return "";
}
