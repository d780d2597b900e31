/** Part 2: one attention head; concentration, floors, sink, Lipschitz certificate and attack. */
import {
  concentration, entropyFloor, headState, largestLogit, logitSpread, rangeEntropyFloor, sinkGain,
} from "./attention_head.js";
import { at, coalesced, onResize, slider, tell } from "./controls.js";
import { extent, keys, lineChart, svg } from "./drawing.js";
import { ballAttackStep, ballLipschitz, headJacobian, localAttack, localLipschitz } from "./lipschitz.js";
import { shown, sum } from "./numbers.js";
import { stored } from "./stored.js";
import { spectralNorm } from "./symmetric.js";

const SIZE = 4;
const RADIUS = 2;
const TEMPERATURES = Array.from({ length: 17 }, (_, k) => 10 ** (-1.5 + k / 5));
const ATTACK_STEPS = 24;

const power = (x) => 10 ** x;

/** The head of the sliders: W_Q = ||A||^(1/2) core, W_K = ||A||^(1/2) I, and s = 1 / temperature. */
function headOf(draws, { n, core, value, sink, temperature }) {
  const root = Math.sqrt(core);
  const identity = Float64Array.from({ length: SIZE ** 2 }, (_, k) => (k % (SIZE + 1) === 0 ? root : 0));
  const first = draws.X.subarray(0, SIZE);
  return {
    n, d: SIZE, s: 1 / temperature, radius: RADIUS,
    X: draws.X.subarray(0, n * SIZE).map((x) => RADIUS * x),
    WQ: draws.core.map((x) => root * x), WK: identity, WV: draws.value.map((x) => value * x),
    // keys see s W_K b_Q, which points to the first token
    bQ: first.map((x) => (root > 0 ? (sink * x) / root : 0)),
    norms: { core: core / temperature, value, keyBias: sink / temperature },
  };
}

/** All numbers of a head at its tokens. */
function measure(head) {
  const state = headState(head);
  const { n, d, norms, radius } = head;
  const rows = Array.from({ length: n }, (_, i) => state.P.subarray(i * n, i * n + n));
  const logits = Array.from({ length: n }, (_, i) => state.logits.subarray(i * n, i * n + n));
  const found = rows.map((row) => concentration(row));
  const mean = (name) => sum(found.map((each) => each[name])) / n;
  const attack = localAttack(headJacobian(head, state), n * d);
  const ceiling = largestLogit(norms.core, radius, norms.keyBias);
  return {
    state, entropy: mean("entropy"), support: mean("effectiveSupport"), s0: mean("s0"),
    least: Math.min(...found.map((each) => each.entropy)),
    floor: Math.min(...logits.map((row) => entropyFloor(logitSpread(row), n))),
    certified: rangeEntropyFloor(ceiling, n),
    sink: sum(rows.map((row) => row[0])) / n, gain: spectralNorm(state.P, n, n),
    local: localLipschitz(head, state).total, attack: attack.gain,
    ball: ballLipschitz(norms.value, norms.core, radius, n, norms.keyBias),
  };
}

function drawMap(target, P, n) {
  target.setAttribute("viewBox", `0 0 ${n} ${n}`);
  const cells = [];
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j < n; j += 1) {
      cells.push(svg("rect", { x: j, y: i, width: 1.01, height: 1.01, class: "f0",
        "fill-opacity": Math.sqrt(P[i * n + j]).toFixed(3) }));
    }
  }
  target.replaceChildren(...cells);
  target.setAttribute("aria-label", `Attention map of ${n} tokens; rows are queries`);
}

function entropyChart(curves, n, temperature) {
  const line = (name) => curves.map((each, k) => [TEMPERATURES[k], each[name]]);
  const series = [
    { name: "mean entropy", points: line("entropy"), colour: 0, width: 3 },
    { name: "least entropy of a row", points: line("least"), colour: 2, dash: "8 3" },
    { name: "floor from its own logits", points: line("floor"), colour: 1, dash: "6 4" },
    { name: "floor from the norms, any text", points: line("certified"), colour: 3, dash: "2 3" },
  ];
  return {
    series, x: [TEMPERATURES[0], TEMPERATURES[16]], y: [0, Math.log(n) * 1.06], logX: true,
    xLabel: "temperature", yLabel: "entropy of a row, nats",
    marks: [{ x: temperature }, { y: Math.log(n), name: "log n" }],
    label: `Entropy of attention and its floors by temperature for ${n} tokens`,
  };
}

function lipschitzChart(curves, n, temperature) {
  const line = (name) => curves.map((each, k) => [TEMPERATURES[k], each[name]]);
  const series = [
    { name: "certificate in the ball", points: line("ball"), colour: 3, dash: "2 3" },
    { name: "certificate at these tokens", points: line("local"), colour: 1, dash: "6 4" },
    { name: "attack at these tokens", points: line("attack"), colour: 0, width: 3 },
  ];
  return {
    series, x: [TEMPERATURES[0], TEMPERATURES[16]], logX: true, logY: true,
    y: extent(series.flatMap(({ points }) => points.map((point) => point[1])), true),
    xLabel: "temperature", yLabel: "change of output per change of input",
    marks: [{ x: temperature }],
    label: `Lipschitz certificates and attack by temperature for ${n} tokens`,
  };
}

function facts(now, n) {
  tell({
    "head-entropy": `${shown(now.entropy)} of ${shown(Math.log(n))} nats`,
    "head-support": `${shown(now.support)} of ${n}`,
    "head-s0": shown(now.s0),
    "head-floor": `${shown(now.certified)} nats`,
    "head-sink": `${shown(100 * now.sink)} %`,
    "head-gain": `${shown(now.gain)} ≥ ${shown(sinkGain(now.sink, n))}`,
    "head-local": shown(now.local),
    "head-attack": `${shown(now.attack)} (${shown((100 * now.attack) / now.local)} %)`,
    "head-ball": shown(now.ball),
  });
}

/** Wire up the part. */
export function headView() {
  const draws = stored("head");
  let searching = 0;
  const refresh = coalesced(() => draw());
  const sliders = {
    temperature: slider("head-temperature", refresh, power, (t) => shown(t)),
    core: slider("head-core", refresh, power, (t) => shown(t)),
    value: slider("head-value", refresh, power, (t) => shown(t)),
    sink: slider("head-sinking", refresh, (x) => x, (t) => shown(t)),
    n: slider("head-length", refresh, Math.round, String),
  };
  const settings = () => Object.fromEntries(Object.entries(sliders).map(([k, each]) => [k, each.value]));
  const draw = () => {
    searching += 1;
    const chosen = settings();
    const now = measure(headOf(draws, chosen));
    const curves = TEMPERATURES.map((temperature) => measure(headOf(draws, { ...chosen, temperature })));
    drawMap(at("head-map"), now.state.P, chosen.n);
    facts(now, chosen.n);
    tell({ "head-ball-attack": "not searched" });
    for (const [name, chart] of [["entropy", entropyChart], ["lipschitz", lipschitzChart]]) {
      const made = chart(curves, chosen.n, chosen.temperature);
      lineChart(at(`head-${name}-chart`), made);
      keys(at(`head-${name}-keys`), made.series);
    }
  };
  at("head-search").addEventListener("click", () => {
    searching += 1;
    const [mine, head] = [searching, headOf(draws, settings())];
    const ceiling = measure(head).ball;
    let found = { X: Float64Array.from(head.X), best: 0 };
    let step = 0;
    const frame = () => {
      if (mine !== searching) return;
      found = ballAttackStep(head, found, 0.5 * 0.01 ** (step / (ATTACK_STEPS - 1)));
      step += 1;
      const share = shown((100 * found.best) / ceiling);
      const state = step < ATTACK_STEPS ? `, step ${step} of ${ATTACK_STEPS}` : "";
      tell({ "head-ball-attack": `${shown(found.best)} (${share} %)${state}` });
      if (step < ATTACK_STEPS) requestAnimationFrame(frame);
    };
    frame();
  });
  onResize(at("head-entropy-chart").parentElement, draw);
  draw();
}
