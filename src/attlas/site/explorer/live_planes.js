/** The figures of the article that are no curves: tokens in the plane, and the entries of a matrix. */
import { attentionSvm, supportTokens } from "./attention_svm.js";
import { at, coalesced, slider, tell } from "./controls.js";
import { svg } from "./drawing.js";
import { play } from "./live_charts.js";
import { directionDivergence, optimalTokens, recordedSteps, trainSelection } from "./mirror_descent.js";
import { entrywiseNorm, matVec, shown } from "./numbers.js";
import { attention, entriesWith } from "./one_token.js";
import { addHandle, arrow, makePlane, place } from "./plane.js";
import { oneSample, threeSamples } from "./samples.js";

const LENGTH = 0.5;
const FIRST_SHOWN = 18;
const [STEPS, RECORDS, RATE] = [3000, 60, 0.3];

function unit(vector) {
  const size = Math.hypot(...vector);
  return size > 0 ? vector.map((value) => value / size) : null;
}

function beside(from, direction, length) {
  return from.map((value, k) => value + length * direction[k]);
}

function degrees(a, b) {
  return (Math.acos(Math.min(Math.max(a[0] * b[0] + a[1] * b[1], -1), 1)) * 180) / Math.PI;
}

/** The arrows of the trained weights and of the attention SVM, and the line of the margin. */
function directionMarks(from, look, target) {
  const parts = [];
  if (target) {
    const size = Math.hypot(...target);
    const foot = beside(from, target, -1 / size ** 2);
    const along = [-target[1] / size, target[0] / size];
    const [a, b] = [place(beside(foot, along, -4)), place(beside(foot, along, 4))];
    parts.push(svg("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], class: "margin c0" }));
    parts.push(svg("path", { d: arrow(from, beside(from, unit(target), LENGTH + 0.12)), class: "line target c0" }));
  }
  const current = unit(look);
  if (current) parts.push(svg("path", { d: arrow(from, beside(from, current, LENGTH)), class: "line now c1" }));
  return parts;
}

function directionSentence(state, now) {
  const { solution, path, data, tokens } = state;
  const share = attention(path[now].W, data, 0)[tokens[0]];
  const begin = `After ${path[now].step} steps the best token has ${(100 * share).toFixed(0)}\u00a0% of the attention`;
  if (!solution.converged) return `${begin}. No weights put it ahead of all others: the attention SVM has no solution, and training compromises.`;
  const [look, goal] = [unit(matVec(path[now].W, data.z[0])), unit(matVec(solution.W, data.z[0]))];
  const angle = look ? `, and the direction is ${degrees(look, goal).toFixed(1)}° from the attention SVM` : "";
  const support = supportTokens(solution.margins).filter(Boolean).length;
  return `${begin}${angle}. ${support} of ${solution.margins.length} rivals ${support === 1 ? "is a support token" : "are support tokens"}: the others can be moved a little, and the dashed arrow stays.`;
}

function directionFigure() {
  const data = oneSample();
  const begin = structuredClone(data.X[0]);
  const state = { data };
  const steps = recordedSteps(STEPS, RECORDS);
  const plane = makePlane(at("live-direction-plane"));
  const shapes = begin.map(() => svg("circle", { class: "token f0" }));
  const redraw = [];
  const draw = coalesced(() => {
    const { solution, path, tokens } = state;
    const { W } = path[along.value];
    const goal = solution.converged ? matVec(solution.W, data.z[0]) : null;
    plane.marks.replaceChildren(...directionMarks(data.X[0][tokens[0]], matVec(W, data.z[0]), goal));
    const weights = attention(W, data, 0);
    const active = solution.converged ? supportTokens(solution.margins) : [];
    shapes.forEach((shape, t) => {
      shape.setAttribute("r", 5 + 8 * Math.sqrt(weights[t]));
      shape.classList.toggle("selected", t === tokens[0]);
      shape.classList.toggle("support", active.some((is, k) => is && solution.places[k][1] === t));
    });
    redraw.forEach((each) => each());
    tell({ "live-direction-told": directionSentence(state, along.value) });
  });
  const refresh = coalesced(() => {
    state.tokens = optimalTokens(data);
    state.solution = attentionSvm(data.X, data.z, state.tokens, 2);
    state.path = trainSelection(data, [0, 0, 0, 0], { p: 2, rate: RATE, recordAt: steps }).path;
    draw();
  });
  shapes.forEach((shape, t) => redraw.push(addHandle(plane, {
    shape, label: `token ${t + 1}`, className: "of-token", read: () => data.X[0][t],
    write: (to) => { data.X[0][t] = to; refresh(); },
  })));
  const along = slider("live-direction-at", draw, Math.round, (k) => `step ${steps[k] ?? STEPS}`);
  along.largest = steps.length - 1;
  along.position = FIRST_SHOWN;
  at("live-direction-reset").addEventListener("click", () => {
    data.X[0] = structuredClone(begin);
    refresh();
  });
  play("direction", draw, { id: "at", slider: along });
  refresh();
}

/** The entries of a matrix as squares: area is size, and a negative entry is hollow. */
function squares(W, d, left, title) {
  const cell = 44;
  const largest = Math.max(...W.map(Math.abs));
  const parts = [svg("text", { x: left + (d * cell) / 2, y: 14, "text-anchor": "middle", class: "word" }, title)];
  W.forEach((value, j) => {
    const side = (cell - 6) * Math.sqrt(Math.abs(value) / largest);
    const [x, y] = [left + (j % d) * cell, 26 + Math.floor(j / d) * cell];
    parts.push(svg("rect", { x, y, width: cell, height: cell, class: "cell" }));
    parts.push(svg("rect", { x: x + (cell - side) / 2, y: y + (cell - side) / 2, width: side, height: side,
      class: value < 0 ? "entry negative c1" : "entry f0" }));
  });
  return parts;
}

function exponentFigure() {
  const data = threeSamples();
  const tokens = optimalTokens(data);
  const euclidean = attentionSvm(data.X, data.z, tokens, 2);
  const draw = coalesced(() => {
    const exponent = p.value;
    const solution = attentionSvm(data.X, data.z, tokens, exponent);
    const recordAt = [0, STEPS];
    const { W } = trainSelection(data, new Array(9).fill(0), { p: exponent, rate: RATE, recordAt }).path[1];
    const target = at("live-exponent-plane");
    target.setAttribute("viewBox", "0 0 300 164");
    target.replaceChildren(...squares(W, 3, 4, "trained weights"), ...squares(solution.W, 3, 164, "attention SVM"));
    const [own, other] = [solution, euclidean].map((each) => directionDivergence(W, each.W, exponent));
    const size = entrywiseNorm(solution.W, exponent);
    const rest = exponent === 2 ? "" : `, and ${shown(other)} from that of p = 2`;
    tell({ "live-exponent-told": `With p = ${exponent.toFixed(2)}, ${entriesWith(0.9, solution.W)} of 9 entries of the attention SVM hold 90\u00a0% of the sum of sizes; its norm is ${shown(size)}. After ${STEPS} steps the divergence of the trained weights from it is ${shown(own)}${rest}.` });
  });
  const p = slider("live-exponent-p", draw, (x) => Math.round(100 * x) / 100, (x) => x.toFixed(2));
  play("exponent", draw, { id: "p", slider: p });
  draw();
}

/** The figures by their names. */
export const planeFigures = { direction: directionFigure, exponent: exponentFigure };
