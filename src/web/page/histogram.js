// Histograms as the server sends them: {le: upper bounds in seconds, count: cumulative, the last of all}.
// Pure functions.

/// What came since `before`; all of `now` where there is no such histogram or the server began anew.
export function since(now, before) {
  const isSame = before && before.count.length === now.count.length
    && before.count.every((n, i) => n <= now.count[i]);
  return isSame ? { le: now.le, count: now.count.map((n, i) => n - before.count[i]) } : now;
}

export const totalOf = ({ count }) => count.at(-1) ?? 0;

/// How many fell into each bucket, the one without an upper bound last.
export const perBucket = ({ count }) => count.map((n, i) => n - (i > 0 ? count[i - 1] : 0));

/// The value below which the fraction `q` lies, in seconds, in a straight line within its bucket. NaN of
/// nothing; the largest bound, if it lies beyond.
export function quantile({ le, count }, q) {
  const wanted = q * (count.at(-1) ?? 0);
  if (!(wanted > 0)) return NaN;
  const i = count.findIndex((n) => n >= wanted);
  if (i >= le.length) return le.at(-1) ?? NaN;
  const below = i > 0 ? count[i - 1] : 0;
  const from = i > 0 ? le[i - 1] : 0;
  return from + (le[i] - from) * (wanted - below) / (count[i] - below);
}
