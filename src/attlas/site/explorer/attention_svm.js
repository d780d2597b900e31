/**
 * The l_p attention SVM of a small problem, solved to a certificate.
 *
 * W_mm = argmin ||W||_{p,p} subject to (X_{i a_i} - X_{it})' W z_i >= 1 for all i and t != a_i.
 */
import { dot, dualExponent, entrywiseNorm, signedPower, solve, sum } from "./numbers.js";

/** Relative duality gap that counts as converged, as in the library. */
export const TOLERANCE = 1e-8;

/** Relative length of a combination of constraints that counts as zero. */
const INFEASIBLE = 1e-8;
const SMALLEST_BARRIER = 1e-13;
const NEWTON_STEPS = 60;

/** The rows of A: (X_{i a_i} - X_{it}) z_i' for t != a_i, with their places [i, t]. */
export function attentionRows(X, z, tokens) {
  const rows = [];
  const places = [];
  X.forEach((sample, i) => {
    const best = sample[tokens[i]];
    sample.forEach((token, t) => {
      if (t === tokens[i]) return;
      rows.push(best.flatMap((value, k) => z[i].map((query) => (value - token[k]) * query)));
      places.push([i, t]);
    });
  });
  return { rows, places };
}

/** A'l. */
function pulled(rows, l) {
  return rows[0].map((_, j) => rows.reduce((total, row, i) => total + row[j] * l[i], 0));
}

/** Both sides of weak duality: 1'l / ||A'l||_q <= ||W_mm|| <= ||w||_p / min A w. */
export function certify(rows, w, multipliers, p) {
  const dual = multipliers.map((l) => Math.max(l, 0));
  const margins = rows.map((row) => dot(row, w));
  const smallest = Math.min(...margins);
  const pull = entrywiseNorm(pulled(rows, dual), dualExponent(p));
  const lower = pull > 0 ? sum(dual) / pull : 0;
  const usable = smallest > 0;
  const upper = usable ? entrywiseNorm(w, p) / smallest : Infinity;
  const gap = usable && lower > 0 ? Math.max((upper - lower) / lower, 0) : Infinity;
  const factor = usable ? smallest : NaN;
  return {
    W: w.map((value) => value / factor), upper, lower, gap,
    margins: margins.map((margin) => margin / factor), dual,
  };
}

/** Logarithm of the constant of uniform convexity of the l_p norm, as in the library. */
function logConvexity(p) {
  if (p <= 2) return Math.log(p - 1);
  let low = 0;
  let high = 1;
  for (let halving = 0; halving < 60; halving += 1) {
    const x = (low + high) / 2;
    if ((p - 2) * x ** (p - 1) + (p - 1) * x ** (p - 2) < 1) low = x;
    else high = x;
  }
  return Math.log1p(low ** (p - 1)) - (p - 1) * Math.log1p(low);
}

/** Largest possible ||w - w*||_p of a feasible w, by uniform convexity. */
export function distanceBound(upper, lower, p) {
  const power = Math.max(p, 2);
  const ratio = Math.min(Math.max(lower / upper, 1e-300), 1);
  const missing = -Math.expm1(power * Math.log(ratio));
  return upper * missing ** (1 / power) * Math.exp(-logConvexity(p) / power);
}

/** One damped Newton method for a smooth convex function with a barrier. */
function newton(start, evaluate, derivatives) {
  let x = start;
  let value = evaluate(x);
  for (let step = 0; step < NEWTON_STEPS; step += 1) {
    const { gradient, hessian } = derivatives(x);
    const move = solve(hessian, gradient.map((g) => -g));
    if (move === null) return x;
    const slope = dot(gradient, move);
    if (!(slope < 0)) return x;
    let length = 1;
    let next = null;
    for (let halving = 0; halving < 60; halving += 1, length /= 2) {
      const trial = x.map((xi, i) => xi + length * move[i]);
      const found = evaluate(trial);
      if (found <= value + 0.1 * length * slope) {
        next = trial;
        value = found;
        break;
      }
    }
    if (next === null) return x;
    x = next;
    if (-slope < 1e-15 * (1 + Math.abs(value))) return x;
  }
  return x;
}

/** sum_i weight_i row_i row_i' plus a diagonal, flat. */
function weightedGram(vectors, weights, diagonal) {
  const d = diagonal.length;
  const H = new Array(d * d).fill(0);
  vectors.forEach((row, i) => {
    for (let a = 0; a < d; a += 1) {
      for (let b = 0; b < d; b += 1) H[a * d + b] += weights[i] * row[a] * row[b];
    }
  });
  diagonal.forEach((value, a) => { H[a * d + a] += value; });
  return H;
}

/** For p <= 2, in the multipliers: min (1/q) ||A'l||_q^q - 1'l - mu sum log l, which is smooth. */
function dualPath(rows, p, visit) {
  const q = dualExponent(p);
  const columns = rows[0].map((_, j) => rows.map((row) => row[j]));
  let l = rows.map(() => 1);
  // the best multiple of the start: t^(q-1) ||A'l||_q^q = 1'l
  const pull = entrywiseNorm(pulled(rows, l), q);
  if (!(pull > 0)) {
    visit(rows[0].map(() => 0), l);
    return;
  }
  l = l.map((value) => value * (rows.length / pull ** q) ** (1 / (q - 1)));
  for (let mu = 1; mu > SMALLEST_BARRIER; mu /= 4) {
    const evaluate = (x) => {
      if (!x.every((value) => value > 0)) return Infinity;
      const u = pulled(rows, x);
      return sum(u.map((value) => Math.abs(value) ** q)) / q - sum(x) - mu * sum(x.map(Math.log));
    };
    l = newton(l, evaluate, (x) => {
      const u = pulled(rows, x);
      const w = u.map((value) => signedPower(value, q - 1));
      const curvature = u.map((value) => (q - 1) * Math.abs(value) ** (q - 2));
      return {
        gradient: rows.map((row, i) => dot(row, w) - 1 - mu / x[i]),
        hessian: weightedGram(columns, curvature, x.map((value) => mu / value ** 2)),
      };
    });
    if (visit(pulled(rows, l).map((value) => signedPower(value, q - 1)), l)) return;
  }
}

/** For p >= 2, in w: min (1/p) ||w||_p^p - mu sum log(A w - 1), from a feasible point. */
function primalPath(rows, p, start, visit) {
  let w = start.map((value) => 2 * value);
  for (let mu = 1; mu > SMALLEST_BARRIER; mu /= 4) {
    const slack = (x) => rows.map((row) => dot(row, x) - 1);
    const evaluate = (x) => {
      const s = slack(x);
      if (!s.every((value) => value > 0)) return Infinity;
      return sum(x.map((value) => Math.abs(value) ** p)) / p - mu * sum(s.map(Math.log));
    };
    w = newton(w, evaluate, (x) => {
      const s = slack(x);
      const push = pulled(rows, s.map((value) => mu / value));
      return {
        gradient: x.map((value, j) => signedPower(value, p - 1) - push[j]),
        hessian: weightedGram(
          rows, s.map((value) => mu / value ** 2),
          x.map((value) => (p - 1) * Math.abs(value) ** (p - 2) + 1e-300),
        ),
      };
    });
    if (visit(w, slack(w).map((value) => mu / value))) return;
  }
}

/** Newton on grad psi(w) = A_S'l, A_S w = 1 for the constraints S that are active. */
function polished(rows, w, l, p) {
  const active = rows.filter((_, i) => l[i] > dot(rows[i], w) - 1);
  const [d, n] = [w.length, active.length];
  let x = [...w, ...l.filter((_, i) => l[i] > dot(rows[i], w) - 1)];
  for (let step = 0; step < 8; step += 1) {
    const [at, dual] = [x.slice(0, d), x.slice(d)];
    const J = new Array((d + n) ** 2).fill(0);
    const residual = [];
    for (let j = 0; j < d; j += 1) {
      J[j * (d + n) + j] = (p - 1) * Math.abs(at[j]) ** (p - 2);
      active.forEach((row, i) => {
        J[j * (d + n) + d + i] = -row[j];
        J[(d + i) * (d + n) + j] = row[j];
      });
      residual.push(sum(active.map((row, i) => row[j] * dual[i])) - signedPower(at[j], p - 1));
    }
    active.forEach((row) => residual.push(1 - dot(row, at)));
    const move = solve(J, residual);
    if (move === null || !move.every(Number.isFinite)) break;
    x = x.map((value, k) => value + move[k]);
  }
  const dual = x.slice(d);
  let next = 0;
  const whole = rows.map((row, i) => (l[i] > dot(row, w) - 1 ? dual[next++] : 0));
  return [x.slice(0, d), whole];
}

/** The best certificate along a path, and beside it. */
function bestAlong(path, rows, p) {
  let best = null;
  const consider = (w, l) => {
    const found = certify(rows, w, l, p);
    // without a feasible point the latest multipliers say most
    if (best === null || found.gap < best.gap || best.gap === Infinity) best = found;
  };
  path((w, l) => {
    consider(w, l);
    if (best.gap < 1e-4 && best.gap >= 1e-14 && p > 2) consider(...polished(rows, w, l, p));
    return best.gap < 1e-14;
  });
  return best;
}

/**
 * The certified solution; `converged` says whether its gap is at most `TOLERANCE`.
 *
 * Margins and multipliers are in the order of `places`; the multipliers sum to the norm.
 */
export function attentionSvm(X, z, tokens, p) {
  const { rows, places } = attentionRows(X, z, tokens);
  const longest = Math.max(...rows.map((row) => entrywiseNorm(row, 2)));
  if (!(longest > 0)) return { converged: false, places, gap: Infinity };
  const unit = rows.map((row) => row.map((value) => value / longest));
  let found = bestAlong((visit) => dualPath(unit, Math.min(p, 2), visit), unit, Math.min(p, 2));
  if (p > 2 && found !== null && Number.isFinite(found.gap)) {
    const start = found.W;
    // rows whose solution has a norm near one: the barrier is then in units of the objective
    const size = entrywiseNorm(start, p);
    const scaled = unit.map((row) => row.map((value) => value * size));
    const begin = start.map((value) => value / size);
    found = bestAlong((visit) => primalPath(scaled, p, begin, visit), scaled, p);
  }
  if (found === null) return { converged: false, places, gap: Infinity };
  if (!Number.isFinite(found.gap)) {
    const residual = farkasResidual(unit, found.dual);
    return { converged: false, infeasible: residual <= INFEASIBLE, residual, places, gap: Infinity };
  }
  const whole = certify(rows, found.W, found.dual, p);
  const total = sum(whole.dual);
  return {
    ...whole, places, converged: whole.gap <= TOLERANCE,
    dual: whole.dual.map((l) => (total > 0 ? (l / total) * whole.lower : 0)),
    distance: distanceBound(whole.upper, whole.lower, p),
  };
}

/** ||A'l||_2 over 1'l for rows of length at most one: zero proves that no W separates (Farkas). */
function farkasResidual(rows, l) {
  const dual = l.map((value) => Math.max(value, 0));
  return entrywiseNorm(pulled(rows, dual), 2) / sum(dual);
}

/** Which constraints are active: margins up to 1 + tolerance count as 1. */
export function supportTokens(margins, tolerance = 1e-6) {
  return margins.map((margin) => margin <= 1 + tolerance);
}
