/** The figures of the article that are curves: growth, saturation, factors and ties. */
import { at, coalesced, film, onResize, slider, tell } from "./controls.js";
import { keys, lineChart } from "./drawing.js";
import { trainFactored } from "./factored.js";
import { recordedSteps, trainSelection } from "./mirror_descent.js";
import { shown } from "./numbers.js";
import { attention, directions, excessLoss, leastShare, lowestLoss, margins, smallestLead, turned } from "./one_token.js";
import { rivals, threeSamples, twoSamples } from "./samples.js";

const SECONDS = 5;
const DASHES = ["", "7 4", "2 3", "9 3 2 3"];

/** A share as a percentage; one that is almost all is not rounded up to it. */
export function percent(share) {
  if (share > 0.9995) return "> 99.9\u00a0%";
  return `${share < 0.01 ? shown(100 * share, 2) : (100 * share).toFixed(1)}\u00a0%`;
}

function steady(low, high, count) {
  return Array.from({ length: count + 1 }, (_, k) => low + ((high - low) * k) / count);
}

/** Draws the chart of a figure, its keys and its sentence. */
function show(name, chart, sentence) {
  lineChart(at(`live-${name}-chart`), chart);
  keys(at(`live-${name}-keys`), chart.series);
  tell({ [`live-${name}-told`]: sentence });
}

/**
 * Wires a figure up: `draw` after each change, and the play button moves the slider `along` from its
 * smallest to its largest value.
 */
export function play(name, draw, along) {
  let stop = () => {};
  const input = at(`live-${name}-${along.id}`);
  at(`live-${name}-play`).addEventListener("click", () => {
    stop();
    const [low, high] = [Number(input.min), Number(input.max)];
    stop = film(SECONDS, (share) => {
      along.slider.position = low + share * (high - low);
      draw();
    });
  });
  input.addEventListener("input", () => stop());
}

function growthFigure() {
  const data = twoSamples();
  const pair = directions(data);
  const floor = lowestLoss(data);
  const sizes = steady(0, 20, 80);
  const draw = coalesced(() => {
    const [angle, size] = [turn.value, norm.value];
    const series = [0, angle].map((degrees, k) => {
      const direction = turned(pair, degrees);
      return {
        name: k === 0 ? "direction of the attention SVM" : `turned away by ${angle}°`, colour: k, dash: DASHES[k],
        width: 3 - k, points: sizes.map((each) => [each, excessLoss(direction, each, data)]),
        dots: [[size, Math.max(excessLoss(direction, size, data), 1e-8)]],
      };
    });
    const [lead, other] = [0, angle].map((degrees) => smallestLead(turned(pair, degrees), data));
    const fate = other > 0
      ? `With the direction turned by ${angle}° the best tokens stay ahead, by ${shown(other)} in place of ${shown(lead)} per unit of size, so that the loss falls more slowly.`
      : `Turned by ${angle}°, a wrong token is ahead, and no size lets the loss come down to its lowest value.`;
    show("growth", {
      series, x: [0, 20], y: [1e-8, 1], logY: true, marks: [{ x: size }],
      xLabel: "size of the weights (Euclidean norm)", yLabel: "loss above its lowest value",
      label: "Loss above its lowest value against the size of the weights, for two directions",
    }, `At size ${size.toFixed(1)} the loss is ${(floor + series[0].dots[0][1]).toFixed(4)}; no finite weights reach its lowest value, ${floor.toFixed(4)}. ${fate}`);
  });
  const norm = slider("live-growth-size", draw, (x) => x, (x) => x.toFixed(1));
  const turn = slider("live-growth-turn", draw, Math.round, (x) => `${x}°`);
  play("growth", draw, { id: "size", slider: norm });
  onResize(at("live-growth-chart").parentElement, draw);
  draw();
}

function saturationFigure() {
  const data = twoSamples();
  const { best } = directions(data);
  const unit = smallestLead(best, data);
  const leads = steady(0, 8, 80);
  const shares = (lead, i) => attention(best.map((value) => (value * lead) / unit), data, i);
  const draw = coalesced(() => {
    const [now, i] = [lead.value, sample.value - 1];
    const curves = leads.map((each) => shares(each, i));
    const series = data.X[i].map((_, t) => ({
      name: t === 0 ? "token 1, the best" : `token ${t + 1}`, colour: t, dash: DASHES[t], width: t === 0 ? 3 : 2,
      points: leads.map((each, k) => [each, curves[k][t]]), dots: [[now, shares(now, i)[t]]],
    }));
    const [winner, least] = [shares(now, i)[0], leastShare(now, data.X[i].length)];
    show("saturation", {
      series, x: [0, 8], y: [0, 1], marks: [{ x: now }], xLabel: "smallest lead of the best tokens (logits)",
      yLabel: "attention on a token", label: "Attention on each of four tokens against the smallest lead",
    }, `With a lead of ${now.toFixed(1)} the best token has ${percent(winner)} of the attention. It has at least ${percent(least)} whatever the tokens are, as each of the three others has at most ${percent(Math.exp(-now))} of its weight.`);
  });
  const lead = slider("live-saturation-lead", draw, (x) => x, (x) => x.toFixed(1));
  const sample = slider("live-saturation-sample", draw, Math.round, (i) => ["A", "B"][i - 1]);
  play("saturation", draw, { id: "lead", slider: lead });
  onResize(at("live-saturation-chart").parentElement, draw);
  draw();
}

const FACTORED_STEPS = 4000;
const RATES = { factored: 0.02, merged: 0.1 };

/** Both trainings from the same product, whose factors have the size `start`. */
function bothTrainings(data, start) {
  const recordAt = recordedSteps(FACTORED_STEPS, 50);
  const K = [1, 0.2, -0.3, -0.1, 0.9, 0.4, 0.3, -0.2, 1.1].map((value) => start * value);
  const Q = [0.8, -0.4, 0.1, 0.3, 1, -0.2, 0.2, 0.1, 0.9].map((value) => start * value);
  const factored = trainFactored(data, K, Q, { rate: RATES.factored, recordAt }).path;
  const merged = trainSelection(data, factored[0].W, { p: 2, rate: RATES.merged, recordAt }).path;
  return { steps: recordAt, paths: { factored, merged } };
}

function factorsFigure() {
  const data = threeSamples();
  let [found, steps] = [null, []];
  const refresh = coalesced(() => {
    found = bothTrainings(data, start.value);
    steps = found.steps;
    draw();
  });
  const draw = coalesced(() => {
    const now = along.value;
    const names = { factored: "two factors, keys times queries", merged: "one merged matrix" };
    const measured = Object.fromEntries(Object.entries(found.paths).map(([key, path]) => [key, path.map(({ W }) => margins(W, data))]));
    const series = Object.keys(names).map((key, k) => ({
      name: names[key], colour: k, dash: DASHES[k], width: 3 - k,
      points: measured[key].map(({ spread }, j) => [steps[j] + 1, spread]),
      dots: [[steps[now] + 1, measured[key][now].spread]], value: measured[key][now].spread,
    }));
    const [one, other] = [measured.factored[now], measured.merged[now]];
    const chart = {
      series, x: [1, FACTORED_STEPS], y: [1, Math.sqrt(3)], logX: true, marks: [{ x: steps[now] + 1 }],
      xLabel: "step + 1", yLabel: "nuclear over Euclidean norm of the weights",
      label: "Nuclear over Euclidean norm of the weights along two trainings",
    };
    const parts = [["nuclear", one.nuclear, other.nuclear], ["Euclidean", one.euclidean, other.euclidean]]
      .map(([norm, a, b]) => `${shown(a)} (factors) and ${shown(b)} (merged) per unit of ${norm} norm`);
    show("factors", chart, `After ${steps[now]} steps the smallest lead is ${parts.join(", and ")}. ${standing(one, other)}`);
  });
  const along = slider("live-factors-at", () => draw(), Math.round, (k) => `step ${steps[k] ?? FACTORED_STEPS}`);
  const start = slider("live-factors-start", refresh, (x) => 10 ** x, (x) => shown(x, 2));
  along.largest = recordedSteps(FACTORED_STEPS, 50).length - 1;
  along.position = 1000;
  play("factors", draw, { id: "at", slider: along });
  onResize(at("live-factors-chart").parentElement, refresh);
  refresh();
}

function standing(factored, merged) {
  if (!(factored.euclidean > 0 && merged.euclidean > 0)) return "Not every best token is ahead yet.";
  const [low, high] = [factored.nuclear > merged.nuclear, merged.euclidean > factored.euclidean];
  if (low && high) return "Each training has the larger margin in its own norm.";
  return "The margins do not separate the two trainings here.";
}

const TIE_STEPS = 10000;

function tieFigure() {
  const recordAt = recordedSteps(TIE_STEPS, 60);
  const draw = coalesced(() => {
    const [difference, steps] = [gap.value, 10 ** until.value];
    const data = rivals(difference);
    const { path } = trainSelection(data, [0, 0, 0, 0], { p: 2, rate: 1, recordAt, plain: true });
    const shares = path.map(({ W }) => attention(W, data, 0));
    const last = path.findLastIndex(({ step }) => step <= steps + 0.5);
    const names = ["best token", "its rival", "third token"];
    const series = names.map((name, t) => ({
      name, colour: t, dash: DASHES[t], width: t === 0 ? 3 : 2, value: shares[last][t],
      points: path.map(({ step }, k) => [step + 1, shares[k][t]]), dots: [[path[last].step + 1, shares[last][t]]],
    }));
    const reached = path.find((_, k) => shares[k][0] >= 0.9);
    const end = reached ? `It has 90\u00a0% after about ${reached.step} steps.` : `It does not reach 90\u00a0% in ${TIE_STEPS} steps.`;
    const why = difference === 0 ? "The two have the same score, and training has no reason to decide." : end;
    show("ties", {
      series, x: [1, TIE_STEPS], y: [0, 1], logX: true, marks: [{ x: path[last].step + 1 }],
      xLabel: "step + 1", yLabel: "attention on a token", label: "Attention on three tokens along gradient descent",
    }, `With a gap of ${difference.toFixed(2)} between the two best scores, the best token has ${percent(shares[last][0])} of the attention after ${path[last].step} steps. ${why}`);
  });
  const gap = slider("live-ties-gap", draw, (x) => x, (x) => x.toFixed(2));
  const until = slider("live-ties-steps", draw, (x) => x, (x) => shown(10 ** x, 2));
  play("ties", draw, { id: "steps", slider: until });
  onResize(at("live-ties-chart").parentElement, draw);
  draw();
}

/** The figures by their names. */
export const chartFigures = {
  growth: growthFigure, saturation: saturationFigure, factors: factorsFigure, ties: tieFigure,
};
