// Numbers as people read them. Pure functions.

/// "840 µs", "84 ms", "1.24 s", "2 min 5 s"; of milliseconds.
export function duration(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms > 0 && ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 10) return `${+ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

/// "1,234,567".
export const count = (n) => (Number.isFinite(n) ? Math.round(n).toLocaleString("en") : "–");

/// Three digits that matter: "0.42", "8.31", "56.3", "1,240".
export function rate(n) {
  if (!Number.isFinite(n)) return "–";
  if (n >= 100) return count(n);
  if (n >= 10) return n.toFixed(1);
  return n === 0 ? "0" : n.toFixed(2);
}

/// "94.2 %" of a fraction.
export const percent = (x) => (Number.isFinite(x) ? `${(100 * x).toFixed(x > 0 && x < .9995 ? 1 : 0)}\u00a0%` : "–");

/// "1 token", "2 tokens".
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/// Under which heading a conversation of this time is listed.
export function dayName(time, now = Date.now()) {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const day = 86400000;
  if (time >= midnight) return "Today";
  if (time >= midnight - day) return "Yesterday";
  if (time >= midnight - 6 * day) return "This week";
  return new Date(time).toLocaleDateString("en", { month: "long", year: "numeric" });
}
