/**
 * One attention head: its map, how concentrated it is, and what its norms allow.
 *
 * Logits s (q_i' k_j) with q_i = W_Q'x_i + b_Q and k_j = W_K'x_j; values W_V'x_j, output P X W_V.
 */
import { product, softmax, sum } from "./numbers.js";

/** Queries, keys, values, logits and the map P of tokens X, all flat. */
export function headState({ X, n, d, WQ, WK, WV, bQ, s }) {
  const queries = product(X, WQ, n, d, d).map((value, k) => value + bQ[k % d]);
  const keys = product(X, WK, n, d, d);
  const values = product(X, WV, n, d, d);
  const P = new Float64Array(n * n);
  const logits = new Float64Array(n * n);
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j < n; j += 1) {
      let total = 0;
      for (let a = 0; a < d; a += 1) total += queries[i * d + a] * keys[j * d + a];
      logits[i * n + j] = s * total;
    }
    P.set(softmax([...logits.subarray(i * n, i * n + n)]), i * n);
  }
  return { queries, keys, values, logits, P };
}

/** Of one row: least number of weights with all but tau of the l_2 norm, entropy and others. */
export function concentration(weights, tau = 0.1) {
  const ordered = [...weights].sort((a, b) => a - b);
  const squares = sum(ordered.map((value) => value ** 2));
  const slack = ordered.length * Number.EPSILON * squares;
  const mayGo = squares - (1 - tau) ** 2 * squares + slack;
  let [lost, gone] = [0, 0];
  for (const value of ordered) {
    lost += value ** 2;
    if (lost <= mayGo) gone += 1;
  }
  const entropy = Math.max(-sum(ordered.map((a) => (a > 0 ? a * Math.log(a) : 0))), 0);
  return {
    s0: Math.max(ordered.length - gone, 1), entropy, effectiveSupport: Math.exp(entropy),
    participation: 1 / squares, topWeight: ordered[ordered.length - 1],
  };
}

/** Least entropy of a softmax of T logits at a distance s from their mean. */
export function entropyFloor(spread, T) {
  if (T <= 1) return 0;
  const others = T - 1;
  const beta = Math.exp(-spread * Math.sqrt(T / others));
  const rest = others * beta;
  return Math.log1p(rest) + (spread * Math.sqrt(T * others) * beta) / (1 + rest);
}

/** Least entropy of a softmax of T logits in an interval of length 2z. */
export function rangeEntropyFloor(z, T) {
  if (T <= 1) return 0;
  const width = 2 * z;
  const low = Math.exp(-width);
  const ratio = width > 1e-4 ? (low * (width - 1 + low)) / (1 - low) ** 2 : 0.5 - width / 6;
  const best = Math.floor(T * ratio);
  const entropy = (above) => {
    const k = Math.min(Math.max(above, 1), T - 1);
    const rest = ((T - k) * low) / k;
    return Math.log(k) + (Math.log1p(rest) + (width * rest) / (1 + rest));
  };
  return Math.min(entropy(best), entropy(best + 1));
}

/** The largest |logit| of tokens of norm at most R: R^2 ||A|| + R |a|. */
export function largestLogit(core, radius, keyBias) {
  return radius * (core * radius + keyBias);
}

/** Distance of the logits of a row from their mean. */
export function logitSpread(logits) {
  const mean = sum(logits) / logits.length;
  return Math.sqrt(sum([...logits].map((value) => (value - mean) ** 2)));
}

/** ||P|| >= sqrt(n) alpha for a column of mean alpha. */
export function sinkGain(mass, n) {
  return Math.sqrt(n) * mass;
}
