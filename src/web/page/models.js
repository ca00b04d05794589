// What the server's models are and can do. Owns the list and what /props says of each.
import { getJson } from "./api.js";

let names = [];
const about = new Map();  // name -> {isBase, contextTokens, sampling}

/// The names in the server's order. Throws ApiError.
export async function loadModels() {
  const list = await getJson("v1/models");
  names = (list.data ?? []).map((model) => model.id);
  return names;
}

export const modelNames = () => names;

/// The model that a conversation's choice stands for now: itself, or the first there is.
export const modelOr = (name) => (names.includes(name) ? name : names[0] ?? "");

/// What the page must know of a model; asked once. `isBase`: it has no chat template and only goes on
/// with a text. `contextTokens`: 0 where the server does not say. `sampling`: its defaults. Where the
/// server does not answer, a model counts as one to chat with.
export async function aboutModel(name) {
  if (about.has(name)) return about.get(name);
  let props;
  try {
    props = await getJson(`props?model=${encodeURIComponent(name)}`);
  } catch {
    return { isBase: false, contextTokens: 0, sampling: {} };
  }
  const defaults = props.default_generation_settings ?? {};
  const found = {
    isBase: "chat_template" in props && !props.chat_template,
    contextTokens: Number(defaults.n_ctx ?? props.n_ctx) || 0,
    sampling: defaults.params ?? {},
  };
  about.set(name, found);
  return found;
}
