/** Part 3: bounds on the generalisation gap, which is smallest and where all are vacuous. */
import { compareBounds, ROWS, samplesUntilNonvacuous } from "./bounds.js";
import { at, coalesced, onResize, slider, tell } from "./controls.js";
import { html, keys, lineChart, svg } from "./drawing.js";
import { shown } from "./numbers.js";

const NAMES = {
  trivial: "largest output", "1,1": "cover of ‖·‖₁,₁", "1,inf": "cover of ‖·‖₁,∞",
  "2,1": "cover of ‖·‖₂,₁, rows", "log T": "log T cover at mT tokens",
  "log m": "log T cover at m [CLS] tokens", parameters: "parameter counting",
};
const DASHES = ["1 4", "", "7 4", "2 3", "9 3 2 3", "12 4", "4 2"];
const COLOURS = [6, 0, 1, 2, 3, 4, 5];
const SAMPLES = Array.from({ length: 33 }, (_, k) => 10 ** (1 + k / 4));
const PLANE = { columns: 21, rows: 15, m: [1, 9], norm: [-2, 2] };

const power = (x) => 10 ** x;

/** Norms of W_QK with spectral norm sigma, by what the matrix looks like. */
function normsOf(shape, sigma, d) {
  const root = Math.sqrt(d);
  // entries of a dense Gaussian matrix of spectral norm sigma have size sigma / (2 sqrt d)
  const mean = (sigma / (2 * root)) * Math.sqrt(2 / Math.PI);
  return {
    entry: { total: sigma, column: sigma, rowSum: sigma, columnSum: sigma, spectral: sigma },
    identity: { total: d * sigma, column: sigma, rowSum: d * sigma, columnSum: d * sigma, spectral: sigma },
    dense: {
      total: d ** 2 * mean, column: d * mean, rowSum: (d * sigma) / 2, columnSum: (d * sigma) / 2,
      spectral: sigma,
    },
  }[shape];
}

function layerOf({ heads, d, T, norm, outer, shape }) {
  // readout, W_c and W_v share the product of their norms
  const each = Math.cbrt(outer);
  return {
    heads, d, T, rank: Math.max(1, Math.round(d / heads)), lipschitz: 1, outer: each ** 3,
    readout: each, output: each, value: each, norms: normsOf(shape, norm, d),
    tokens: { two: 1, one: Math.sqrt(d), largest: 1 },
  };
}

function chartOf(layer, m, options) {
  const found = SAMPLES.map((samples) => compareBounds(layer, samples, options));
  const series = ROWS.map((name, row) => ({
    name: NAMES[name], colour: COLOURS[row], dash: DASHES[row], width: row === 1 ? 3 : 2,
    points: SAMPLES.map((samples, k) => [samples, found[k][row].gap]),
  }));
  return {
    series, x: [10, 1e9], y: [1e-3, 100], logX: true, logY: true, xLabel: "samples m",
    yLabel: "bound on the gap", marks: [{ x: m, name: "m" }, { y: 1, name: "vacuous above" }],
    label: "Bounds on the generalisation gap by the number of samples",
  };
}

function fillTable(table, found, smallest, until) {
  table.replaceChildren(...found.map((each, row) => {
    const kind = each === smallest ? "smallest" : "";
    const line = html("tr", { class: each.gap < 1 ? kind : "vacuous" });
    line.append(html("th", { scope: "row" }, NAMES[each.name]));
    const numbers = [each.gap, each.complexity, each.confidence, each.union, until[row]];
    line.append(...numbers.map((value) => html("td", { class: "num" }, shown(value))));
    return line;
  }));
}

function standing(smallest, until) {
  if (smallest.gap < 1) return `Smallest: ${NAMES[smallest.name]}, ${shown(smallest.gap)}.`;
  const least = Math.min(...until);
  const when = Number.isFinite(least) ? `the first is not from m = ${shown(least)} on` : "for every m";
  return `All bounds are vacuous; ${when}.`;
}

/** Which bound is smallest, by samples and norm; drawn a row of cells per frame. */
function drawPlane(target, settings, options, alive) {
  const { columns, rows, m, norm } = PLANE;
  target.setAttribute("viewBox", `0 0 ${columns} ${rows}`);
  target.replaceChildren();
  let row = 0;
  const frame = () => {
    if (!alive() || row >= rows) return;
    const own = norm[0] + ((norm[1] - norm[0]) * row) / (rows - 1);
    const layer = layerOf({ ...settings, norm: power(own) });
    for (let k = 0; k < columns; k += 1) {
      const samples = power(m[0] + ((m[1] - m[0]) * k) / (columns - 1));
      const found = compareBounds(layer, samples, options);
      const best = found.reduce((a, b) => (b.gap < a.gap ? b : a));
      const colour = best.gap < 1 ? `f${COLOURS[ROWS.indexOf(best.name)]}` : "void";
      target.append(svg("rect", { x: k, y: rows - 1 - row, width: 1.01, height: 1.01, class: colour }));
    }
    row += 1;
    requestAnimationFrame(frame);
  };
  frame();
}

/** Wire up the part. */
export function boundsView() {
  let drawing = 0;
  const refresh = coalesced(() => draw());
  const count = (x) => Math.round(2 ** x);
  const sliders = {
    m: slider("bounds-m", refresh, power, (x) => shown(x)),
    d: slider("bounds-d", refresh, count, String),
    T: slider("bounds-T", refresh, count, String),
    norm: slider("bounds-norm", refresh, power, (x) => shown(x)),
    outer: slider("bounds-outer", refresh, power, (x) => shown(x)),
    heads: slider("bounds-heads", refresh, count, String),
  };
  for (const id of ["bounds-shape", "bounds-fixed"]) at(id).addEventListener("change", refresh);
  const draw = () => {
    drawing += 1;
    const mine = drawing;
    const settings = Object.fromEntries(Object.entries(sliders).map(([k, each]) => [k, each.value]));
    settings.shape = at("bounds-shape").value;
    const options = { delta: 0.05, fixed: !at("bounds-fixed").checked, entries: ROWS.length };
    const layer = layerOf(settings);
    const found = compareBounds(layer, settings.m, options);
    const smallest = found.reduce((a, b) => (b.gap < a.gap ? b : a));
    const until = ROWS.map((name) => samplesUntilNonvacuous(layer, name, options));
    tell({ "bounds-standing": standing(smallest, until) });
    fillTable(at("bounds-table"), found, smallest, until);
    const chart = chartOf(layer, settings.m, options);
    lineChart(at("bounds-chart"), chart);
    keys(at("bounds-keys"), chart.series);
    drawPlane(at("bounds-plane"), settings, options, () => mine === drawing);
  };
  onResize(at("bounds-chart").parentElement, draw);
  draw();
}
