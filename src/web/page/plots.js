// The charts of the dashboard, made with Chart.js (a global, from a classic script).
import { duration, rate } from "./format.js";

/// The value of a colour of base.css as the browser resolves it now.
export function colour(name) {
  const probe = document.createElement("span");
  probe.hidden = true;
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

const fade = (rgb, alpha) => rgb.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

function baseOptions() {
  return {
    animation: false, responsive: true, maintainAspectRatio: false,
    interaction: { mode: "index", intersect: false },
    plugins: {
      legend: { display: false },
      tooltip: { displayColors: false, cornerRadius: 8, padding: 10, caretSize: 0,
                 titleFont: { weight: "500" }, bodyFont: { weight: "600" } },
    },
  };
}

function tint(chart, series) {
  const quiet = colour("quiet");
  const main = colour(series);
  for (const axis of Object.values(chart.options.scales)) {
    axis.ticks.color = quiet;
    if (axis.grid.display !== false) axis.grid.color = colour("line");
  }
  const { tooltip } = chart.options.plugins;
  Object.assign(tooltip, { backgroundColor: colour("text"), titleColor: colour("page"), bodyColor: colour("page") });
  const [first, second] = chart.data.datasets;
  first.borderColor = main;
  first.backgroundColor = chart.config.type === "line" ? fade(main, .14) : main;
  if (second) second.borderColor = quiet;
}

const kFont = () => ({ family: getComputedStyle(document.body).fontFamily, size: 11 });

const ago = (s) => (s === 0 ? "now" : s % 60 === 0 ? `${-s / 60} min ago` : `${-s} s ago`);

/// A line over the last minutes, five at most. `set(points, bound)`: points are {x: seconds ago, negative; y: a second}.
export class RatePlot {
  constructor(canvas, label, series) {
    Object.assign(this, { canvas, label, series });
    const options = baseOptions();
    options.scales = {
      x: { type: "linear", min: -60, max: 0, grid: { display: false }, border: { display: false },
           ticks: { font: kFont(), maxRotation: 0, callback: (s) => ago(s) } },
      y: { beginAtZero: true, suggestedMax: 10, grid: { drawBorder: false }, ticks: { font: kFont(), maxTicksLimit: 5 } },
    };
    options.plugins.tooltip.callbacks = {
      title: ([item]) => `${Math.round(-item.parsed.x)} s ago`,
      label: (item) => `${item.dataset.label}: ${rate(item.parsed.y)}/s`,
    };
    const line = { pointRadius: 0, borderWidth: 2, tension: .25, borderJoinStyle: "round" };
    this.chart = new window.Chart(canvas, {
      type: "line", options,
      data: { datasets: [{ ...line, label, fill: "origin", data: [] },
                         { ...line, label: "Bound", borderWidth: 1.5, borderDash: [5, 5], data: [] }] },
    });
    this.retint();
  }

  retint() {
    tint(this.chart, this.series);
    this.chart.update();
  }

  set(points, bound) {
    const [line, top] = this.chart.data.datasets;
    const minutes = Math.min(5, Math.max(1, Math.ceil(-(points[0]?.x ?? 0) / 60)));
    Object.assign(this.chart.options.scales.x, { min: -60 * minutes });
    this.chart.options.scales.x.ticks.stepSize = minutes > 1 ? 60 : 15;
    line.data = points;
    top.data = bound > 0 ? [{ x: -60 * minutes, y: bound }, { x: 0, y: bound }] : [];
    this.chart.update();
    const now = points.at(-1)?.y ?? 0;
    const of = bound > 0 ? `, bound ${rate(bound)}` : "";
    this.canvas.setAttribute("aria-label", `${this.label}, last five minutes: now ${rate(now)} a second${of}`);
  }
}

/// Bars of a histogram over its buckets.
export class HistogramPlot {
  constructor(canvas, label, series) {
    Object.assign(this, { canvas, label, series });
    const options = baseOptions();
    options.scales = {
      x: { grid: { display: false, drawBorder: false }, ticks: { font: kFont(), maxRotation: 0, autoSkip: true, autoSkipPadding: 10 } },
      y: { beginAtZero: true, grid: { drawBorder: false }, ticks: { font: kFont(), maxTicksLimit: 4, precision: 0 } },
    };
    options.plugins.tooltip.callbacks = {
      title: ([item]) => this.ranges[item.dataIndex],
      label: (item) => item.formattedValue,
    };
    this.chart = new window.Chart(canvas, {
      type: "bar", options,
      data: { labels: [], datasets: [{ label, data: [], borderRadius: 3, borderSkipped: false, barPercentage: 1, categoryPercentage: .86 }] },
    });
    this.retint();
  }

  retint() {
    tint(this.chart, this.series);
    this.chart.update();
  }

  /// `bounds` in seconds; `counts` one more; empty buckets at both ends are left out.
  set(bounds, counts, summary) {
    const used = counts.map((n, i) => (n > 0 ? i : -1)).filter((i) => i >= 0);
    const first = Math.max(0, (used[0] ?? 0) - 1);
    const last = Math.min(counts.length - 1, (used.at(-1) ?? counts.length - 1) + 1);
    const name = (i) => (i < bounds.length ? duration(bounds[i] * 1000) : `> ${duration(bounds.at(-1) * 1000)}`);
    const indexes = Array.from({ length: last - first + 1 }, (_, i) => first + i);
    this.ranges = indexes.map((i) => (i === 0 || i >= bounds.length ? name(i) : `${name(i - 1)} to ${name(i)}`));
    this.chart.data.labels = indexes.map(name);
    this.chart.data.datasets[0].data = indexes.map((i) => counts[i]);
    this.chart.update();
    this.canvas.setAttribute("aria-label", `${this.label}: ${summary}`);
  }
}
