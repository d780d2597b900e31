/** Drawings in SVG: elements, line charts with axes, and the keys beside them. */
import { shown } from "./numbers.js";

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element with attributes and perhaps text. */
export function svg(tag, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

/** An HTML element with attributes and perhaps text. */
export function html(tag, attributes = {}, text = null) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

/** From an interval, of logarithms where `log`, to pixels. */
function scale([low, high], [start, end], log) {
  const at = log ? Math.log10 : (value) => value;
  const [a, b] = [at(low), at(high)];
  return (value) => start + ((at(value) - a) / (b - a || 1)) * (end - start);
}

/** Values at which an axis has a mark; at most about `count`. */
export function ticks([low, high], log, count = 5) {
  if (log) {
    const [a, b] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const step = Math.max(1, Math.ceil((b - a) / count));
    const found = [];
    if (b - a < 2) {
      for (let k = a - 1; k <= b + 1; k += 1) found.push(...[1, 2, 5].map((m) => m * 10 ** k));
      return found.filter((value) => value >= low && value <= high);
    }
    for (let k = a; k <= b; k += step) found.push(10 ** k);
    return found;
  }
  const raw = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((size) => size >= raw);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k <= high / step + 1e-9; k += 1) found.push(k * step);
  return found;
}

/** A mark's label: powers of ten as such. */
function tickLabel(value, log) {
  if (log && (value >= 1e4 || value < 1e-2)) {
    const power = Math.round(Math.log10(value));
    const signs = [...String(power)].map((sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"["0123456789".indexOf(sign)] ?? "⁻");
    return `10${signs.join("")}`;
  }
  return String(Number(value.toPrecision(6))).replace("-", "−");
}

function axes(box, { x, y, xLabel, yLabel, logX, logY }, toX, toY) {
  const group = svg("g", { class: "axes" });
  for (const value of ticks(x, logX, box.right > 420 ? 6 : 4)) {
    const at = toX(value);
    group.append(svg("line", { x1: at, x2: at, y1: box.top, y2: box.bottom }));
    group.append(svg("text", { x: at, y: box.bottom + 16, "text-anchor": "middle" },
      tickLabel(value, logX)));
  }
  for (const value of ticks(y, logY)) {
    const at = toY(value);
    group.append(svg("line", { x1: box.left, x2: box.right, y1: at, y2: at }));
    group.append(svg("text", { x: box.left - 6, y: at + 4, "text-anchor": "end" },
      tickLabel(value, logY)));
  }
  const middle = (box.left + box.right) / 2;
  group.append(svg("text", { x: middle, y: box.bottom + 34, "text-anchor": "middle" }, xLabel));
  group.append(svg("text", { x: box.left, y: box.top - 8, class: "axis-name" }, yLabel));
  return group;
}

/** The smallest interval that holds all finite values, never empty. */
export function extent(values, log, margin = 0.05) {
  const usable = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (usable.length === 0) return log ? [0.1, 1] : [0, 1];
  const [low, high] = [Math.min(...usable), Math.max(...usable)];
  if (log) return low === high ? [low / 2, high * 2] : [low, high * (high / low) ** margin];
  const room = high === low ? 1 : (high - low) * margin;
  return [low - room, high + room];
}

function pathOf(points, toX, toY, { x, y, logX, logY }) {
  let text = "";
  let open = false;
  for (const [a, b] of points) {
    const drawable = Number.isFinite(a) && Number.isFinite(b) && !(logX && a <= 0) && !(logY && b <= 0);
    if (!drawable) {
      open = false;
      continue;
    }
    const inside = [Math.min(Math.max(a, x[0]), x[1]), Math.min(Math.max(b, y[0]), y[1])];
    text += `${open ? "L" : "M"}${toX(inside[0]).toFixed(2)} ${toY(inside[1]).toFixed(2)}`;
    open = true;
  }
  return text;
}

/**
 * Draw lines into an `<svg>` that fills its figure.
 *
 * `series` are {name, points, colour, dash}; `marks` are {x} or {y} with a name, drawn across.
 */
export function lineChart(target, chart) {
  const width = Math.max(target.parentElement.clientWidth, 260);
  const height = Math.round(Math.min(340, Math.max(230, width * 0.52)));
  const box = { left: 52, right: width - 12, top: 24, bottom: height - 42 };
  target.setAttribute("viewBox", `0 0 ${width} ${height}`);
  target.setAttribute("height", height);
  const toX = scale(chart.x, [box.left, box.right], chart.logX);
  const toY = scale(chart.y, [box.bottom, box.top], chart.logY);
  const parts = [axes(box, chart, toX, toY)];
  for (const mark of chart.marks ?? []) {
    const line = mark.x === undefined
      ? { x1: box.left, x2: box.right, y1: toY(mark.y), y2: toY(mark.y) }
      : { x1: toX(mark.x), x2: toX(mark.x), y1: box.top, y2: box.bottom };
    parts.push(svg("line", { ...line, class: "mark" }));
    if (mark.name) {
      const place = mark.x === undefined
        ? { x: box.right - 4, y: toY(mark.y) - 5, "text-anchor": "end" }
        : { x: toX(mark.x) + 4, y: box.top + 10 };
      parts.push(svg("text", { ...place, class: "mark-name" }, mark.name));
    }
  }
  for (const each of chart.series) {
    parts.push(svg("path", {
      d: pathOf(each.points, toX, toY, chart), class: `line c${each.colour}`,
      "stroke-dasharray": each.dash ?? "", "stroke-width": each.width ?? 2,
    }));
    for (const [a, b] of each.dots ?? []) {
      parts.push(svg("circle", { cx: toX(a), cy: toY(b), r: 4.5, class: `dot f${each.colour}` }));
    }
  }
  target.replaceChildren(...parts);
  target.setAttribute("role", "img");
  target.setAttribute("aria-label", chart.label);
}

/** The names of the series, each with a piece of its line. */
export function keys(target, series) {
  target.replaceChildren(...series.map(({ name, colour, dash, width, value }) => {
    const item = html("li");
    const sample = svg("svg", { width: 28, height: 10, "aria-hidden": "true" });
    sample.append(svg("path", { d: "M1 5H27", class: `line c${colour}`,
      "stroke-dasharray": dash ?? "", "stroke-width": width ?? 2 }));
    item.append(sample, html("span", {}, name));
    if (value !== undefined) item.append(html("b", {}, shown(value)));
    return item;
  }));
}
