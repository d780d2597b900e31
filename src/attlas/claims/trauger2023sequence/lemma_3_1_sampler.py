r"""Lemma 3.1 (Maurey): the sampler of its proof is run, and its derandomised form.

V_i is drawn with probability alpha_i and 0 with the rest; the average of k draws has the mean
f = sum alpha_i V_i, and its squared error the mean (sum alpha_i ||V_i||^2 - ||f||^2) / k.
"""

import math
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.maurey import maurey_bound, maurey_sample, maurey_sparsify
from attlas.core.claim import Control, Sides, Status
from attlas.core.statement import identity, inequality, probability

_TERMS = 3
_DRAWS = 4
_ROUNDINGS = 128
"""Sums over the 35 outcomes of products of up to 8 factors."""
# The outcomes of three draws of three atoms and zero: counts, and how many orders each has.
_OUTCOMES = np.array([c for c in product(range(_TERMS + 1), repeat=4) if sum(c) == _TERMS], float)
_ORDERS = np.array(
    [math.factorial(_TERMS) / math.prod(math.factorial(int(n)) for n in c) for c in _OUTCOMES]
)


def laws(rng, count):
    """Three atoms in R^4 with probabilities that leave something to zero."""
    V = 10 ** rng.uniform(-2, 2, (count, 1, 1)) * rng.normal(size=(count, 3, 4))
    return {"V": V, "alpha": rng.uniform(0.05, 1, (count, 1)) * rng.dirichlet(np.ones(3), count)}


@identity(
    "Lemma 3.1, proof: the mean error of the sampler",
    sample=laws,
    count=32,
    roundings=_ROUNDINGS,
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
    rng = np.random.default_rng(rng.integers(2**31, size=2))
    seeds = rng.integers(2**31, size=(count, _DRAWS)).tolist()
    sampled, greedy, bounds = np.zeros((count, _DRAWS)), np.zeros(count), np.zeros(count)
    for i in range(count):
        k = int(rng.integers(1, 13))
        V = rng.normal(size=(8, 16)) * rng.uniform(0.1, 1, (8, 1))
        alpha = rng.uniform(0.05, 1) * rng.dirichlet(np.ones(8))
        if i % 3 < 2:
            k = 1 + i // 3 % 4
            V, alpha = np.eye(16)[:8], np.full(8, 1 / 8) if i % 3 else np.eye(8)[0] / (2 * k)
        f, b = alpha @ V, float(np.sqrt(np.max(np.sum(V**2, axis=1))))
        gamma, norm = min(1.0, float(alpha.sum())), float(np.linalg.norm(f))
        bounds[i] = float(maurey_bound(gamma, b, norm, k, constants="corrected"))
        greedy[i] = np.sum((f - maurey_sparsify(alpha, V, k, constants="corrected")[0]) ** 2)
        for j in range(_DRAWS):
            key = jax.random.key(seeds[i][j])
            drawn = maurey_sample(key, alpha, V, k, constants="corrected")[0]
            sampled[i, j] = np.sum((f - drawn) ** 2)
    return {"sampled": sampled, "greedy": greedy, "bound": bounds}


@probability(
    "Lemma 3.1, proof: one run of the sampler",
    level=0.5,
    sample=runs,
    status=Status.NEW,
    count=60,
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
    roundings=_ROUNDINGS,
    controls=[Control("$k$ halved: $k$ terms for the bound of $2 k$", terms=2.0)],
)
def lemma_3_1_greedy(greedy, bound, *, terms=1.0):
    r"""$$S_{t+1} = S_t + V_j,\ j = \arg\min \|S_t + V_j - (t+1) f\|: \quad
    \left\| f - \frac{1}{k} S_k \right\|^2 \le \frac{\gamma b^2 - \|f\|^2}{k}$$

    Eight atoms, up to twelve terms. Equality at half of one atom by one term.
    """
    return Sides(greedy, bound / terms, magnitude=jnp.asarray(1.0))
