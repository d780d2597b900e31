/**
 * How much a head's output can change: certificates at the tokens and in a ball, and attacks.
 *
 * papers/attlas_audit/proofs/certificates.md; the output projection is the identity.
 */
import { headState } from "./attention_head.js";
import { product, transposed } from "./numbers.js";
import { largestEigenvalue, spectralNorm } from "./symmetric.js";

const SHARE = 4 / Math.sqrt(27);

/** ||V|| (sqrt(n) (1 + 4/(3 sqrt 3) R (||A|| R + |a|)) + R ||A|| R), for tokens of norm <= R. */
export function ballLipschitz(value, core, radius, n, keyBias) {
  const reach = radius * (core * radius + keyBias);
  return value * (Math.sqrt(n) * (1 + SHARE * reach) + radius * core * radius);
}

/** The bound of Castin, Ablin and Peyre on the same constant, without biases. */
export function castinLipschitz(value, core, radius, n) {
  return value * Math.sqrt(3 * ((core * radius ** 2) ** 2 * (4 * n + 1) + n));
}

/** sum_j p_j (x_j - mean)(y_j - mean)' under a row of weights, d x d. */
function covariance(row, x, y, d) {
  const n = row.length;
  const [meanX, meanY] = [product(row, x, 1, n, d), product(row, y, 1, n, d)];
  const found = new Float64Array(d * d);
  for (let j = 0; j < n; j += 1) {
    for (let a = 0; a < d; a += 1) {
      const left = row[j] * (x[j * d + a] - meanX[a]);
      for (let b = 0; b < d; b += 1) found[a * d + b] += left * (y[j * d + b] - meanY[b]);
    }
  }
  return found;
}

/** The certificate at the tokens at hand, in its three parts. */
export function localLipschitz(head, state = headState(head)) {
  const { n, d, WQ, WK, WV, s } = head;
  const { P, queries, keys, values } = state;
  let asking = 0;
  const lambda = new Float64Array(n);
  const turned = transposed(WQ, d, d);
  for (let i = 0; i < n; i += 1) {
    const row = P.subarray(i * n, i * n + n);
    lambda[i] = Math.max(largestEigenvalue(covariance(row, values, values, d), d), 0);
    const cross = product(covariance(row, values, keys, d), turned, d, d, d);
    asking = Math.max(asking, s * spectralNorm(cross, d, d));
  }
  let asked = 0;
  for (let j = 0; j < n; j += 1) {
    const moment = new Float64Array(d * d);
    for (let i = 0; i < n; i += 1) {
      const weight = lambda[i] * P[i * n + j];
      for (let a = 0; a < d; a += 1) {
        const left = weight * queries[i * d + a];
        for (let b = 0; b < d; b += 1) moment[a * d + b] += left * queries[i * d + b];
      }
    }
    const inner = product(product(WK, moment, d, d, d), transposed(WK, d, d), d, d, d);
    asked = Math.max(asked, s * Math.sqrt(Math.max(largestEigenvalue(inner, d), 0)));
  }
  const read = spectralNorm(WV, d, d) * spectralNorm(P, n, n);
  return { read, asking, asked, total: read + asking + asked };
}

/** The Jacobian of X -> P(X) X W_V, an (n d) x (n d) matrix, in closed form. */
export function headJacobian(head, state = headState(head)) {
  const { n, d, WQ, WK, WV, s } = head;
  const { P, queries, keys, values } = state;
  const size = n * d;
  const J = new Float64Array(size * size);
  const out = product(P, values, n, n, d);
  const toQuery = transposed(WQ, d, d);
  const keySide = product(queries, transposed(WK, d, d), n, d, d);
  for (let i = 0; i < n; i += 1) {
    const row = P.subarray(i * n, i * n + n);
    const own = product(covariance(row, values, keys, d), toQuery, d, d, d);
    for (let a = 0; a < d; a += 1) {
      const start = (i * d + a) * size;
      for (let b = 0; b < d; b += 1) J[start + i * d + b] += s * own[a * d + b];
      for (let j = 0; j < n; j += 1) {
        const pull = s * row[j] * (values[j * d + a] - out[i * d + a]);
        for (let b = 0; b < d; b += 1) {
          J[start + j * d + b] += row[j] * WV[b * d + a] + pull * keySide[i * d + b];
        }
      }
    }
  }
  return J;
}

/** J u or, turned, J'u. */
function applied(J, u, size, turned) {
  const out = new Float64Array(size);
  for (let i = 0; i < size; i += 1) {
    if (turned) for (let j = 0; j < size; j += 1) out[j] += J[i * size + j] * u[i];
    else {
      let total = 0;
      for (let j = 0; j < size; j += 1) total += J[i * size + j] * u[j];
      out[i] = total;
    }
  }
  return out;
}

function unit(u) {
  const length = Math.hypot(...u);
  return length > 0 ? u.map((value) => value / length) : u;
}

/** Power iteration on J'J: the largest gain |J u| that it reaches, and its direction. */
export function localAttack(J, size, steps = 60, start = null) {
  let u = unit(start ?? Float64Array.from({ length: size }, (_, k) => 1 + ((k * 0.618034) % 1)));
  for (let step = 0; step < steps; step += 1) u = unit(applied(J, applied(J, u, size), size, true));
  return { gain: Math.hypot(...applied(J, u, size)), u };
}

/** Tokens drawn back into the ball of radius R. */
function inside(X, d, radius) {
  const out = Float64Array.from(X);
  for (let i = 0; i < X.length; i += d) {
    const length = Math.hypot(...out.subarray(i, i + d));
    if (length > radius) for (let a = 0; a < d; a += 1) out[i + a] *= radius / length;
  }
  return out;
}

/** |J(X) u| for a fixed direction u, from the change of the output at first order. */
export function gainAt(head, X, u) {
  const { n, d, WQ, WK, WV, s } = head;
  const { queries, keys, values, P } = headState({ ...head, X });
  const [dq, dk, dv] = [WQ, WK, WV].map((W) => product(u, W, n, d, d));
  let total = 0;
  for (let i = 0; i < n; i += 1) {
    const change = new Float64Array(n);
    let mean = 0;
    for (let j = 0; j < n; j += 1) {
      for (let a = 0; a < d; a += 1) {
        change[j] += dq[i * d + a] * keys[j * d + a] + queries[i * d + a] * dk[j * d + a];
      }
      mean += P[i * n + j] * change[j];
    }
    for (let a = 0; a < d; a += 1) {
      let moved = 0;
      for (let j = 0; j < n; j += 1) {
        const pull = s * (change[j] - mean) * values[j * d + a];
        moved += P[i * n + j] * (pull + dv[j * d + a]);
      }
      total += moved ** 2;
    }
  }
  return Math.sqrt(total);
}

/** One step of the search over tokens in the ball: the direction, then the tokens in turn. */
export function ballAttackStep(head, { X, best }, share) {
  const { n, d, radius } = head;
  const size = n * d;
  const { gain, u } = localAttack(headJacobian({ ...head, X }), size, 12);
  const along = new Float64Array(size);
  const h = 1e-5 * radius;
  for (let k = 0; k < size; k += 1) {
    const [up, down] = [Float64Array.from(X), Float64Array.from(X)];
    up[k] += h;
    down[k] -= h;
    along[k] = gainAt(head, up, u) - gainAt(head, down, u);
  }
  let largest = 0;
  for (let i = 0; i < size; i += d) largest = Math.max(largest, Math.hypot(...along.subarray(i, i + d)));
  const step = largest > 0 ? (share * radius) / largest : 0;
  return { X: inside(X.map((value, k) => value + step * along[k]), d, radius), best: Math.max(best, gain) };
}
