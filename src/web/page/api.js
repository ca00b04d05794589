// Talks to the server: addresses, API key, errors. Every address is relative, so that the page works
// behind a proxy that adds a prefix.
import { readEvents } from "./sse.js";

const kKeyName = "headrace.key";

/// What the server, or the way to it, answered instead of what was asked for.
export class ApiError extends Error {
  constructor(message, { status = 0, type = "", code = "", param = "", retryAfter = 0 } = {}) {
    super(message);
    Object.assign(this, { status, type, code, param, retryAfter });
  }
}

/// Kept for this tab only.
export const apiKey = {
  get: () => sessionStorage.getItem(kKeyName) ?? "",
  set: (key) => (key ? sessionStorage.setItem(kKeyName, key) : sessionStorage.removeItem(kKeyName)),
};

const kStatusWords = {
  401: "The server wants an API key.",
  403: "The server does not allow this.",
  404: "The server does not know this address.",
  413: "That is more than the server takes in one request.",
  429: "The server has too much to do.",
  503: "The server is not ready.",
};

function toError(body, fields) {
  const error = body?.error ?? {};
  const message = typeof error === "string" ? error : error.message;
  return new ApiError(message || kStatusWords[fields.status] || `The server answered ${fields.status}.`, {
    ...fields, type: error.type ?? "", code: String(error.code ?? ""), param: error.param ?? "",
  });
}

async function send(path, options = {}) {
  const headers = { ...options.headers };
  const key = apiKey.get();
  if (key) headers.Authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError" || error.name === "TimeoutError") throw error;
    throw new ApiError("The server cannot be reached.", { code: "unreachable" });
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  throw toError(body, { status: response.status, retryAfter: Number(response.headers.get("Retry-After")) || 0 });
}

/// The JSON at `path`. Throws ApiError.
export async function getJson(path, signal) {
  const response = await send(path, { signal });
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server's answer is not JSON.", { status: response.status });
  }
}

/// Posts `body` and yields each chunk of the stream that comes back. Returns true if the stream ended
/// with [DONE], false if it was cut. Throws ApiError, of an `error` event too.
export async function* streamJson(path, body, signal) {
  const response = await send(path, {
    method: "POST", signal, body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
  });
  try {
    for await (const { event, data } of readEvents(response.body)) {
      if (event === "error") throw toError(parse(data), { status: response.status });
      if (data === "[DONE]") return true;
      const chunk = parse(data);
      if (chunk?.error) throw toError(chunk, { status: response.status });
      if (chunk) yield chunk;
    }
  } catch (error) {
    if (error instanceof ApiError || error.name === "AbortError") throw error;
    return false;  // the connection broke
  }
  return false;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
