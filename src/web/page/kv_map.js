// The map of a KV cache group: a square a block, on a canvas. Knows the map's text, not the page.

const kKinds = "fch";  // in the order in which a kind is the more telling: free, cached, held

/// A byte a block (0 free, 1 cached, 2 held) of text like "f120h3c16". What makes no sense is left out,
/// and never more than `limit` blocks come of it.
export function decodeMap(text, limit) {
  const blocks = new Uint8Array(limit);
  let at = 0;
  for (const [, kind, digits] of text.matchAll(/([fch])(\d+)/g)) {
    const length = Math.min(Number(digits), limit - at);
    blocks.fill(kKinds.indexOf(kind), at, at + length);
    at += length;
  }
  return blocks.subarray(0, at);
}

/// Size of a cell in pixels, gap included, and how many blocks are one cell: so that all fit.
export function layoutOf(blocks, width, maxHeight) {
  for (const cell of [14, 12, 10, 8, 7, 6, 5, 4, 3]) {
    const columns = Math.floor(width / cell);
    if (columns > 0 && Math.ceil(blocks / columns) * cell <= maxHeight) return { cell, columns, perCell: 1 };
  }
  const columns = Math.max(1, Math.floor(width / 3));
  const rows = Math.max(1, Math.floor(maxHeight / 3));
  return { cell: 3, columns, perCell: Math.ceil(blocks / (columns * rows)) };
}

/// Draws. `colours`: of free, cached, held. Of several blocks in a cell the most telling kind shows.
export function drawMap(canvas, blocks, colours, maxHeight = 220) {
  const width = canvas.parentElement.clientWidth;
  if (width === 0) return;
  const { cell, columns, perCell } = layoutOf(blocks.length, width, maxHeight);
  const cells = Math.ceil(blocks.length / perCell);
  const height = Math.max(1, Math.ceil(cells / columns)) * cell;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const side = cell - (cell > 5 ? 2 : 1);
  const paths = kKinds.split("").map(() => new Path2D());
  for (let i = 0; i < cells; ++i) {
    let kind = 0;
    for (let j = i * perCell; j < Math.min((i + 1) * perCell, blocks.length); ++j) kind = Math.max(kind, blocks[j]);
    const x = (i % columns) * cell;
    const y = Math.floor(i / columns) * cell;
    if (side > 5) paths[kind].roundRect(x, y, side, side, 2);
    else paths[kind].rect(x, y, side, side);
  }
  paths.forEach((path, kind) => {
    pen.fillStyle = colours[kind];
    pen.fill(path);
  });
}
