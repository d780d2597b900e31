r"""Lemma E.1: the change of the loss in four parts, exactly.

C_j = 2 <vec(F - Y), vec(v_j)> for j = 0, 1, 2 and C_3 = ||F(tau + 1) - F(tau)||_F^2.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.claims.gu2024exploring.instances import network, scaled_rounding
from attlas.claims.gu2024exploring.one_step import ROUNDINGS, norm, points, take, terms_of
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.models.networks.softmax_network import SoftmaxNetwork
from attlas.models.networks.softmax_network_gradient import network_gradient, outputs_and_gradient

_PAPER = "gu2024exploring"


def _decomposition(instance: Instance, without: int | None = None) -> Sides:
    """The loss after a step, from the network itself, against the five terms."""
    step = take(instance)
    X, Y = instance["X"], instance["Y"]
    moved = instance["W"] - step.eta * network_gradient(network(instance), X, Y)
    after, _ = outputs_and_gradient(SoftmaxNetwork(moved, instance["a"]), X, Y)
    parts = [2 * jnp.sum(step.u * v) for v in terms_of(instance, step)]
    parts.append(jnp.sum((after - step.F) ** 2))
    kept = sum((part for j, part in enumerate(parts) if j != without), jnp.zeros(()))
    # An output is a sum of m terms of size m S_ir, each off by the rounding of its logit.
    size = step.m * scaled_rounding(instance)
    whole = norm(step.u) + norm(after - Y)
    scale = size * whole * jnp.sqrt(step.size)
    return Sides(jnp.sum((after - Y) ** 2) - jnp.sum(step.u**2), kept, scale=scale)


def _denominator(instance: Instance, before: bool = False) -> Sides:
    """v_0 by its definition, against -F(tau + 1) q."""
    step = take(instance)
    outputs = step.F if before else step.after
    v_0 = terms_of(instance, step)[0]
    return Sides(v_0, -outputs * step.q[:, None], scale=step.m * scaled_rounding(instance))


def _factor(instance: Instance, divisor: float = 6.0) -> Sides:
    """|Theta - 1/2| against |delta| exp(|delta|) / 6."""
    x = instance["x"]
    found = (jnp.expm1(x) - x) / x**2
    size = jnp.abs(x)
    # expm1(x) - x loses the digits of x, then x^2 divides.
    return Sides(jnp.abs(found - 0.5), size * jnp.exp(size) / divisor, scale=1 / size)


def _steps(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    size = 10 ** rng.uniform(-3, -2, (count, 4))
    return {"x": jnp.asarray(size * rng.choice(np.array([-1.0, 1.0]), (count, 4)))}


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "instances": points,
    "count": 32,
    "terms": ROUNDINGS,
    "provenance": Provenance.DERIVED,
}

DECOMPOSITION = Claim(
    name=f"{_PAPER}/lemma-e-1",
    locator="Lemma E.1",
    statement=(
        r"\|F(\tau+1)-Y\|_F^2 = \|F(\tau)-Y\|_F^2 + C_0 + C_1 + C_2 + C_3,\quad "
        r"\Theta(1) = \frac{e^{\delta}-1-\delta}{\delta^2}"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    sides=_decomposition,
    control=tuple(
        Control(f"C_{j} dropped", sides=partial(_decomposition, without=j)) for j in range(4)
    ),
    note=(
        "With this factor the decomposition is exact, at any point and for any step. The loss "
        "after the step is computed by the network itself. Steps up to eta ||Delta w_r|| = .01."
    ),
    **_COMMON,
)

FACTOR = Claim(
    name=f"{_PAPER}/lemma-e-1-factor",
    locator="Lemma E.1, the factor Theta(1) in v_2",
    statement=(
        r"\Big|\frac{e^{\delta}-1-\delta}{\delta^2} - \frac12\Big| \le"
        r"\frac{|\delta| e^{|\delta|}}{6}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    sides=_factor,
    control=Control("7 in place of 6", sides=partial(_factor, divisor=7.0)),
    **_COMMON
    | {
        "instances": _steps,
        "terms": 8,
        "note": "Under the gradient property |delta| <= .01 the factor is within .0017 of 1/2.",
    },
)

DENOMINATOR = Claim(
    name=f"{_PAPER}/lemma-e-1-denominator",
    locator="Lemma E.1, the term v_0",
    statement=(r"v_{0,\ell,i} = -F_{\ell,i}(\tau+1) \sum_r S_{i,r} (e^{\delta_{i,r}} - 1)"),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    sides=_denominator,
    control=Control("F(tau) in place of F(tau+1)", sides=partial(_denominator, before=True)),
    note=(
        "The change of the denominator acts through the output itself, which is small beside m: "
        "this is why lemma-e-3-sharp needs no concentration."
    ),
    **_COMMON,
)
