/** Part 1: tokens in the plane, l_p mirror descent and the attention SVM of its p. */
import { attentionSvm, supportTokens } from "./attention_svm.js";
import { at, coalesced, film, onResize, slider, tell } from "./controls.js";
import { extent, keys, lineChart, svg } from "./drawing.js";
import { directionDivergence, optimalTokens, recordedSteps, trainSelection } from "./mirror_descent.js";
import { entrywiseNorm, matVec, shown, softmax } from "./numbers.js";
import { addHandle, arrow, makePlane, place } from "./plane.js";
import { twoSamples } from "./samples.js";

const OTHERS = [1.5, 2, 3];
const STEPS = 4000;
const RECORDS = 60;
const RATE = 1;
const LENGTH = 0.55;
const NAMES = ["A", "B"];

const state = { data: twoSamples(), path: [], solution: null, others: [] };

function recompute(p) {
  const { data } = state;
  const tokens = optimalTokens(data);
  const { X, z } = data;
  state.tokens = tokens;
  state.solution = attentionSvm(X, z, tokens, p);
  state.others = OTHERS.map((q) => attentionSvm(X, z, tokens, q));
  const W0 = new Array(z[0].length ** 2).fill(0);
  const recordAt = recordedSteps(STEPS, RECORDS);
  state.path = trainSelection(data, W0, { p, rate: RATE, recordAt }).path;
}

function unit(vector) {
  const size = Math.hypot(...vector);
  return size > 0 ? vector.map((value) => value / size) : null;
}

function beside(from, direction, length) {
  return from.map((value, k) => value + length * direction[k]);
}

/** Arrow, margin line and trace of one sample. */
function sampleMarks(i, W, solution) {
  const { X, z } = state.data;
  const from = X[i][state.tokens[i]];
  const parts = [];
  const trace = state.path.slice(0, state.now + 1)
    .map((each) => unit(matVec(each.W, z[i]))).filter((each) => each !== null)
    .map((each) => place(beside(from, each, LENGTH)));
  if (trace.length > 1) {
    parts.push(svg("path", { d: `M${trace.map((point) => point.join(" ")).join("L")}`,
      class: `line trace c${i}` }));
  }
  if (solution.converged) {
    const target = matVec(solution.W, z[i]);
    const size = Math.hypot(...target);
    if (size > 0) {
      const foot = beside(from, target, -1 / size ** 2);
      const along = [-target[1] / size, target[0] / size];
      const [a, b] = [place(beside(foot, along, -4)), place(beside(foot, along, 4))];
      parts.push(svg("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], class: `margin c${i}` }));
      const tip = beside(from, unit(target), LENGTH + 0.12);
      parts.push(svg("path", { d: arrow(from, tip), class: `line target c${i}` }));
    }
  }
  const current = unit(matVec(W, z[i]));
  if (current) {
    parts.push(svg("path", { d: arrow(from, beside(from, current, LENGTH)), class: `line now c${i}` }));
  }
  return parts;
}

/** What the drawing says of each token: its weight, whether selected, whether a support token. */
function drawTokens(shapes, W, solution) {
  const { X, z } = state.data;
  const support = new Set();
  if (solution.converged) {
    supportTokens(solution.margins).forEach((active, k) => {
      if (active) support.add(solution.places[k].join());
    });
  }
  X.forEach((sample, i) => {
    const direction = matVec(W, z[i]);
    const weights = softmax(sample.map((token) => token[0] * direction[0] + token[1] * direction[1]));
    sample.forEach((_, t) => {
      const shape = shapes[i][t];
      const size = 4.5 + 6 * Math.sqrt(weights[t]);
      if (i === 0) shape.setAttribute("r", size);
      else for (const [name, value] of Object.entries({ x: -size, y: -size, width: 2 * size, height: 2 * size })) shape.setAttribute(name, value);
      shape.classList.toggle("selected", t === state.tokens[i]);
      shape.classList.toggle("support", support.has(`${i},${t}`));
    });
  });
  return support.size;
}

function chartOf(p) {
  const steps = state.path.map(({ step }) => Math.max(step, 0.5));
  const toward = (solution) => state.path.map(({ W }, k) => [
    steps[k], solution.converged ? directionDivergence(W, solution.W, p) : NaN,
  ]);
  const series = [
    { name: `attention SVM of its own p = ${shown(p)}`, points: toward(state.solution), colour: 0, width: 3 },
    ...OTHERS.map((q, k) => ({
      name: `of p = ${q}`, points: toward(state.others[k]), colour: k + 1, dash: ["6 4", "2 3", "9 3 2 3"][k],
    })),
  ];
  series.forEach((each) => { each.value = each.points[state.now][1]; });
  const values = series.flatMap(({ points }) => points.map((point) => point[1]));
  const y = extent(values.map((value) => Math.max(value, 1e-9)), true);
  return {
    series, x: [1, STEPS], y, logX: true, logY: true, xLabel: "steps of mirror descent",
    yLabel: "divergence of the direction", marks: [{ x: Math.max(steps[state.now], 1) }],
    label: `Divergence of the direction of W from the attention SVMs along ${STEPS} steps at p = ${shown(p)}`,
  };
}

function facts(p, support) {
  const { solution, path, now } = state;
  const { W, step, loss } = path[now];
  const own = solution.converged ? directionDivergence(W, solution.W, p) : NaN;
  let standing = `certified: duality gap ${shown(Math.max(solution.gap, 1e-16), 1)}`;
  if (solution.infeasible) standing = "no W separates these tokens (Farkas certificate)";
  else if (!solution.converged) standing = "not certified: move a token";
  tell({
    "selection-margin": solution.converged ? shown(1 / solution.upper) : "–",
    "selection-support": solution.converged ? String(support) : "–",
    "selection-standing": standing,
    "selection-step": `${step} of ${STEPS}`,
    "selection-norm": shown(entrywiseNorm(W, p)),
    "selection-loss": shown(loss),
    "selection-divergence": shown(own),
  });
}

/** Wire up the part. */
export function selectionView() {
  const plane = makePlane(at("selection-plane"));
  const shapes = state.data.X.map((sample, i) => sample.map(() => svg(i === 0 ? "circle" : "rect", { class: `token f${i}` })));
  const redraw = [];
  const p = slider("selection-p", () => refresh(), (x) => Math.round(100 * (1 + 10 ** x)) / 100, (value) => value.toFixed(2));
  const scrub = slider("selection-at", () => drawSoon(), Math.round, (k) => `step ${recordedSteps(STEPS, RECORDS)[k]}`);

  const draw = () => {
    state.now = Math.min(scrub.value, state.path.length - 1);
    const { W } = state.path[state.now];
    plane.marks.replaceChildren(...state.data.X.flatMap((_, i) => sampleMarks(i, W, state.solution)), ...arms());
    redraw.forEach((each) => each());
    facts(p.value, drawTokens(shapes, W, state.solution));
    const chart = chartOf(p.value);
    lineChart(at("selection-chart"), chart);
    keys(at("selection-keys"), chart.series);
  };
  const drawSoon = coalesced(draw);
  const refresh = coalesced(() => {
    recompute(p.value);
    draw();
  });
  const arms = () => [
    ...state.data.z.map((z, i) => svg("path", { d: arrow([0, 0], z), class: `line arm c${i}` })),
    svg("path", { d: arrow([0, 0], state.data.v), class: "line arm ink" }),
  ];
  const handle = (label, className, shape, get, set) => redraw.push(addHandle(plane, {
    label, className, shape, read: get,
    write: (to) => {
      set(to);
      refresh();
    },
  }));

  state.data.X.forEach((sample, i) => sample.forEach((_, t) => handle(
    `token ${t + 1} of sample ${NAMES[i]}`, "of-token", shapes[i][t],
    () => state.data.X[i][t], (to) => { state.data.X[i][t] = to; },
  )));
  state.data.z.forEach((_, i) => handle(
    `query of sample ${NAMES[i]}`, "of-query", svg("path", { d: "M0 -7L7 0L0 7L-7 0Z", class: `query f${i}` }),
    () => state.data.z[i], (to) => { state.data.z[i] = to; },
  ));
  handle("value head v", "of-value", svg("path", { d: "M0 -8L7 5H-7Z", class: "query ink-fill" }),
    () => state.data.v, (to) => { state.data.v = to; });

  const steps = recordedSteps(STEPS, RECORDS);
  scrub.largest = steps.length - 1;
  scrub.position = steps.length - 1;
  let stop = () => {};
  at("selection-play").addEventListener("click", () => {
    stop();
    stop = film(4, (share) => {
      scrub.position = Math.round(share * (steps.length - 1));
      drawSoon();
    });
  });
  at("selection-reset").addEventListener("click", () => {
    state.data = twoSamples();
    refresh();
  });
  recompute(p.value);
  onResize(at("selection-chart").parentElement, draw);
  draw();
}
