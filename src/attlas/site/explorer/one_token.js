/** What the figures on why attention picks one token compute. */
import { attentionRows, attentionSvm } from "./attention_svm.js";
import { singularValues } from "./factored.js";
import { optimalTokens, scaledGradient, tokenScores } from "./mirror_descent.js";
import { dot, entrywiseNorm, matVec, softmax, softplus, sum } from "./numbers.js";

/** W divided by its Euclidean norm. */
function normed(W) {
  const size = entrywiseNorm(W, 2);
  return W.map((value) => value / size);
}

/** The direction of the attention SVM of p = 2, and a direction at a right angle to it. */
export function directions(data) {
  const best = normed(attentionSvm(data.X, data.z, optimalTokens(data), 2).W);
  const d = data.z[0].length;
  const aside = best.map((_, j) => (j === d - 1 ? 1 : 0));
  const along = dot(aside, best);
  return { best, aside: normed(aside.map((value, j) => value - along * best[j])) };
}

/** The direction that is `degrees` away from `best` towards `aside`. */
export function turned({ best, aside }, degrees) {
  const angle = (degrees * Math.PI) / 180;
  return best.map((value, j) => Math.cos(angle) * value + Math.sin(angle) * aside[j]);
}

/** The smallest loss that attention can reach: all of it on the token of largest score. */
export function lowestLoss(data) {
  const losses = tokenScores(data).map((scores) => softplus(-Math.max(...scores)));
  return sum(losses) / losses.length;
}

/** The loss at W of a direction and a size, above the lowest. */
export function excessLoss(direction, size, data) {
  return scaledGradient(direction.map((value) => size * value), data).loss - lowestLoss(data);
}

/** The attention on the tokens of sample i. */
export function attention(W, { X, z }, i) {
  const look = matVec(W, z[i]);
  return softmax(X[i].map((token) => dot(token, look)));
}

/** The smallest lead of the best tokens at W. */
export function smallestLead(W, data) {
  const { rows } = attentionRows(data.X, data.z, optimalTokens(data));
  return Math.min(...rows.map((row) => dot(row, W)));
}

/** The least share of a token that is ahead of each of T - 1 others by `lead`: 1 / (1 + (T-1) e^-lead). */
export function leastShare(lead, T) {
  return 1 / (1 + (T - 1) * Math.exp(-lead));
}

/** The smallest lead over the nuclear and over the Euclidean norm, and the ratio of these norms. */
export function margins(W, data) {
  const values = singularValues(W, data.z[0].length);
  const [nuclear, euclidean, lead] = [sum(values), entrywiseNorm(W, 2), smallestLead(W, data)];
  return { nuclear: lead / nuclear, euclidean: lead / euclidean, spread: nuclear / euclidean };
}

/** The smallest number of entries that hold `share` of the sum of absolute values. */
export function entriesWith(share, W) {
  const sizes = W.map(Math.abs).sort((a, b) => b - a);
  const enough = share * sum(sizes);
  let [held, count] = [0, 0];
  while (held < enough && count < sizes.length) held += sizes[count++];
  return count;
}
