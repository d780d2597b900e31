r"""Lemma E.1: the cheapest resolutions of n covers, against a second solver.

The second solver (SLSQP on the shares s_i = beta_i eps_i) knows nothing of the formula; its value
is certified by convexity, f(s) - min f <= <grad f(s), s> - min_i (grad f(s))_i on the simplex.
"""

from functools import cache, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import minimize

from attlas.bounds.covering.trauger2023_allocation import (
    trauger2023_allocation,
    trauger2023_allocation_residual,
)
from attlas.core.generator import generator, seed_of
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "trauger2023sequence"
_PARTS = 6
# Six roots of relative error 4 eps each, six sums and a cube: below 64 roundings.
_TERMS = 64


def _solve(weight: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """Least sum of weight / s^2 over the simplex, and how far above the least it may be."""

    def value(s: Float[np.ndarray, " n"]) -> float:
        return float(np.sum(weight / s**2))

    def slope(s: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return -2 * weight / s**3

    size = len(weight)
    # shares start in proportion to the square roots, which is not the answer
    start = np.sqrt(weight) / np.sqrt(weight).sum()
    unit = value(start)
    found = minimize(
        lambda s: value(s) / unit,
        start,
        jac=lambda s: slope(s) / unit,
        method="SLSQP",
        bounds=[(1e-6, 1.0)] * size,
        constraints={
            "type": "eq",
            "fun": lambda s: s.sum() - 1,
            "jac": lambda s: np.ones_like(s),
        },
        options={"ftol": 1e-14, "maxiter": 300},
    ).x
    found = found / found.sum()
    return value(found), float(slope(found) @ found - slope(found).min())


@cache
def _batch(seed: tuple[int, ...], count: int) -> dict[str, np.ndarray]:
    """Coefficients over four decades, costs over two, a share, and the second solver's value."""
    rng = np.random.default_rng(seed)
    C = 10.0 ** rng.uniform(-2, 2, (count, _PARTS))
    beta = 10.0 ** rng.uniform(-1, 1, (count, _PARTS))
    solved = np.asarray([_solve(c * b**2) for c, b in zip(C, beta, strict=True)])
    return {
        "C": C,
        "beta": beta,
        "epsilon": 10.0 ** rng.uniform(-2, 1, count),
        "share": rng.dirichlet(np.ones(_PARTS), count),
        "value": solved[:, 0],
        "gap": solved[:, 1],
    }


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    batch = _batch(seed_of(key), count)
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _drawn(key: PRNGKeyArray, count: int) -> Instance:
    """The same laws without the second solver."""
    rng = generator(key)
    draw = {
        "C": 10.0 ** rng.uniform(-2, 2, (count, _PARTS)),
        "beta": 10.0 ** rng.uniform(-1, 1, (count, _PARTS)),
        "epsilon": 10.0 ** rng.uniform(-2, 1, count),
        "share": rng.dirichlet(np.ones(_PARTS), count),
    }
    return {name: jnp.asarray(value) for name, value in draw.items()}


def _optimum(instance: Instance) -> Array:
    return trauger2023_allocation(instance["C"], instance["beta"])[0]


def _against_solver(instance: Instance, swapped: bool = False) -> Sides:
    """gamma^3 and the second solver's value at eps = 1, which exceeds the least by the gap."""
    C, beta = instance["C"], instance["beta"]
    gamma = jnp.sum(jnp.cbrt(C) ** 2 * jnp.cbrt(beta)) if swapped else jnp.cbrt(_optimum(instance))
    return Sides(gamma**3, instance["value"], error=instance["gap"])


def _resolutions(instance: Instance, power: float = 1.0) -> Array:
    """eps_i of the lemma, with beta_i to a power."""
    C, beta, epsilon = (instance[k] for k in ("C", "beta", "epsilon"))
    gamma = jnp.sum(jnp.cbrt(C) * jnp.cbrt(beta) ** 2)
    return epsilon / gamma * jnp.cbrt(C / beta**power)


def _reached(instance: Instance, power: float = 1.0) -> Sides:
    """The budget, the value and the conditions of Karush, Kuhn and Tucker at the resolutions."""
    C, beta, epsilon = (instance[k] for k in ("C", "beta", "epsilon"))
    parts = _resolutions(instance, power)
    residual = trauger2023_allocation_residual(C, beta, parts / epsilon)
    left = jnp.stack([jnp.sum(beta * parts) / epsilon, jnp.sum(C / parts**2), residual])
    right = jnp.stack([jnp.ones(()), _optimum(instance) / epsilon**2, jnp.zeros(())])
    # the residual compares numbers of order one
    return Sides(left, right, scale=jnp.maximum(jnp.abs(right), 1))


def _feasible(instance: Instance) -> dict[str, Array]:
    """Positive shares of the budget."""
    share = jnp.maximum(jnp.abs(instance["share"]), 1e-6)
    return {**instance, "share": share / jnp.sum(share)}


def _least(instance: Instance, swapped: bool = False) -> Sides:
    C, beta, epsilon = (instance[k] for k in ("C", "beta", "epsilon"))
    parts = epsilon * instance["share"] / beta
    gamma = jnp.sum(jnp.cbrt(C) ** 2 * jnp.cbrt(beta)) if swapped else jnp.cbrt(_optimum(instance))
    return Sides(gamma**3 / epsilon**2, jnp.sum(C / parts**2))


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "status": Status.AS_PRINTED,
    "provenance": Provenance.FOUND,
    "terms": _TERMS,
    "count": 48,
}

LEMMA_E_1_VALUE = Claim(
    name=f"{_PAPER}/lemma-e-1-value",
    locator="Lemma E.1, against a second solver",
    statement=(
        r"\min_{\sum_i \beta_i \epsilon_i = 1} \sum_i \frac{C_i}{\epsilon_i^2} = \gamma^3,"
        r"\quad \gamma = \sum_i C_i^{1/3} \beta_i^{2/3}"
    ),
    kind=Kind.IDENTITY,
    instances=_instances,
    sides=_against_solver,
    control=Control("exponents 2/3 and 1/3 swapped", sides=partial(_against_solver, swapped=True)),
    note=(
        "Six covers, coefficients over four decades. The other value comes from sequential "
        "quadratic programming, with the gap that convexity certifies as its error."
    ),
    **_COMMON,
)

LEMMA_E_1_KKT = Claim(
    name=f"{_PAPER}/lemma-e-1-kkt",
    locator="Lemma E.1, the resolutions",
    statement=(
        r"\epsilon_i = \frac{\epsilon}{\gamma} \Big(\frac{C_i}{\beta_i}\Big)^{1/3}: \quad "
        r"\sum_i \beta_i \epsilon_i = \epsilon, \quad "
        r"\sum_i \frac{C_i}{\epsilon_i^2} = \frac{\gamma^3}{\epsilon^2}, \quad "
        r"\frac{C_i}{\beta_i \epsilon_i^3} \text{ equal for all } i"
    ),
    kind=Kind.IDENTITY,
    instances=_drawn,
    sides=_reached,
    control=Control("without the costs beta", sides=partial(_reached, power=0.0)),
    note="The printed solution satisfies the optimality conditions to rounding.",
    **_COMMON,
)

LEMMA_E_1_LEAST = Claim(
    name=f"{_PAPER}/lemma-e-1-least",
    locator="Lemma E.1, no resolutions do better",
    statement=(
        r"\sum_i \beta_i \epsilon_i = \epsilon \;\Rightarrow\;"
        r"\frac{\gamma^3}{\epsilon^2} \le \sum_i \frac{C_i}{\epsilon_i^2}"
    ),
    kind=Kind.INEQUALITY,
    instances=_drawn,
    sides=_least,
    free=("share",),
    domain=_feasible,
    control=Control(
        "exponents 2/3 and 1/3 swapped",
        sides=partial(_least, swapped=True),
    ),
    note="A search over the shares comes down to the value and not below it.",
    **_COMMON,
)
