r"""Lemmas 29 and 30 and the rate theorem, on the flow in log time.

Our `norm` is the paper's x = ||W(k)||_{p,p}; k is the plain clock of the flow in units of the step.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from attlas.claims.julistiono2024optimizing.flow_instances import flows
from attlas.core.claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)

_PAPER = "julistiono2024optimizing"


def _envelope(x: Array, p: Array) -> Array:
    """The rate log x / x for p > 2, its square over x for p = 2, x^{-(p-1)} for p < 2."""
    slow = x ** -(p - 1)
    return jnp.where(p > 2, jnp.log(x) / x, jnp.where(p == 2, jnp.log(x) ** 2 / x, slow))


def _by_norm(instance: Instance) -> Sides:
    x = instance["norm"]
    return Sides(instance["divergence_by_norm"], _envelope(x, instance["p"]), scales=x)


def _by_norm_too_fast(instance: Instance) -> Sides:
    return _by_norm(instance)._replace(rhs=instance["norm"] ** -4)


def _squared(instance: Instance) -> Sides:
    x, p = instance["norm"], instance["p"]
    return Sides(
        instance["divergence_by_norm"], x ** (-0.9 * jnp.minimum(2.0, 2 * (p - 1))), scales=x
    )


def _growth(instance: Instance) -> Sides:
    log_k = instance["log_k"]
    return Sides(log_k, instance["norm_by_time"], scales=log_k)


def _growth_too_fast(instance: Instance) -> Sides:
    return _growth(instance)._replace(lhs=jnp.exp(instance["log_k"] / 8))


def _by_time(instance: Instance) -> Sides:
    log_k = instance["log_k"]
    return Sides(instance["divergence"], _envelope(log_k, instance["p"]), scales=log_k)


def _by_time_too_fast(instance: Instance) -> Sides:
    return _by_time(instance)._replace(rhs=instance["log_k"] ** -4)


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.RATE,
    "instances": flows,
    "count": 60,
    "assumptions": (
        Assumption(
            "the attention SVM is certified to a relative gap of 1e-8", lambda i: i["certified"]
        ),
    ),
}

LEMMA_29 = Claim(
    name=f"{_PAPER}/lemma-29",
    locator="Lemma 29 (28)",
    statement=(
        r"D_\psi(\bar W_{mm},\bar W(k)) = O\!\left(\frac{\log x}{x}\right)\ (p>2),\quad "
        r"O\!\left(\frac{(\log x)^2}{x}\right)\ (p=2),\quad O\!\left(x^{-(p-1)}\right)\ (1<p<2),"
        r"\quad x=\|W(k)\|_{p,p}"
    ),
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    sides=_by_norm,
    controls=(Control("decay as the fourth power of the norm", sides=_by_norm_too_fast),),
    ledger=Link("Lemmas 27-29", 6),
    note=(
        "p = 1.5, 2, 3, norms 20, 80 and 320 on the flow. An upper bound: the decay seen is "
        "faster, about x^-2 for p = 2 and 3 and x^-1 for p = 1.5."
    ),
    **_COMMON,
)

RATE_BY_NORM = Claim(
    name=f"{_PAPER}/lemma-29-observed",
    locator="Lemma 29, the decay that is seen",
    statement=(
        r"D_\psi(\bar W_{mm},\bar W(k)) = O\!\left(x^{-(1-\epsilon)\min\{2,\,2(p-1)\}}\right),"
        r"\quad \epsilon=0.1,\ x=\|W(k)\|_{p,p}"
    ),
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    sides=_squared,
    controls=(Control("decay as the fourth power of the norm", sides=_by_norm_too_fast),),
    note=(
        "Not proved. Directions err by O(1/x) and D is quadratic in the error where W_mm "
        "has no zero entry; on random data, on the flow. At epsilon = 0 "
        "the ratio is flat to three digits for p = 2 and 3."
    ),
    **_COMMON,
)

LEMMA_30 = Claim(
    name=f"{_PAPER}/lemma-30",
    locator="Lemma 30",
    statement=r"\|W(k)\|_{p,p} = \Omega(\log k)",
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    sides=_growth,
    controls=(Control("growth of the norm as the eighth root of k", sides=_growth_too_fast),),
    note=(
        "Here log k = O(||W(k)||) on the flow, log k up to several hundred; the ratio tends to "
        "1/||W_mm||."
    ),
    **_COMMON,
)

RATE = Claim(
    name=f"{_PAPER}/rate-theorem",
    locator="Rate theorem",
    statement=(
        r"D_\psi(\bar W_{mm},\bar W(k)) = O\!\left(\frac{\log\log k}{\log k}\right)\ (p>2),\quad "
        r"O\!\left(\frac{(\log\log k)^2}{\log k}\right)\ (p=2),\quad "
        r"O\!\left(\frac{1}{(\log k)^{p-1}}\right)\ (1<p<2)"
    ),
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    sides=_by_time,
    controls=(Control("decay as the fourth power of log k", sides=_by_time_too_fast),),
    note=(
        "On the flow, where it is Lemmas 29 and 30 together. The paper's plots use normalised "
        "steps, to which it does not apply."
    ),
    **_COMMON,
)
