/** Gradient descent on the factors of W = K Q', whose bias is the nuclear norm. */
import { scaledGradient } from "./mirror_descent.js";
import { entrywiseNorm, product, transposed } from "./numbers.js";
import { eigenvalues } from "./symmetric.js";

/** K Q' for factors of shape [d, m]. */
function multiplied(K, Q, d) {
  const m = K.length / d;
  return [...product(K, transposed(Q, d, m), d, m, d)];
}

/**
 * The path of W = K Q' at the steps `recordAt`: grad_K = G Q and grad_Q = G' K, divided by the norm
 * of both together.
 */
export function trainFactored(data, K0, Q0, { rate, recordAt }) {
  const d = data.z[0].length;
  const m = K0.length / d;
  let [K, Q] = [[...K0], [...Q0]];
  const wanted = new Set(recordAt);
  const path = [];
  for (let step = 0; step <= recordAt[recordAt.length - 1]; step += 1) {
    const W = multiplied(K, Q, d);
    const { G, loss } = scaledGradient(W, data);
    if (wanted.has(step)) path.push({ step, W, loss });
    const alongK = product(G, Q, d, d, m);
    const alongQ = product(transposed(G, d, d), K, d, d, m);
    const norm = Math.hypot(entrywiseNorm(alongK, 2), entrywiseNorm(alongQ, 2)) || 1;
    K = K.map((value, j) => value - (rate * alongK[j]) / norm);
    Q = Q.map((value, j) => value - (rate * alongQ[j]) / norm);
  }
  return { path };
}

/** The singular values of a square matrix, the largest first. */
export function singularValues(W, d) {
  const squares = eigenvalues(product(transposed(W, d, d), W, d, d, d), d);
  return squares.map((value) => Math.sqrt(Math.max(value, 0))).sort((a, b) => b - a);
}
