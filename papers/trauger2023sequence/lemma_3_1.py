r"""Lemma 3.1 (Maurey): sparse averages over all counts, how many counts there are, the sampler.

alpha holds the coefficients, V the atoms (one per row), `below` lists all counts with sum at most
k and `full` those with sum k; b is the largest length of an atom. As printed the lemma joins the
bound of the scale gamma / k to the scale 1 / k; it is false where gamma < 1. In the proof V_i is
drawn with probability alpha_i and 0 with the rest.
"""

import math
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.maurey import maurey_bound, maurey_sample, maurey_sparsify
from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import erratum, identity, inequality, probability
from attlas.claims.verdict import Outcome

_ATOMS, _MOST = 3, 3
_COUNTED = ("d", "k", "listed", "full")
# Sums of at most 20 terms, differences squared, and two divisions: the default of 64 roundings.


def counts_table(atoms, k, full, rows):
    """All counts with sum k, or at most k, as rows; the first is repeated to fill up."""
    tuples = np.array(list(product(range(k + 1), repeat=atoms)), float)
    total = tuples.sum(axis=1)
    table = tuples[total == k] if full else tuples[total <= k]
    return np.concatenate([table, np.repeat(table[:1], max(0, rows - len(table)), axis=0)])


def averages(rng, count):
    """Three atoms in R^4 and 1, 2 or 3 terms, some at the two cases of equality.

    These are f = V_1 / (2 k), and the mean of orthonormal atoms.
    """
    V = rng.normal(size=(count, _ATOMS, 4)) * rng.uniform(0.1, 1, (count, _ATOMS, 1))
    gamma = np.where(rng.random(count) < 0.3, 1.0, rng.uniform(0.02, 1, count))
    alpha = gamma[:, None] * rng.dirichlet(np.ones(_ATOMS), count)
    k = 1 + np.arange(count) % _MOST
    for i in range(count):
        if i // _MOST % 4 < 2:
            V[i] = np.linalg.qr(rng.normal(size=(4, 4)))[0][:_ATOMS]
            alpha[i] = 1 / _ATOMS if i // _MOST % 4 == 0 else np.eye(_ATOMS)[0] / (2 * k[i])
    V *= six_decades(rng, (count, 1, 1), -2, 2)
    below = np.stack([counts_table(_ATOMS, int(terms), False, 20) for terms in k])
    full = np.stack([counts_table(_ATOMS, int(terms), True, 10) for terms in k])
    return {"V": V, "alpha": alpha, "k": k.astype(float), "below": below, "full": full}


def _best(V, alpha, counts, scale):
    """The least squared error of an average over the listed counts."""
    return jnp.min(jnp.sum((scale * counts @ V - (alpha @ V)[None, :]) ** 2, axis=1))


def _bound(V, alpha, terms, constants):
    """The bound for a number of terms, and b squared."""
    square = jnp.max(jnp.sum(V**2, axis=1))
    norm = jnp.sqrt(jnp.sum((alpha @ V) ** 2))
    bound = maurey_bound(jnp.sum(alpha), jnp.sqrt(square), norm, 1, constants=constants)
    return bound / terms, square


def _compared(V, alpha, k, below, full, constants, terms=1.0):
    """The best average, at the scale that the constants are for, and the bound for k terms."""
    if constants == "sharp":
        best = _best(V, alpha, full, jnp.sum(alpha) / k)
    else:
        best = _best(V, alpha, below, 1 / k)
    bound, square = _bound(V, alpha, terms * k, constants)
    return Sides(best, bound, magnitude=square)


def half_an_atom():
    """One atom of length 1, half of it, one term."""
    return {
        "V": np.ones((1, 1)),
        "alpha": np.asarray([0.5]),
        "k": np.asarray(1.0),
        "below": np.asarray([[0.0], [1.0]]),
        "full": np.ones((1, 1)),
    }


@erratum(
    "Lemma 3.1, as printed",
    of=Kind.EXISTENCE,
    witness=half_an_atom,
    reason=r"$\gamma = 1/2$, one atom, one term: 0.25 against 0",
    corrected=Control(r"$\gamma b^2$ in place of $\gamma^2 b^2$", constants="corrected"),
    controls=[
        Control(r"the scale $\gamma / k$ with sum $k$", constants="sharp", expect=Outcome.SUPPORTED)
    ],
)
def lemma_3_1_printed(V, alpha, k, below, full, *, constants="printed"):
    r"""$$f = \sum_i \alpha_i V_i,\ \alpha_i \ge 0,\ \gamma = \|\alpha\|_1 \le 1,\
    \|V_i\| \le b: \quad
    \exists\, k_i \ge 0,\ \sum_i k_i \le k:
    \left\| f - \frac{1}{k} \sum_i k_i V_i \right\|^2 \le \frac{\gamma^2 b^2 - \|f\|^2}{k}$$

    Half of one unit vector by one term: the choices 0 and $V$ are both at squared distance 1/4,
    and the printed bound is 0. The covers use $\gamma = 1$, where print and correction agree.
    """
    return _compared(V, alpha, k, below, full, constants)


def coefficients_inside(alpha):
    """Coefficients at least zero with a sum of at most one."""
    alpha = jnp.abs(alpha)
    return {"alpha": alpha / jnp.maximum(1.0, jnp.sum(alpha))}


on_averages = partial(
    inequality,
    sample=averages,
    search_over=("V", "alpha"),
    project=coefficients_inside,
    status=Status.CORRECTED,
    count=60,
)


@on_averages(
    "Lemma 3.1 (Maurey), corrected",
    controls=[
        Control("$k$ halved: $k$ terms for the bound of $2 k$", terms=2.0),
        Control(r"$\gamma^2$ as printed", constants="printed"),
    ],
)
def lemma_3_1(V, alpha, k, below, full, *, constants="corrected", terms=1.0):
    r"""$$f = \sum_i \alpha_i V_i,\ \alpha_i \ge 0,\ \gamma = \|\alpha\|_1 \le 1,\
    \|V_i\| \le b: \quad
    \min_{\sum_i k_i \le k} \left\| f - \frac{1}{k} \sum_i k_i V_i \right\|^2 \le
    \frac{\gamma b^2 - \|f\|^2}{k}$$

    The minimum is taken over all counts. Equality at half of one atom by one term; for more terms
    the best average is better than the mean one of the proof.
    """
    return _compared(V, alpha, k, below, full, constants, terms)


@on_averages(
    "Lemma 3.1 (Maurey), with the scale of its bound",
    controls=[
        Control("the scale $1 / k$ with sum $k$", scaled=False),
        Control("$k$ halved: $k$ terms for the bound of $2 k$", terms=2.0),
    ],
)
def lemma_3_1_scaled(V, alpha, k, full, *, scaled=True, terms=1.0):
    r"""$$\min_{\sum_i k_i = k} \left\| f - \frac{\gamma}{k} \sum_i k_i V_i \right\|^2 \le
    \frac{\gamma^2 b^2 - \|f\|^2}{k}$$

    The printed bound is right for this scale, and for it there are at most $d^k$ counts.
    """
    bound, square = _bound(V, alpha, k, "sharp")
    best = _best(V, alpha, full, (jnp.sum(alpha) if scaled else 1.0) / k)
    return Sides(best, bound / terms, magnitude=square)


def numbers_of_counts(rng, count):
    """All pairs of up to five atoms and five terms, with the counts listed and numbered."""
    del rng, count
    pairs = list(product(range(1, 6), repeat=2))
    d, k = np.array(pairs, float).T
    listed, full = (
        np.array([len(counts_table(d, k, full, 0)) for d, k in pairs], float)
        for full in (False, True)
    )
    return {"d": d, "k": k, "listed": listed, "full": full}


@erratum(
    "Remark on Lemma 3.1, as printed",
    witness=lambda: {n: np.array(v) for n, v in zip(_COUNTED, (2.0, 1.0, 3.0, 2.0), strict=True)},
    reason="$d = 2$ and $k = 1$ have three counts",
    corrected=Control("$(d + 1)^k$", more=1.0),
    controls=[
        Control("$d^k$ for the counts with sum $k$", only_full=True, expect=Outcome.SUPPORTED)
    ],
)
def lemma_3_1_count_printed(d, k, listed, full, *, more=0.0, only_full=False):
    r"""$$\#\{(k_1,\dots,k_d) : \textstyle\sum_i k_i \le k\} \le d^k$$

    The covers below count $2 k + 1$ choices per term, zero among them, and are not affected.
    """
    return full if only_full else listed, (d + more) ** k


@inequality(
    "Remark on Lemma 3.1, corrected",
    sample=numbers_of_counts,
    status=Status.CORRECTED,
    enumerates=25,
    count=25,
    controls=[Control("$d^k$", more=0.0)],
)
def lemma_3_1_count(d, k, listed, *, more=1.0):
    r"""$$\#\{(k_1,\dots,k_d) : \textstyle\sum_i k_i \le k\} \le (d+1)^k$$

    Equality at $k = 1$. The counts are listed one by one for $d$ and $k$ up to 5.
    """
    return listed, (d + more) ** k


_TERMS = 3
# The outcomes of three draws of three atoms and zero: counts, and how many orders each has.
_OUTCOMES = np.array([c for c in product(range(_TERMS + 1), repeat=4) if sum(c) == _TERMS], float)
_ORDERS = np.array(
    [math.factorial(_TERMS) / math.prod(math.factorial(int(n)) for n in c) for c in _OUTCOMES]
)


def laws(rng, count):
    """Three atoms in R^4 with probabilities that leave something to zero."""
    V = six_decades(rng, (count, 1, 1), -2, 2) * rng.normal(size=(count, 3, 4))
    return {"V": V, "alpha": rng.uniform(0.05, 1, (count, 1)) * rng.dirichlet(np.ones(3), count)}


@identity(
    "Lemma 3.1, proof: the mean error of the sampler",
    sample=laws,
    count=32,
    roundings=128,
    controls=[Control("the square of $f$ not taken off", centred=False)],
)
def lemma_3_1_variance(V, alpha, *, centred=True):
    r"""$$\mathbb{E} \left\| f - \frac{1}{k} \sum_{t=1}^k V_{i_t} \right\|^2 =
    \frac{1}{k} \Big( \sum_i \alpha_i \|V_i\|^2 - \|f\|^2 \Big)$$

    The mean is taken over all outcomes of three draws, with their probabilities.
    """
    f = alpha @ V
    law = jnp.append(alpha, 1 - jnp.sum(alpha))
    atoms = jnp.concatenate([V, jnp.zeros((1, 4))])
    chance = jnp.asarray(_ORDERS) * jnp.prod(law[None, :] ** jnp.asarray(_OUTCOMES), axis=1)
    error = jnp.sum((jnp.asarray(_OUTCOMES) @ atoms / _TERMS - f[None, :]) ** 2, axis=1)
    second = jnp.sum(alpha * jnp.sum(V**2, axis=1))
    right = (second - (jnp.sum(f**2) if centred else 0.0)) / _TERMS
    return Sides(jnp.sum(chance * error), right, magnitude=jnp.max(jnp.sum(V**2, axis=1)))


def runs(rng, count):
    """Errors of the sampler and of the greedy choice, for means of orthonormal V and others."""
    seeds, scales = rng.integers(2**31, size=count).tolist(), six_decades(rng, count)
    sampled, greedy, bounds, log_b = np.zeros((4, count))
    for i in range(count):
        k = int(rng.integers(1, 13))
        V = rng.normal(size=(8, 16)) * rng.uniform(0.1, 1, (8, 1))
        alpha = rng.uniform(0.05, 1) * rng.dirichlet(np.ones(8))
        if i % 3 < 2:
            k = 1 + i // 3 % 4
            V, alpha = np.eye(16)[:8], np.full(8, 1 / 8) if i % 3 else np.eye(8)[0] / (2 * k)
        V = V * scales[i]
        f, b = alpha @ V, float(np.sqrt(np.max(np.sum(V**2, axis=1))))
        gamma, norm = min(1.0, float(alpha.sum())), float(np.linalg.norm(f))
        log_b[i] = math.log(b)
        bounds[i] = float(maurey_bound(gamma, b, norm, k, constants="corrected"))
        greedy[i] = np.sum((f - maurey_sparsify(alpha, V, k, constants="corrected")[0]) ** 2)
        counts = maurey_sample(jax.random.key(seeds[i]), alpha, V, k, constants="corrected")[0]
        sampled[i] = np.sum((f - counts) ** 2)
    return {"sampled": sampled, "greedy": greedy, "bound": bounds, "log_b": log_b}


@probability(
    "Lemma 3.1, proof: one run of the sampler",
    level=0.5,
    sample=runs,
    independent="atoms, weights and key of the sampler",
    status=Status.NEW,
    count=240,
    controls=[Control("half of the bound", factor=0.5)],
)
def lemma_3_1_sampler(sampled, bound, *, factor=2.0):
    r"""$$P\left( \left\| f - \frac{1}{k} \sum_{t=1}^k V_{i_t} \right\|^2 \le
    2\, \frac{\gamma b^2 - \|f\|^2}{k} \right) \ge \frac{1}{2}$$

    Markov's inequality; in the runs nearly every draw is below twice the bound. A sparse average
    within the bound itself is found without chance, see lemma-3-1-greedy.
    """
    return sampled <= factor * bound * (1 + 1e-12)


@inequality(
    "Lemma 3.1, by the method of conditional expectations",
    sample=runs,
    status=Status.NEW,
    count=60,
    roundings=128,
    controls=[Control("$k$ halved: $k$ terms for the bound of $2 k$", terms=2.0)],
    evaluations=60,
)
def lemma_3_1_greedy(greedy, bound, log_b, *, terms=1.0):
    r"""$$S_{t+1} = S_t + V_j,\ j = \arg\min \|S_t + V_j - (t+1) f\|: \quad
    \left\| f - \frac{1}{k} S_k \right\|^2 \le \frac{\gamma b^2 - \|f\|^2}{k}$$

    Eight atoms, up to twelve terms. Equality at half of one atom by one term.
    """
    return Sides(greedy, bound / terms, magnitude=jnp.exp(2 * log_b))
