r"""Lemma E.1: the cheapest resolutions of n covers, against a second solver.

The second solver (SLSQP on the shares s_i = beta_i eps_i) knows nothing of the formula; its value
is certified by convexity, f(s) - min f <= <grad f(s), s> - min_i (grad f(s))_i on the simplex.
"""

import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from attlas.bounds.covering.trauger2023_allocation import (
    trauger2023_allocation,
    trauger2023_allocation_residual,
)
from attlas.claims.claim import Control, Sides, Source
from attlas.claims.perturbed_draws import apart
from attlas.claims.statement import identity, inequality

_PARTS = 6
# Six roots of relative error 4 eps each, six sums and a cube: below the default of 64 roundings.


def resolutions(rng, count):
    """Coefficients over four decades, costs over two, a resolution and shares of it.

    Every fourth shares are a hundredth of the way from the cheapest to random ones.
    """
    batch = {
        "C": 10.0 ** rng.uniform(-2, 2, (count, _PARTS)),
        "beta": 10.0 ** rng.uniform(-1, 1, (count, _PARTS)),
        "epsilon": 10.0 ** rng.uniform(-2, 1, count),
        "share": rng.dirichlet(np.ones(_PARTS), count),
    }
    cheapest = np.cbrt(batch["C"] * batch["beta"] ** 2)[::4]
    cheapest /= cheapest.sum(axis=1, keepdims=True)
    batch["share"][::4] = 0.99 * cheapest + 0.01 * batch["share"][::4]
    return batch


def _solve(weight):
    """Least sum of weight / s^2 over the simplex, and how far above the least it may be."""

    def value(s):
        return float(np.sum(weight / s**2))

    def slope(s):
        return -2 * weight / s**3

    # shares start in proportion to the square roots, which is not the answer
    start = np.sqrt(weight) / np.sqrt(weight).sum()
    unit = value(start)
    simplex = {"type": "eq", "fun": lambda s: s.sum() - 1, "jac": lambda s: np.ones_like(s)}
    solution = minimize(
        lambda s: value(s) / unit,
        start,
        jac=lambda s: slope(s) / unit,
        method="SLSQP",
        bounds=[(1e-6, 1.0)] * len(weight),
        constraints=simplex,
        options={"ftol": 1e-14, "maxiter": 300},
    ).x
    solution = solution / solution.sum()
    return value(solution), float(slope(solution) @ solution - slope(solution).min())


def solved(rng, count):
    """Coefficients and costs with the second solver's value and its gap."""
    batch = resolutions(apart(rng), count)
    pairs = zip(batch["C"], batch["beta"], strict=True)
    value, gap = np.asarray([_solve(c * b**2) for c, b in pairs]).T
    return {"C": batch["C"], "beta": batch["beta"], "value": value, "gap": gap}


def _least(C, beta, swapped):
    """gamma^3; with the exponents swapped, a false one."""
    if swapped:
        return jnp.sum(jnp.cbrt(C) ** 2 * jnp.cbrt(beta)) ** 3
    return trauger2023_allocation(C, beta)[0]


@identity(
    "Lemma E.1, against a second solver",
    Source.FOUND,
    sample=solved,
    count=48,
    controls=[Control("exponents 2/3 and 1/3 swapped", swapped=True)],
)
def lemma_e_1_value(C, beta, value, gap, *, swapped=False):
    r"""$$\min_{\sum_i \beta_i \epsilon_i = 1} \sum_i \frac{C_i}{\epsilon_i^2} = \gamma^3,
    \quad \gamma = \sum_i C_i^{1/3} \beta_i^{2/3}$$

    Six covers, coefficients over four decades. The other value comes from sequential quadratic
    programming, with the gap that convexity certifies as its error.
    """
    return Sides(_least(C, beta, swapped), value, error=gap)


@identity(
    "Lemma E.1, the resolutions",
    Source.FOUND,
    sample=resolutions,
    count=48,
    controls=[Control(r"without the costs $\beta$", power=0.0)],
)
def lemma_e_1_kkt(C, beta, epsilon, *, power=1.0):
    r"""$$\epsilon_i = \frac{\epsilon}{\gamma} \Big(\frac{C_i}{\beta_i}\Big)^{1/3}: \quad
    \sum_i \beta_i \epsilon_i = \epsilon, \quad
    \sum_i \frac{C_i}{\epsilon_i^2} = \frac{\gamma^3}{\epsilon^2}, \quad
    \frac{C_i}{\beta_i \epsilon_i^3} \text{ equal for all } i$$

    The library's $\epsilon_i$ satisfies the optimality conditions to rounding.
    """
    costs = epsilon * trauger2023_allocation(C, beta**power)[1]
    residual = trauger2023_allocation_residual(C, beta, costs / epsilon)
    left = jnp.stack([jnp.sum(beta * costs) / epsilon, jnp.sum(C / costs**2), residual])
    least = _least(C, beta, swapped=False) / epsilon**2
    right = jnp.stack([jnp.ones(()), least, jnp.zeros(())])
    # the residual compares numbers of order one
    return Sides(left, right, magnitude=jnp.maximum(jnp.abs(right), 1))


def on_budget(share):
    """Positive shares of the budget."""
    share = jnp.maximum(jnp.abs(share), 1e-6)
    return {"share": share / jnp.sum(share)}


@inequality(
    "Lemma E.1, no resolutions do better",
    Source.FOUND,
    sample=resolutions,
    count=48,
    search_over="share",
    project=on_budget,
    controls=[
        Control("exponents 2/3 and 1/3 swapped", swapped=True),
        Control("nine tenths of the right side", factor=0.9),
    ],
)
def lemma_e_1_least(C, beta, epsilon, share, *, swapped=False, factor=1.0):
    r"""$$\sum_i \beta_i \epsilon_i = \epsilon \;\Rightarrow\;
    \frac{\gamma^3}{\epsilon^2} \le \sum_i \frac{C_i}{\epsilon_i^2}$$

    A search over the shares comes down to the value and not below it.
    """
    right = factor * jnp.sum(C / (epsilon * share / beta) ** 2)
    return _least(C, beta, swapped) / epsilon**2, right
