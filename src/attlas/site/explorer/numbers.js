/** Sums, norms and small matrices in float64. Matrices are flat arrays, row by row. */

/** The sum of an array. */
export function sum(values) {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

/** x'y. */
export function dot(x, y) {
  let total = 0;
  for (let i = 0; i < x.length; i += 1) total += x[i] * y[i];
  return total;
}

/** W z for W of shape [rows, z.length]. */
export function matVec(W, z) {
  const d = z.length;
  return Array.from({ length: W.length / d }, (_, i) => {
    let total = 0;
    for (let j = 0; j < d; j += 1) total += W[i * d + j] * z[j];
    return total;
  });
}

/** A B for A of shape [r, k] and B of shape [k, c]. */
export function product(A, B, r, k, c) {
  const out = new Float64Array(r * c);
  for (let i = 0; i < r; i += 1) {
    for (let l = 0; l < k; l += 1) {
      const a = A[i * k + l];
      if (a === 0) continue;
      for (let j = 0; j < c; j += 1) out[i * c + j] += a * B[l * c + j];
    }
  }
  return out;
}

/** A' for A of shape [r, c]. */
export function transposed(A, r, c) {
  const out = new Float64Array(r * c);
  for (let i = 0; i < r; i += 1) for (let j = 0; j < c; j += 1) out[j * r + i] = A[i * c + j];
  return out;
}

/** q = p / (p - 1). */
export function dualExponent(p) {
  return p === Infinity ? 1 : p / (p - 1);
}

/** The entrywise norm (sum |a|^p)^(1/p), the largest entry divided out first. */
export function entrywiseNorm(array, p) {
  let largest = 0;
  for (const value of array) largest = Math.max(largest, Math.abs(value));
  if (!(largest > 0) || p === Infinity) return largest;
  let total = 0;
  for (const value of array) if (value !== 0) total += Math.abs(value / largest) ** p;
  return largest * total ** (1 / p);
}

/** sign(x) |x|^a, zero at zero. */
export function signedPower(x, a) {
  return x === 0 ? 0 : Math.sign(x) * Math.abs(x) ** a;
}

/** The softmax of logits, and what it is made of: exponentials relative to the largest logit. */
export function softmax(logits) {
  const largest = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - largest));
  const total = sum(weights);
  return weights.map((weight) => weight / total);
}

/** log(1 + exp(x)) without overflow. */
export function softplus(x) {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

/** 1 / (1 + exp(-x)) without overflow. */
export function sigmoid(x) {
  return x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x));
}

/** The solution of A x = b by elimination with pivots; null where A is singular. */
export function solve(A, b) {
  const n = b.length;
  const M = Array.from({ length: n }, (_, i) => [...A.slice(i * n, i * n + n), b[i]]);
  for (let k = 0; k < n; k += 1) {
    let pivot = k;
    for (let i = k + 1; i < n; i += 1) if (Math.abs(M[i][k]) > Math.abs(M[pivot][k])) pivot = i;
    if (!(Math.abs(M[pivot][k]) > 0) || !Number.isFinite(M[pivot][k])) return null;
    [M[k], M[pivot]] = [M[pivot], M[k]];
    for (let i = k + 1; i < n; i += 1) {
      const factor = M[i][k] / M[k][k];
      if (factor !== 0) for (let j = k; j <= n; j += 1) M[i][j] -= factor * M[k][j];
    }
  }
  const x = new Array(n).fill(0);
  for (let i = n - 1; i >= 0; i -= 1) {
    let rest = M[i][n];
    for (let j = i + 1; j < n; j += 1) rest -= M[i][j] * x[j];
    x[i] = rest / M[i][i];
  }
  return x;
}

/** Float64 numbers from base64, little-endian. */
export function fromBase64(text) {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

const SUPERSCRIPT = Object.fromEntries([..."-0123456789"].map((sign, i) => [sign, [..."⁻⁰¹²³⁴⁵⁶⁷⁸⁹"][i]]));

/** Numbers as a reader sees them: three digits, or a power of ten. */
export function shown(value, digits = 3) {
  if (value === Infinity) return "∞";
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const plain = size >= 1e-3 && size < 1e5;
  if (plain) return String(Number(value.toPrecision(digits))).replace("-", "−");
  const [mantissa, exponent] = value.toExponential(1).split("e");
  const raised = [...String(Number(exponent))].map((sign) => SUPERSCRIPT[sign]).join("");
  const factor = Number(mantissa) === 1 ? "" : `${Number(mantissa)}\u00a0×\u00a0`;
  return `${factor}10${raised}`.replace("-", "−");
}
