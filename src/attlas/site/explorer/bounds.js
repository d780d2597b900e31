/**
 * Bounds on the generalisation gap of one attention layer, Theorem 4.1 of trauger2023sequence.
 *
 * Covers of W_QK, the chain of Dudley's bound, and the union cost of norms read off after training.
 */
import { softplus, sum } from "./numbers.js";

const geomspace = (low, high, count) => Array.from(
  { length: count }, (_, k) => low * (high / low) ** (k / (count - 1)),
);
const RATIOS = [...geomspace(1.5, 12, 60), ...geomspace(15, 1e6, 40)];
const LEVELS = 48;
const GRID_RATIOS = geomspace(0.01, 1, 25).map((step) => 1 + step);
const RESOLUTIONS = [1, 4, 7, 10];
const SMALLEST = 2 ** -1000;
/** Of the search for the least m: where it begins, where it gives up, and its steps. */
const [LEAST, DECADES, HALVINGS] = [2, 250, 36];

/** The rows in order: the trivial bound, five covers and parameter counting. */
export const ROWS = ["trivial", "1,1", "1,inf", "2,1", "log T", "log m", "parameters"];

/** rho^-j by ratio; the squares of lower levels would overflow in single precision. */
const SHARES = RATIOS.map((ratio) => Array.from(
  { length: LEVELS },
  (_, j) => Math.exp(-Math.min(Math.log(ratio) * (j + 1), Math.log(1e30) / 2)),
));

/** The chain at distances R rho^-j, minimised over its levels and ratios. */
export function dudleyChain(entropy, m, radius) {
  let best = radius;
  for (let r = 0; r < RATIOS.length; r += 1) {
    const ratio = RATIOS[r];
    let links = 0;
    for (const share of SHARES[r]) {
      const level = radius * share;
      const size = entropy(level);
      // a level of entropy above m / 2 never pays, nor do those below it
      if (!(size <= m / 2)) break;
      links += (ratio + 1) * level * Math.sqrt((2 * size) / m);
      best = Math.min(best, level + links);
      if (links >= best) break;
    }
  }
  return best;
}

/** The cover of Edelman et al. (2022) at N points, C of log N <= C / eps^2. */
export function edelmanCover(norm, Bx, points, k, m) {
  const square = (norm * Bx) ** 2;
  if (k === 1) return square * Math.log(2 * points + 1);
  const size = Math.log(2 * k * points + 1);
  const cells = Math.log(Math.max(m / 2, 2));
  const costs = GRID_RATIOS.map((ratio) => (
    ratio * size + Math.log(Math.max(Math.ceil(cells / Math.log(ratio)), 1))
  ));
  return square * Math.min(...costs);
}

/** Covers whose size does not depend on the number of inputs. */
export function ballCover(ball, norm, Bx, k, d, m) {
  const square = (norm * Bx) ** 2;
  if (ball === "1,1") return square * Math.log(2 * d * k + 1);
  if (ball === "1,inf") return square * (d * Math.log(2 * k + 1));
  return edelmanCover(norm, Bx, d, k, m);
}

/** 2 B chain(ln 2d + (b B_x)^2 C / eps^2). */
export function singleLayer(B, C, Bx, d, m, largest) {
  const D = (largest * Bx) ** 2 * C;
  return 2 * B * dudleyChain((eps) => Math.log(2 * d) + D / eps ** 2, m, largest);
}

/** 2 B chain(ln 2d + p ln(1 + 2 B_x^3 norm / eps)), with 4 for a factored matrix. */
export function parameterCounting(B, norm, Bx, parameters, d, m, factored) {
  const scale = (factored ? 4 : 2) * Bx ** 3 * norm;
  const entropy = (eps) => Math.log(2 * d) + parameters * Math.log1p(scale / eps);
  return 2 * B * dudleyChain(entropy, m, Bx);
}

/** Octave and point of a norm on the grid of 2^s points per octave. */
function cell(norm, resolution) {
  const size = Math.max(norm, SMALLEST);
  let octave = Math.floor(Math.log2(size)) + 1;
  if (size / 2 ** octave >= 1) octave += 1;
  if (size / 2 ** octave < 0.5) octave -= 1;
  const point = Math.ceil((2 * (size / 2 ** octave) - 1) * 2 ** resolution);
  return point === 0 ? [octave - 1, 2 ** resolution] : [octave, point];
}

/** The next point of the grid. */
export function roundUpNorm(norm, resolution) {
  const [octave, point] = cell(norm, resolution);
  return (1 + point / 2 ** resolution) * 2 ** (octave - 1);
}

/** Nats of a norm that was rounded up to the grid. */
export function normGridCost(norm, resolution) {
  const octave = Math.abs(cell(norm, resolution)[0]);
  return resolution * Math.log(2) + Math.log(1.5) + Math.log((octave + 1) * (octave + 2));
}

/** 3 c sqrt((ln(2 / delta) + union cost) / (2 m)), the gap of a class without complexity. */
export function tail(m, delta, range, union) {
  return 3 * range * Math.sqrt((Math.log(2 / delta) + union) / (2 * m));
}

/** What every complexity is below: that of the largest output. */
function trivial({ heads, outer, tokens }) {
  return heads * outer * tokens.largest;
}

/** The Rademacher complexity by row, heads that share their norms added up. */
export function complexities(layer, m, names = ROWS) {
  const { heads, d, T, rank, outer, norms, tokens } = layer;
  const { two, one, largest } = tokens;
  const cover = {
    "1,1": () => ballCover("1,1", norms.total, two, d, d, m),
    "1,inf": () => ballCover("1,inf", norms.column, one, d, d, m),
    "2,1": () => ballCover("2,1", norms.rowSum, one, d, d, m),
    "log T": () => edelmanCover(norms.rowSum, two, m * T, d, m),
    "log m": () => edelmanCover(norms.columnSum, two, m, d, m),
  };
  const most = trivial(layer);
  return names.map((name) => {
    if (name === "trivial") return most;
    if (name === "parameters") {
      const counted = [[d ** 2, false], [2 * d * rank, true]].map(([parameters, factored]) => (
        parameterCounting(outer, norms.spectral, two, parameters, d, m, factored)
      ));
      return Math.min(heads * Math.min(...counted), most);
    }
    return Math.min(heads * singleLayer(outer, cover[name](), two, d, m, largest), most);
  });
}

/** The same class with norms raised to a grid. */
function rounded(layer, resolution) {
  const up = (norm) => roundUpNorm(norm, resolution);
  const norms = Object.fromEntries(Object.entries(layer.norms).map(([k, norm]) => [k, up(norm)]));
  const [readout, output, value] = [layer.readout, layer.output, layer.value].map(up);
  return { ...layer, norms, outer: readout * layer.lipschitz * output * value };
}

/** Nats of the norms that each row uses. */
function unionCosts(layer, resolution, names) {
  const { heads, norms } = layer;
  const cost = (norm) => normGridCost(norm, resolution);
  const base = cost(layer.readout) + heads * (cost(layer.output) + cost(layer.value));
  const either = heads * Math.log(2);
  const own = {
    trivial: 0, "1,1": heads * cost(norms.total), "1,inf": heads * cost(norms.column) + either,
    "2,1": heads * cost(norms.rowSum) + either, "log T": heads * cost(norms.rowSum) + either,
    "log m": heads * cost(norms.columnSum), parameters: heads * cost(norms.spectral),
  };
  return names.map((name) => base + own[name]);
}

/**
 * Every bound on the gap, or those named: {name, gap, complexity, confidence, union, informed}.
 *
 * `layer` holds sizes, norms and whether they were fixed in advance; `entries` is how many bounds
 * share the probability delta when they were not.
 */
export function compareBounds(layer, m, options, names = ROWS) {
  const { delta, lossLipschitz = 1, range = 1, fixed, entries } = options;
  const R = complexities(layer, m, names);
  const confidence = tail(m, delta, range, 0);
  const grids = fixed ? [] : RESOLUTIONS.map((resolution) => {
    const raised = complexities(rounded(layer, resolution), m, names);
    const extra = Math.log(entries * RESOLUTIONS.length);
    return unionCosts(layer, resolution, names).map((nats, row) => (
      2 * lossLipschitz * raised[row] + tail(m, delta, range, nats + extra)
    ));
  });
  return names.map((name, row) => {
    const complexity = 2 * lossLipschitz * R[row];
    const whole = fixed ? complexity + confidence : Math.min(...grids.map((grid) => grid[row]));
    return {
      name, gap: whole, complexity, confidence, union: fixed ? 0 : whole - complexity - confidence,
      informed: name === "trivial" || R[row] < trivial(layer) * (1 - 1e-9),
    };
  });
}

/** Entropy by parameter counting of several matrices, as the deep bounds use it. */
export function parameterEntropy(parameters, scales, beta, epsilon) {
  const total = sum(parameters);
  return sum(parameters.map((p, i) => {
    const logScale = Math.log(scales[i]) + Math.log(beta[i]) + Math.log(total / p);
    return p * softplus(logScale - Math.log(epsilon));
  }));
}

/**
 * Least m at which a bound is below the range of the loss and stays there, a whole number up to
 * 1e15; infinite if none up to 1e250 is. The search is that of the library, step by step.
 */
export function samplesUntilNonvacuous(layer, name, options) {
  const good = (m) => {
    const [found] = compareBounds(layer, m, options, [name]);
    return found.gap < (options.range ?? 1) && found.informed;
  };
  if (!good(10 ** DECADES)) return Infinity;
  if (good(LEAST)) return LEAST;
  let [low, high] = [Math.log10(LEAST), DECADES];
  for (let k = 0; k < HALVINGS; k += 1) {
    const middle = (low + high) / 2;
    if (good(10 ** middle)) high = middle;
    else low = middle;
  }
  return high < 15 ? Math.max(Math.ceil(10 ** high), LEAST) : 10 ** high;
}
