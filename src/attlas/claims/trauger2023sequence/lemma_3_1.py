r"""Lemma 3.1 (Maurey): sparse averages, over all counts, and how many counts there are.

alpha holds the coefficients, V the atoms (one per row), `below` lists all counts with sum at most
k and `full` those with sum k; b is the largest length of an atom. As printed the lemma joins the
bound of the scale gamma / k to the scale 1 / k; it is false where gamma < 1.
"""

from functools import partial
from itertools import product

import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.maurey import maurey_bound
from attlas.core.claim import Control, Kind, Sides, Status
from attlas.core.statement import erratum, inequality
from attlas.core.verdict import Outcome

_ATOMS, _MOST = 3, 3
# Sums of at most 20 terms, differences squared, and two divisions: the default of 64 roundings.


def counts_table(atoms, k, full, rows):
    """All counts with sum k, or at most k, as rows; the first is repeated to fill up."""
    every = np.array(list(product(range(k + 1), repeat=atoms)), float)
    total = every.sum(axis=1)
    kept = every[total == k] if full else every[total <= k]
    return np.concatenate([kept, np.repeat(kept[:1], max(0, rows - len(kept)), axis=0)])


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
    V *= 10 ** rng.uniform(-2, 2, (count, 1, 1))
    below = np.stack([counts_table(_ATOMS, int(each), False, 20) for each in k])
    full = np.stack([counts_table(_ATOMS, int(each), True, 10) for each in k])
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
    reason=r"$\gamma = 1/2$, one atom, one term: 1/4 against 0",
    corrected=Control(r"$\gamma b^2$ in place of $\gamma^2 b^2$", constants="corrected"),
    controls=[
        Control(r"the scale $\gamma / k$ with sum $k$", constants="sharp", expect=Outcome.SUPPORTED)
    ],
)
def lemma_3_1_printed(V, alpha, k, below, full, *, constants="printed"):
    r"""$$f = \sum_i \alpha_i V_i,\ \gamma = \|\alpha\|_1 \le 1,\ \|V_i\| \le b: \quad
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


on_averages = partial(inequality, sample=averages, status=Status.CORRECTED, count=60)


@on_averages(
    "Lemma 3.1 (Maurey), corrected",
    search_over=("V", "alpha"),
    project=coefficients_inside,
    controls=[
        Control("$k$ halved: $k$ terms for the bound of $2 k$", terms=2.0),
        Control(r"$\gamma^2$ as printed", constants="printed"),
    ],
)
def lemma_3_1(V, alpha, k, below, full, *, constants="corrected", terms=1.0):
    r"""$$f = \sum_i \alpha_i V_i,\ \gamma = \|\alpha\|_1 \le 1,\ \|V_i\| \le b: \quad
    \min_{\sum_i k_i \le k} \left\| f - \frac{1}{k} \sum_i k_i V_i \right\|^2 \le
    \frac{\gamma b^2 - \|f\|^2}{k}$$

    The minimum is taken over all counts. Equality at half of one atom by one term; for more terms
    the best average is better than the mean one of the proof.
    """
    return _compared(V, alpha, k, below, full, constants, terms)


@on_averages(
    "Lemma 3.1 (Maurey), with the scale of its bound",
    controls=[Control("the scale $1 / k$ with sum $k$", scaled=False)],
)
def lemma_3_1_scaled(V, alpha, k, full, *, scaled=True):
    r"""$$\min_{\sum_i k_i = k} \left\| f - \frac{\gamma}{k} \sum_i k_i V_i \right\|^2 \le
    \frac{\gamma^2 b^2 - \|f\|^2}{k}$$

    The printed bound is right for this scale, and for it there are at most $d^k$ counts.
    """
    bound, square = _bound(V, alpha, k, "sharp")
    best = _best(V, alpha, full, (jnp.sum(alpha) if scaled else 1.0) / k)
    return Sides(best, bound, magnitude=square)


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


def two_atoms():
    """Two atoms, one term: the counts are (0, 0), (1, 0) and (0, 1)."""
    numbers = {"d": 2.0, "k": 1.0, "listed": 3.0, "full": 2.0}
    return {name: np.asarray(value) for name, value in numbers.items()}


@erratum(
    "Remark on Lemma 3.1, as printed",
    witness=two_atoms,
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
