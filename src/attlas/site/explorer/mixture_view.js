/** Part 4: how many heads; training curves of a tiny mixture, computed while they are drawn. */
import { at, coalesced, onResize, slider, still, tell } from "./controls.js";
import { extent, keys, lineChart } from "./drawing.js";
import { descend, evaluate, mixtureSamples, oneStepModel } from "./multi_head.js";
import { shown } from "./numbers.js";
import { stored } from "./stored.js";

const HEADS = [1, 2, 4, 8, 16];
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "12 4"];
const STEPS = 300;
const EVERY = 10;
const TEST = 64;
const FIRST = 64;
const FRAME = 14;

/** Stored numbers, and where the samples of each set begin. */
function readDraws() {
  const found = stored("mixture");
  return {
    ...found, T: found.T[0], d: found.d[0], labels: [...found.labels],
    relevant: [...found.relevant].map(Boolean), signs: [...found.signs],
  };
}

/** A run per number of heads, none of which has begun. */
function begin(draws, { n, S, Z, rate }) {
  const sets = {
    first: mixtureSamples(draws, { first: 0, n: FIRST, S, Z }),
    test: mixtureSamples(draws, { first: FIRST, n: TEST, S, Z }),
    train: mixtureSamples(draws, { first: FIRST + TEST, n, S, Z }),
  };
  return HEADS.map((H) => ({
    H, rate, sets, step: 0, train: [], test: [], now: null,
    model: oneStepModel(sets.first, draws.signs.slice(0, H)),
  }));
}

/** One step of a run, with a record at each tenth. */
function advance(run) {
  const { model, sets, rate, step } = run;
  if (step % EVERY === 0) {
    run.now = { ...evaluate(model, sets.test), train: evaluate(model, sets.train).risk };
    run.train.push([step, run.now.train]);
    run.test.push([step, run.now.risk]);
  }
  if (step < STEPS) descend(model, sets.train, rate);
  run.step += 1;
}

function chartOf(runs, kind) {
  const series = runs.map((run, k) => ({
    name: `H = ${run.H}`, colour: k, dash: DASHES[k], points: run[kind], value: run[kind].at(-1)?.[1],
  }));
  const values = series.flatMap(({ points }) => points.map((point) => point[1]));
  return {
    series, x: [0, STEPS], y: extent([...values, Math.log(2)], true), logY: true,
    xLabel: "steps of gradient descent", yLabel: kind === "train" ? "training loss" : "test loss",
    marks: [{ y: Math.log(2), name: "log 2" }],
    label: `${kind === "train" ? "Training" : "Test"} loss along gradient descent, by number of heads`,
  };
}

function drawRuns(runs) {
  for (const kind of ["train", "test"]) {
    const chart = chartOf(runs, kind);
    lineChart(at(`mixture-${kind}-chart`), chart);
    keys(at(`mixture-${kind}-keys`), chart.series);
  }
  const known = runs.filter(({ now }) => now !== null);
  const best = known.reduce((a, b) => (b.now.risk < a.now.risk ? b : a));
  const step = Math.min(...runs.map((run) => run.step)) - 1;
  tell({
    "mixture-step": `${Math.max(step, 0)} of ${STEPS}`,
    "mixture-best": `H = ${best.H}: ${shown(best.now.risk)}`,
    "mixture-errors": known.map(({ now }) => `${shown(100 * now.wrong)} %`).join(", "),
    "mixture-mass": known.map(({ now }) => shown(now.mass)).join(", "),
  });
}

/** Wire up the part. */
export function mixtureView() {
  const draws = readDraws();
  let turn = 0;
  let runs = [];
  const start = coalesced(() => {
    turn += 1;
    const mine = turn;
    runs = begin(draws, { n: sliders.n.value, S: sliders.S.value, Z: sliders.Z.value, rate: sliders.rate.value });
    const frame = () => {
      if (mine !== turn) return;
      const until = performance.now() + FRAME;
      let behind = null;
      do {
        behind = runs.reduce((a, b) => (b.step < a.step ? b : a));
        if (behind.step <= STEPS) advance(behind);
      } while (behind.step <= STEPS && performance.now() < until);
      const done = runs.every((run) => run.step > STEPS);
      // a still picture is drawn once it is whole
      if (done || !still() || runs[0].step <= EVERY) drawRuns(runs);
      if (!done) requestAnimationFrame(frame);
    };
    frame();
  });
  const sliders = {
    S: slider("mixture-S", start, (x) => x, (x) => x.toFixed(1)),
    Z: slider("mixture-Z", start, (x) => x, (x) => x.toFixed(1)),
    n: slider("mixture-n", start, Math.round, String),
    rate: slider("mixture-rate", start, (x) => 10 ** x, (x) => shown(x)),
  };
  at("mixture-again").addEventListener("click", start);
  onResize(at("mixture-train-chart").parentElement, () => {
    if (runs.some(({ now }) => now !== null)) drawRuns(runs);
  });
  start();
}
