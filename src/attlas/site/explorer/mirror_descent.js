/**
 * Token selection by l_p mirror descent, and how far its direction is from another.
 *
 * L(W) = (1/n) sum_i log(1 + exp(-gamma_i' s_i)), gamma_i = y_i X_i v, s_i = softmax(X_i W z_i).
 */
import { dot, dualExponent, entrywiseNorm, signedPower, softplus, sum } from "./numbers.js";

/** Token scores gamma_it = y_i v' X_it. */
export function tokenScores({ X, y, v }) {
  return X.map((sample, i) => sample.map((token) => y[i] * dot(v, token)));
}

/** The token of largest score of each sample. */
export function optimalTokens(data) {
  return tokenScores(data).map((scores) => scores.indexOf(Math.max(...scores)));
}

/** What the inner loop needs of the data: sizes, tokens, queries and scores in flat arrays. */
function prepared(data) {
  const { X, z } = data;
  const [n, T, d] = [X.length, X[0].length, z[0].length];
  return { n, T, d, X: Float64Array.from(X.flat(2)), z: Float64Array.from(z.flat()),
    scores: Float64Array.from(tokenScores(data).flat()),
    h: new Float64Array(n * T), logs: new Float64Array(n * T), gaps: new Float64Array(n * T),
    top: new Int32Array(n), G: new Float64Array(d * d) };
}

/** The logarithms of the coefficients of sample i, relative to its most attended token. */
function readSample(W, work, i) {
  const { T, d, X, z, scores, h, logs, gaps } = work;
  const start = i * T;
  let top = 0;
  for (let t = 0; t < T; t += 1) {
    let value = 0;
    for (let a = 0; a < d; a += 1) {
      let turned = 0;
      for (let b = 0; b < d; b += 1) turned += W[a * d + b] * z[i * d + b];
      value += X[(start + t) * d + a] * turned;
    }
    h[start + t] = value;
    if (value > h[start + top]) top = t;
  }
  const [highest, held] = [h[start + top], scores[start + top]];
  let [total, mean] = [0, 0];
  for (let k = start; k < start + T; k += 1) {
    h[k] -= highest;
    gaps[k] = scores[k] - held;
    const weight = Math.exp(h[k]);
    total += weight;
    mean += weight * gaps[k];
  }
  mean /= total;
  const slope = -softplus(held + mean) - Math.log(total);
  let largest = -Infinity;
  for (let k = start; k < start + T; k += 1) {
    gaps[k] -= mean;
    logs[k] = k === start + top ? -Infinity : slope + h[k];
    largest = Math.max(largest, logs[k]);
  }
  work.top[i] = start + top;
  return { largest, loss: softplus(-(held + mean)) };
}

/** The gradient into work.G, with its scale, its rounding and the loss. */
function readGradient(W, work) {
  const { n, T, d, X, z, h, logs, gaps, G } = work;
  let [logScale, loss, noise, deepest] = [-Infinity, 0, 0, 0];
  for (let i = 0; i < n; i += 1) {
    const found = readSample(W, work, i);
    logScale = Math.max(logScale, found.largest);
    loss += found.loss / n;
  }
  G.fill(0);
  for (let k = 0; k < n * T; k += 1) {
    deepest = Math.min(deepest, h[k]);
    if (logs[k] === -Infinity) continue;
    const i = Math.floor(k / T);
    const c = (-Math.exp(logs[k] - logScale) * gaps[k]) / n;
    for (let a = 0; a < d; a += 1) {
      const part = c * (X[k * d + a] - X[work.top[i] * d + a]);
      for (let b = 0; b < d; b += 1) {
        G[a * d + b] += part * z[i * d + b];
        noise += Math.abs(part * z[i * d + b]);
      }
    }
  }
  return { logScale, loss, noise: noise * (4 - deepest) * Number.EPSILON };
}

/**
 * The gradient of L as a matrix G of moderate size times exp(logScale), Lemma 17 of
 * julistiono2024optimizing, with the loss and the rounding of G.
 */
export function scaledGradient(W, data) {
  const work = prepared(data);
  return { ...readGradient(W, work), G: [...work.G] };
}

/** grad psi(w) = sign(w) |w|^(p-1), entry by entry. */
export function mirrorMap(w, p) {
  return w.map((value) => signedPower(value, p - 1));
}

/** The inverse mirror map sign(u) |u|^(1/(p-1)). */
export function inverseMirrorMap(u, p) {
  return u.map((value) => signedPower(value, 1 / (p - 1)));
}

/** One plain step grad psi(w+) = grad psi(w) - eta g. */
export function mirrorStep(w, gradient, rate, p) {
  const u = mirrorMap(w, p);
  return inverseMirrorMap(u.map((value, j) => value - rate * gradient[j]), p);
}

/** Numbers of steps at which a path is recorded: each of the first ones, then geometrically. */
export function recordedSteps(steps, count) {
  const found = new Set([0, steps]);
  for (let k = 0; k < count; k += 1) found.add(Math.round(steps ** (k / (count - 1))));
  return [...found].sort((a, b) => a - b);
}

/**
 * The path of l_p mirror descent: W at the steps `recordAt`, with the loss.
 *
 * Steps are divided by the dual norm of the gradient, and stop where the gradient is at most its own
 * rounding error; `plain` ones are neither.
 */
export function trainSelection(data, W0, { p, rate, recordAt, plain = false }) {
  const q = dualExponent(p);
  const work = prepared(data);
  const u = Float64Array.from(mirrorMap(W0, p));
  let moving = true;
  const path = [];
  const last = recordAt[recordAt.length - 1];
  const wanted = new Set(recordAt);
  for (let step = 0; step <= last; step += 1) {
    if (!moving && !wanted.has(step)) continue;
    const W = u.map((value) => signedPower(value, 1 / (p - 1)));
    const found = readGradient(W, work);
    if (wanted.has(step)) path.push({ step, W: [...W], loss: found.loss });
    if (!moving) continue;
    const norm = plain ? Math.exp(-found.logScale) : entrywiseNorm(work.G, q);
    moving = plain || norm > found.noise;
    if (moving) for (let j = 0; j < u.length; j += 1) u[j] -= (rate * work.G[j]) / norm;
  }
  return { path, moving };
}

/** One entry of the Bregman divergence D(w, v), free of cancellation as w -> v. */
function bregmanTerm(w, v, p) {
  const step = w - v;
  const t = v === 0 ? 1 : step / v;
  if (Math.abs(t) * Math.max(1, p / 3) <= 1 / 16) {
    let total = 0;
    let coefficient = 0;
    for (let j = 2; j < 15; j += 1) {
      coefficient = j === 2 ? (p - 1) / 2 : (coefficient * (p - j + 1)) / j;
      total += coefficient * t ** j;
    }
    return Math.abs(v === 0 ? 1 : v) ** p * total;
  }
  const psi = (x) => Math.abs(x) ** p / p;
  return psi(w) - psi(v) - signedPower(v, p - 1) * step;
}

/** The Bregman divergence of psi = (1/p) ||.||_p^p. */
export function bregman(w, v, p) {
  return sum(w.map((value, j) => Math.max(bregmanTerm(value, v[j], p), 0)));
}

/** D_psi(target / ||target||_p, W / ||W||_p); NaN for a zero matrix. */
export function directionDivergence(W, target, p) {
  const [a, b] = [entrywiseNorm(target, p), entrywiseNorm(W, p)];
  if (!(a > 0 && b > 0)) return NaN;
  return bregman(target.map((value) => value / a), W.map((value) => value / b), p);
}
