"use strict";
// What the pages share: rows, colours, and what is said of the settings.
const rows = JSON.parse(document.getElementById("rows").textContent);
const narrow = matchMedia("(max-width: 40rem)");
const dark = matchMedia("(prefers-color-scheme: dark)");
const color = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const settingKey = row => [row.model_file, row.isa, row.threads, row.kv_type, row.chunk_tokens].join("\n");
const keys = [...new Set(rows.map(settingKey))];
const seriesColor = row => color("c" + keys.indexOf(settingKey(row)) % 6);

function figure(value) {
  if (value >= 1000) return Math.round(value).toString();
  return value >= 100 ? value.toFixed(1) : value.toFixed(2);
}
const megabytes = bytes => (bytes / 1e6).toFixed(bytes < 1e7 ? 2 : 1) + " MB";

// Names tell settings apart where there are several, by what differs.
const differing = [["model", r => r.model], ["isa", r => r.isa], ["threads", r => r.threads + "t"],
                   ["kv_type", r => "KV " + r.kv_type], ["chunk_tokens", r => "ub " + r.chunk_tokens]]
  .filter(([key]) => new Set(rows.map(r => r[key])).size > 1);
const settingName = row => differing.map(([, text]) => text(row)).join(" ");

function element(tag, text, parent, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  if (parent) parent.append(made);
  return made;
}

// `colored`: a colour stands for a setting.
function showSettings(colored) {
  const place = document.getElementById("settings");
  for (const key of keys) {
    const row = rows.find(r => settingKey(r) === key);
    const box = element("div", undefined, place, "setting");
    if (colored && keys.length > 1) {
      const swatch = element("span", undefined, box, "swatch");
      swatch.style.background = "var(--c" + keys.indexOf(key) % 6 + ")";
    }
    box.append(element("strong", row.model),
      `, ${Math.round(row.model_parameters / 1e6)} M parameters, ${megabytes(row.model_bytes)} of weights${row.packed ? "" : " in the file"}; ` +
      `${row.cpu}, ${row.kernels}, ${row.threads} ${row.threads === 1 ? "thread" : "threads"} of ` +
      `${row.processors}, KV ${row.kv_type}, steps of ${row.chunk_tokens}`);
  }
}

// Lines that say what to distrust; nothing where there are none.
function showWarnings(title, lines) {
  if (lines.length === 0) return;
  const box = element("div", undefined, document.getElementById("warnings"), "warning");
  element("strong", title, box);
  const list = element("ul", undefined, box);
  for (const line of lines) element("li", line, list);
}

// `columns`: [heading, row => text, class or nothing].
function fillTable(table, columns, lines) {
  const head = element("tr", undefined, table.tHead);
  for (const [name, , style] of columns) element("th", name, head, style).scope = "col";
  for (const row of lines) {
    const line = element("tr", undefined, table.tBodies[0]);
    for (const [, cell, style] of columns) element("td", cell(row), line, style);
  }
}
