/**
 * Multi-head self-attention with a linear decoder, trained on a tokenized mixture.
 *
 * Phi(X) = H^(-1/2) sum_h <U_h, softmax(X W_h X') X>, eq. (2) of deora2023optimization.
 */
import { sigmoid, softmax, softplus, sum } from "./numbers.js";

/** A model with all parameters zero: U of shape [H, T, d], W of shape [H, d, d]. */
export function zeroModel(H, T, d) {
  return { H, T, d, U: new Float64Array(H * T * d), W: new Float64Array(H * d * d) };
}

/** One randomised step from zero: U_h = (alpha_h / 2) 1 (mean_i y_i m_i)', W_h = 0. */
export function oneStepModel({ X, y, n, T, d }, alphas) {
  const read = new Float64Array(d);
  for (let i = 0; i < n; i += 1) {
    for (let t = 0; t < T; t += 1) {
      for (let a = 0; a < d; a += 1) read[a] += (y[i] * X[(i * T + t) * d + a]) / (2 * n * T);
    }
  }
  const model = zeroModel(alphas.length, T, d);
  alphas.forEach((alpha, h) => {
    for (let t = 0; t < T; t += 1) {
      for (let a = 0; a < d; a += 1) model.U[(h * T + t) * d + a] = alpha * read[a];
    }
  });
  return model;
}

/** The attention of head h on one sample, [T, T], and P X, [T, d]. */
function readHead(model, X, h) {
  const { T, d, W } = model;
  const P = new Float64Array(T * T);
  const mixed = new Float64Array(T * d);
  for (let t = 0; t < T; t += 1) {
    const turned = new Float64Array(d);
    for (let a = 0; a < d; a += 1) {
      const x = X[t * d + a];
      for (let b = 0; b < d; b += 1) turned[b] += x * W[(h * d + a) * d + b];
    }
    const logits = Array.from({ length: T }, (_, s) => {
      let total = 0;
      for (let b = 0; b < d; b += 1) total += turned[b] * X[s * d + b];
      return total;
    });
    P.set(softmax(logits), t * T);
    for (let s = 0; s < T; s += 1) {
      for (let a = 0; a < d; a += 1) mixed[t * d + a] += P[t * T + s] * X[s * d + a];
    }
  }
  return { P, mixed };
}

/** Phi on one sample; with `into`, its gradient times `scale` is added there. */
function readSample(model, X) {
  const { H, T, d, U } = model;
  const heads = [];
  let total = 0;
  for (let h = 0; h < H; h += 1) {
    const head = readHead(model, X, h);
    for (let k = 0; k < T * d; k += 1) total += U[h * T * d + k] * head.mixed[k];
    heads.push(head);
  }
  return { output: total / Math.sqrt(H), heads };
}

function addGradient(model, X, heads, scale, into) {
  const { H, T, d, U } = model;
  const share = scale / Math.sqrt(H);
  heads.forEach(({ P, mixed }, h) => {
    for (let k = 0; k < T * d; k += 1) into.U[h * T * d + k] += share * mixed[k];
    for (let t = 0; t < T; t += 1) {
      const own = (h * T + t) * d;
      const values = new Float64Array(T);
      let mean = 0;
      for (let s = 0; s < T; s += 1) {
        for (let a = 0; a < d; a += 1) values[s] += U[own + a] * X[s * d + a];
        mean += P[t * T + s] * values[s];
      }
      const key = new Float64Array(d);
      for (let s = 0; s < T; s += 1) {
        const weight = share * P[t * T + s] * (values[s] - mean);
        for (let b = 0; b < d; b += 1) key[b] += weight * X[s * d + b];
      }
      for (let a = 0; a < d; a += 1) {
        const x = X[t * d + a];
        for (let b = 0; b < d; b += 1) into.W[(h * d + a) * d + b] += x * key[b];
      }
    }
  });
}

/** Tokens of sample i. */
function sample({ X, T, d }, i) {
  return X.subarray(i * T * d, (i + 1) * T * d);
}

/** The logistic risk with its gradient. */
export function riskGradient(model, data) {
  const into = zeroModel(model.H, model.T, model.d);
  const X = Float64Array.from(data.X);
  let risk = 0;
  for (let i = 0; i < data.n; i += 1) {
    const tokens = sample({ ...data, X }, i);
    const { output, heads } = readSample(model, tokens);
    const margin = data.y[i] * output;
    risk += softplus(-margin) / data.n;
    addGradient(model, tokens, heads, (-data.y[i] * sigmoid(-margin)) / data.n, into);
  }
  return { risk, U: into.U, W: into.W };
}

/** Risk, share of errors, and mean weight of the relevant tokens. */
export function evaluate(model, data) {
  const X = Float64Array.from(data.X);
  let [risk, wrong, mass] = [0, 0, 0];
  for (let i = 0; i < data.n; i += 1) {
    const { output, heads } = readSample(model, sample({ ...data, X }, i));
    const margin = data.y[i] * output;
    risk += softplus(-margin) / data.n;
    wrong += (margin > 0 ? 0 : 1) / data.n;
    if (data.relevant) mass += relevantMass(heads, data, i) / data.n;
  }
  return { risk, wrong, mass };
}

function relevantMass(heads, { T, relevant }, i) {
  return sum(heads.map(({ P }) => {
    let total = 0;
    for (let t = 0; t < T; t += 1) {
      for (let s = 0; s < T; s += 1) if (relevant[i * T + s]) total += P[t * T + s];
    }
    return total / T;
  })) / heads.length;
}

/** One step of gradient descent, in place; the risk before it. */
export function descend(model, data, rate) {
  const { risk, U, W } = riskGradient(model, data);
  for (let k = 0; k < U.length; k += 1) model.U[k] -= rate * U[k];
  for (let k = 0; k < W.length; k += 1) model.W[k] -= rate * W[k];
  return risk;
}

/** The model after some steps from where another is; that one stays as it was. */
export function trained(model, data, rate, steps) {
  const copy = { ...model, U: Float64Array.from(model.U), W: Float64Array.from(model.W) };
  const risks = [];
  for (let k = 0; k < steps; k += 1) risks.push(descend(copy, data, rate));
  return { ...copy, risks };
}

/**
 * The first n samples of the mixture (DM1) from stored draws: patterns of norm S, and irrelevant
 * tokens nu_j + z with noise z of norm Z in the directions that no pattern has.
 */
export function mixtureSamples(draws, { first = 0, n, S, Z }) {
  const { T, d } = draws;
  const X = new Float64Array(n * T * d);
  const y = draws.labels.slice(first, first + n);
  const relevant = draws.relevant.slice(first * T, (first + n) * T);
  for (let k = 0; k < n * T; k += 1) {
    const label = y[Math.floor(k / T)];
    const row = relevant[k] ? (label > 0 ? 0 : 1) : 2 + draws.pattern[first * T + k];
    for (let a = 0; a < d; a += 1) {
      const noise = relevant[k] ? 0 : Z * draws.noise[(first * T + k) * d + a];
      X[k * d + a] = S * draws.patterns[row * d + a] + noise;
    }
  }
  return { X, y, relevant, n, T, d };
}
