r"""Theorem 6.6 (score estimation) with its assumptions, on the runs of `score_runs`.

Assumptions: 6.1 inputs and labels of norm at most 1; 6.2 lambda > 0 (our reading, the formula is
lost); 6.3 g bounded; 6.4 f_* Lipschitz in x; 6.5 early stopping errs by epsilon at most, read
here as the measured Z_3 of Claim G.1.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.bounds.optimisation.gu2024_convergence import gu2024_radius, gu2024_width_log10
from attlas.bounds.optimisation.gu2024_score import gu2024_complexity, gu2024_score_error
from attlas.claims.gu2024exploring.claim_g_1 import distance
from attlas.claims.gu2024exploring.instances import as_arrays
from attlas.claims.gu2024exploring.score_runs import WIDTH, score_runs
from attlas.core.generator import generator
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome

_PAPER = "gu2024exploring"
_DELTA = 0.1
_ROUNDINGS = 512
"""Sums over 96 test points and two outputs, a handful of powers and logarithms."""


def _normalised(instance: Instance) -> Array:
    size = jnp.sum(instance["X"] ** 2, axis=1), jnp.sum(instance["Y"] ** 2, axis=1)
    slack = 1 + 16 * jnp.finfo(instance["X"].dtype).eps  # lengths were divided by the largest
    return jnp.max(jnp.stack(size)) <= slack


def _bounded_rate(instance: Instance) -> Array:
    ends = jnp.stack((instance["start"], instance["end"]))
    return jnp.all(jnp.isfinite(ends) & (ends > 0))


def _printed_width(instance: Instance, C: float = 1.0) -> Float[Array, ""]:
    n, d = instance["Y"].shape
    B = gu2024_radius(n, d, _DELTA, instance["sigma"], C)
    return gu2024_width_log10(n, d, instance["lam"], B, _DELTA, power=3)


ASSUMPTIONS = (
    Assumption("6.1: training inputs and labels of norm at most 1", _normalised),
    Assumption("6.2: lambda > 0", lambda i: i["lam"] > 0),
    Assumption("6.3: g positive and bounded, being linear on [0, T]", _bounded_rate),
    Assumption(
        "6.4: the measured slope of f_* in x is finite", lambda i: jnp.isfinite(i["lipschitz"])
    ),
    Assumption(
        "6.5: the early stopping error is finite",
        lambda i: jnp.isfinite(distance(i, "clean", "ball")),
    ),
)


def _terms(instance: Instance) -> dict[str, Array]:
    n, d = instance["Y"].shape
    early = distance(instance, "clean", "ball")
    return gu2024_score_error(n, d, instance["lam"], _DELTA, instance["R_H"], early)


def _bounded(instance: Instance) -> Sides:
    total = jnp.sum(jnp.stack(list(_terms(instance).values())))
    return Sides(distance(instance, "F", "truth"), total)


def _early_stopping_alone(instance: Instance) -> Sides:
    return Sides(distance(instance, "F", "truth"), _terms(instance)["early_stopping"])


_FORMULA = (
    r"\mathbb{E} \|F_{W(\hat T)} - f_*\|^2 \le \frac{1}{\lambda \sqrt n} + \epsilon(n, \hat T)"
    r"+ d A^2 + d A + \sqrt{d A \Gamma_\delta} + \Gamma_\delta"
)


def _common(**further: Any) -> dict[str, Any]:
    return {
        "paper": _PAPER,
        "kind": Kind.INEQUALITY,
        "status": Status.RECONSTRUCTED,
        "provenance": Provenance.RECALLED,
        "instances": score_runs,
        "sides": _bounded,
        "count": 32,
        "terms": _ROUNDINGS,
        **further,
    }


THEOREM_6_6 = Claim(
    name=f"{_PAPER}/theorem-6-6",
    locator="Theorem 6.6, as printed",
    statement=(r"m \ge \lambda^{-2} n^3 d^3 e^{18B} \log^2 (nd/\delta) \;\Rightarrow\;" + _FORMULA),
    assumptions=(
        *ASSUMPTIONS,
        Assumption(
            "m is at least the printed width, constants 1",
            lambda i: _printed_width(i) <= np.log10(WIDTH),
        ),
    ),
    control=Control(
        "the early stopping term alone, any width",
        sides=_early_stopping_alone,
        instances=score_runs,
    ),
    expect=Expectation(
        Outcome.NOT_APPLICABLE,
        "with all hidden constants 1 the width is above 10^17 for n = 8 and two dimensions",
    ),
    **_common(
        note=(
            "On the drawn runs, with lambda from 1e-7 to 6e-3, sigma from 0.1 to 3 and C = 1, the "
            "width is 10^21 to 10^60, half of them above 10^26; with C = 10 it is 10^35 to 10^503. "
            "Assumption 6.2 could not be read."
        )
    ),
)

ANY_WIDTH = Claim(
    name=f"{_PAPER}/theorem-6-6-any-width",
    locator="Theorem 6.6 with measured terms, at width 64",
    statement=r"m = 64,\ n = 8,\ d = 2: \quad" + _FORMULA,
    assumptions=ASSUMPTIONS,
    control=Control("the early stopping term alone", sides=_early_stopping_alone),
    **_common(
        note=(
            "Supported because it is vacuous: medians 1.9e3 for 1/(lambda sqrt(n)), 275 for Gamma, "
            "11, 0.5 and 0.1 for the terms with A, 0.05 for early stopping, against an error of "
            "0.16; the zero function, with 0.22, obeys it as well. No mutant that keeps one of "
            "the two large terms could be noticed. Hidden constants 1, A at the measured R_H."
        )
    ),
)


def _sizes(key: PRNGKeyArray, count: int, largest: float = 5.0, d: int = 8) -> Instance:
    """Sample sizes up to 10^largest, dimensions from 2 to d."""
    rng = generator(key)
    n = np.floor(10 ** rng.uniform(largest - 3, largest, count))
    dims = rng.integers(2, d + 1, count).astype(float)
    return as_arrays({"n": n, "d": dims, "delta": 10 ** rng.uniform(-3, -0.5, count)})


def _trivial(instance: Instance) -> Sides:
    n, d, delta = (instance[name] for name in ("n", "d", "delta"))
    return Sides(jnp.ones_like(n), gu2024_complexity(n, d, delta))


VACUITY = Claim(
    name=f"{_PAPER}/theorem-6-6-vacuous",
    locator="Theorem 6.6, the term Gamma",
    statement=r"1 \le \Gamma_\delta,\quad 100 \le n \le 10^5,\ d \ge 2",
    kind=Kind.INEQUALITY,
    paper=_PAPER,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_sizes,
    sides=_trivial,
    control=Control("n above 10^6 in the plane", instances=partial(_sizes, largest=9.0, d=2)),
    terms=64,
    note=(
        "Labels of norm at most 1 make the error of the zero function at most 1, so that the "
        "bound says nothing while Gamma > 1: for d = 2 up to n = 1.3 10^5, growing like d^4 log^3. "
        "This hinges on the inside e(n+1) of the logarithm, which is recalled: with 1 in place of "
        "the logarithm it would be n = 100 for d = 2 and 17,000 for d = 8."
    ),
)
