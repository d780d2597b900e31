/** Eigenvalues of symmetric matrices, and the norms that are made of them. */
import { product, transposed } from "./numbers.js";

/** All eigenvalues of a symmetric n x n matrix by Jacobi's rotations, in no order. */
export function eigenvalues(matrix, n) {
  const A = Float64Array.from(matrix);
  for (let sweep = 0; sweep < 40; sweep += 1) {
    let [off, all] = [0, 0];
    for (let i = 0; i < n; i += 1) {
      for (let j = 0; j < n; j += 1) {
        all += A[i * n + j] ** 2;
        if (i !== j) off += A[i * n + j] ** 2;
      }
    }
    if (!(off > 1e-32 * all)) break;
    for (let i = 0; i < n; i += 1) for (let j = i + 1; j < n; j += 1) rotate(A, n, i, j);
  }
  return Array.from({ length: n }, (_, i) => A[i * n + i]);
}

/** One rotation, which makes the entry (i, j) zero. */
function rotate(A, n, i, j) {
  const entry = A[i * n + j];
  if (entry === 0) return;
  const tau = (A[j * n + j] - A[i * n + i]) / (2 * entry);
  const t = (tau >= 0 ? 1 : -1) / (Math.abs(tau) + Math.hypot(1, tau));
  const c = 1 / Math.hypot(1, t);
  const s = t * c;
  for (let k = 0; k < n; k += 1) {
    const [a, b] = [A[i * n + k], A[j * n + k]];
    A[i * n + k] = c * a - s * b;
    A[j * n + k] = s * a + c * b;
  }
  for (let k = 0; k < n; k += 1) {
    const [a, b] = [A[k * n + i], A[k * n + j]];
    A[k * n + i] = c * a - s * b;
    A[k * n + j] = s * a + c * b;
  }
}

/** The largest eigenvalue of a symmetric matrix. */
export function largestEigenvalue(matrix, n) {
  return Math.max(...eigenvalues(matrix, n));
}

/** The largest singular value of an r x c matrix. */
export function spectralNorm(M, r, c) {
  const turned = transposed(M, r, c);
  const gram = r < c ? product(M, turned, r, c, r) : product(turned, M, c, r, c);
  return Math.sqrt(Math.max(largestEigenvalue(gram, Math.min(r, c)), 0));
}
