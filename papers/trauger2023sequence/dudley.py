r"""Section 2.4: from covers to the Rademacher complexity, with every constant.

Entropies are log N(eps) = A + D / eps^2, functions are bounded by R on m inputs. Two classes have
an exact complexity: linear functions of an l_1 ball on repeated basis vectors (D), and all sign
patterns that are constant on blocks of inputs (A).
"""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.dudley import (
    CONSTANTS,
    DudleyConstants,
    dudley_chain,
    dudley_integral,
    entropy_integral,
)
from attlas.claims.claim import Control, ProofStep, Sides, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity, inequality

_SLACK = "trauger2023sequence/slack"
_ROUNDINGS = 512
"""The exact complexity is a sum of up to 2,000 positive terms, added in pairs; 48 links."""
_TINY = 1e-6
# Gauss and Legendre: the integrand in log eps is analytic at a distance of pi / 2 from the real
# axis, so that 48 nodes on a length of at most 5 leave an error below 1e-24.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def largest_sum(signs, groups):
    """E max_j |S_j| of independent sums of signs, exactly, from the binomial distribution."""
    from scipy.stats import binom  # takes half a second, and all papers are listed without it

    values = np.abs(2 * np.arange(signs + 1) - signs)
    chance = binom.pmf(np.arange(signs + 1), signs, 0.5)
    at = np.array([chance[values == v].sum() for v in range(signs + 1)])
    below = np.minimum(np.cumsum(at), 1.0)
    return float(np.sum(1 - below[:-1] ** groups))


def exact_classes(rng, count, single=False):
    """Half of the instances are l_1 balls, the others sign patterns on blocks (of one input)."""
    columns = {name: np.zeros(count) for name in ("A", "D", "m", "R", "exact")}
    scales, sizes = six_decades(rng, count, -2, 2), 2 ** rng.uniform(8, 11, count)
    for i, (B, size) in enumerate(zip(scales, sizes, strict=True)):
        groups = int(rng.integers(1, 9))
        if i % 2 and not single:
            # From 68 D / R^2 inputs on the chain is below the trivial bound R.
            signs = int(size)
            A, D = 0.0, B**2 * math.log(2 * groups + 1)
            exact = B * largest_sum(signs, groups) / (groups * signs)
        else:
            signs = 1 if single else int(rng.choice([3, 5, 7, 31, 255]))
            A, D = groups * math.log(2), _TINY * B**2
            exact = B * largest_sum(signs, 1) / signs
        for name, value in zip(columns, (A, D, groups * signs, B, exact), strict=True):
            columns[name][i] = value
    return columns


def _chain(A, D, m, R):
    return dudley_chain(lambda epsilon: A + D / epsilon**2, m, R)


@inequality(
    "Section 2.4 (Dudley), the chain with its constants",
    sample=exact_classes,
    evaluations=1280,
    roundings=_ROUNDINGS,
    proof_step=ProofStep(_SLACK, 20),
    controls=[
        Control("the paper's bracket with $c = 1$", bracket=1.0),
        Control(
            "the bracket with $c = 1.2$, on all sign patterns of $m$ inputs",
            sample=partial(exact_classes, single=True),
            bracket=1.2,
        ),
    ],
)
def dudley_tree(A, D, m, R, exact, *, bracket=None):
    r"""$$Rad(\mathcal{F}) \le \min_{R = \epsilon_0 > \dots > \epsilon_n} \epsilon_n +
    \sqrt{\tfrac{2}{m}} \sum_{j=1}^n (\epsilon_{j-1} + \epsilon_j)
    \sqrt{\log \mathcal{N}(\epsilon_j)}$$

    Each link counts the centres of one level, not of two. The complexities are exact, from binomial
    distributions, for up to 16,000 inputs, where the bound is below $R$. All sign patterns on $m$
    inputs show that Dudley's constant $c$ is at least $1 / \sqrt{\ln 2} = 1.201$, so that the
    bracket by itself is no bound. The blocks of signs come nearest to the bound.
    """
    if bracket is None:
        return exact, _chain(A, D, m, R)
    return exact, bracket * dudley_integral(A, D, m, R, constants="printed")


def entropies(rng, count):
    """Entropies for which the integral is below R, at it and above; a quarter has no A."""
    m, R = 10 ** rng.uniform(2, 8, count), six_decades(rng, count, -2, 2)
    A = m * 10 ** rng.uniform(-6, -0.5, count) * (np.arange(count) % 4 > 0)
    D = R**2 * m * 10 ** rng.uniform(-7, -1, count)
    share = np.where(np.arange(count) % 3 == 0, 1.0, 10 ** rng.uniform(-2, 0, count))
    return {"A": A, "D": D, "m": m, "R": R, "delta": R * share}


on_entropies = partial(inequality, sample=entropies, roundings=_ROUNDINGS)


@on_entropies(
    "Section 2.4 (Dudley), the integral with its constants",
    proof_step=ProofStep(_SLACK, 30),
    controls=[Control("$c_1 = c_2 = 1$, the paper's bracket", constants="printed")],
    evaluations=320,
)
def _dudley_integral(A, D, m, R, *, constants: DudleyConstants = "sharp"):
    r"""$$\text{chain} \le \inf_\delta \Big( c_1 \delta + \frac{c_2}{\sqrt{m}} \int_\delta^R
    \sqrt{\log \mathcal{N}(\epsilon)}\, d\epsilon \Big),\quad
    c_1 = 1 + \sqrt{2},\ c_2 = \sqrt{2}\,(1 + \sqrt{2})^2$$

    The chain is a part of the integral: 5.08 against 8.24 per unit of $\sqrt{D / m} \log(R /
    \delta)$.
    """
    return _chain(A, D, m, R), dudley_integral(A, D, m, R, constants=constants)


@on_entropies(
    "Section 2.4 (Dudley), the usual constants",
    status=Status.SHARPENED,
    controls=[Control("the two sides exchanged", swapped=True)],
)
def dudley_constants(A, D, m, R, *, swapped=False):
    r"""$$\inf_\delta \Big( (1 + \sqrt{2}) \delta + \frac{\sqrt{2}\,(1 + \sqrt{2})^2}{\sqrt{m}}
    \int_\delta^R \sqrt{\log \mathcal{N}} \Big) \le \inf_\delta \Big( 4 \delta +
    \frac{12}{\sqrt{m}} \int_\delta^R \sqrt{\log \mathcal{N}} \Big)$$

    2.414 and 8.243 where 4 and 12 are usual; the paper leaves its constant $c$ open.
    """
    sharp = dudley_integral(A, D, m, R, constants="sharp")
    classical = dudley_integral(A, D, m, R, constants="classical")
    return (classical, sharp) if swapped else (sharp, classical)


def _value_at(A, D, m, R, delta):
    c_1, c_2 = CONSTANTS["sharp"]
    return c_1 * delta + c_2 * entropy_integral(A, D, delta, R) / jnp.sqrt(m)


@on_entropies(
    r"Theorem 4.1, proof: the minimum over $\delta$",
    status=Status.SHARPENED,
    search_over="delta",
    project=lambda delta, R: {"delta": jnp.clip(jnp.abs(delta), 1e-6 * R, R)},
    controls=[Control("the minimiser of the split root", split=True)],
)
def dudley_minimum(A, D, m, R, delta, *, split=False):
    r"""$$c_1 \delta_* + \frac{c_2}{\sqrt{m}} \int_{\delta_*}^R \le
    c_1 \delta + \frac{c_2}{\sqrt{m}} \int_\delta^R \sqrt{A + D / \epsilon^2}\, d\epsilon,
    \quad \delta_* = \min\Big( R, \frac{c_2 \sqrt{D}}{\sqrt{m c_1^2 - c_2^2 A}} \Big)$$

    The paper splits the root as $\sqrt A + \sqrt D / \epsilon$ and takes $\delta_*$ without asking
    for $\delta_* \le R$; then its bracket can be negative. $\delta_* = R$ where
    $m c_1^2 \le c_2^2 A$.
    """
    best = dudley_integral(A, D, m, R, constants="sharp")
    if not split:
        return best, _value_at(A, D, m, R, delta)
    c_1, c_2 = CONSTANTS["sharp"]
    room = c_1 * jnp.sqrt(m) - c_2 * jnp.sqrt(A)
    own_term = c_2 * jnp.sqrt(D) / jnp.where(room > 0, room, 1)
    return _value_at(A, D, m, R, jnp.where((room > 0) & (own_term < R), own_term, R)), best


@identity(
    "Theorem 4.1, proof: the integral without splitting the root",
    sample=entropies,
    status=Status.NEW,
    roundings=_ROUNDINGS,
    controls=[Control("the split root, as in the paper", split=True)],
)
def dudley_primitive(A, D, R, delta, *, split=False):
    r"""$$\int_\delta^R \sqrt{A + \frac{D}{\epsilon^2}}\, d\epsilon =
    s_R - s_\delta + \sqrt{D} \ln \frac{(\sqrt{D} + s_\delta) R}
    {(\sqrt{D} + s_R)\, \delta},\quad s_\epsilon = \sqrt{A \epsilon^2 + D}$$

    Closed form against Gauss quadrature in $\log \epsilon$.
    """
    low = delta / 2
    half = jnp.log(R / low) / 2
    epsilon = jnp.sqrt(R * low) * jnp.exp(half * jnp.asarray(_NODES))
    weights = half * jnp.asarray(_WEIGHTS)
    quadrature = jnp.sum(weights * epsilon * jnp.sqrt(A + D / epsilon**2))
    # The closed form takes sqrt(A R^2 + D) and logarithms apart that may nearly cancel.
    size = jnp.sqrt(A * R**2 + D) + jnp.sqrt(D) * (2 + 2 * half)
    return Sides(entropy_integral(A, D, low, R, split), quadrature, magnitude=size)
