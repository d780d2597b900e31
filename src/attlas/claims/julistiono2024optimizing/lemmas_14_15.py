r"""Lemmas 14 and 15: scalar differences of powers for x >= y >= 0."""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.claims.julistiono2024optimizing.instances import EXPONENTS
from attlas.core.generator import generator
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)

_PAPER = "julistiono2024optimizing"


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Exponential pairs, a third of them close together, where both ends are tight."""
    rng = generator(key)
    y, gap = rng.exponential(size=(2, count))
    gap = np.where(np.arange(count) % 3 == 0, gap / 100, gap)
    p = rng.choice(EXPONENTS, size=count)
    return {"x": jnp.asarray(y + gap), "y": jnp.asarray(y), "p": jnp.asarray(p)}


def _ordered(instance: Instance) -> Instance:
    first, second = jnp.abs(instance["x"]), jnp.abs(instance["y"])
    return {**instance, "x": jnp.maximum(first, second), "y": jnp.minimum(first, second)}


_ORDER = Assumption(r"x \ge y \ge 0", lambda i: (i["x"] >= i["y"]) & (i["y"] >= 0))
_POSITIVE = Assumption("y > 0, as y^{p-2} needs for p < 2", lambda i: i["y"] > 0)


def _fourteen(instance: Instance, swapped: bool = False) -> Sides:
    x, y, p = instance["x"], instance["y"], instance["p"]
    ratio = (p - 1) / p if swapped else p / (p - 1)
    middle, step = x**p - y**p, x ** (p - 1) - y ** (p - 1)
    scale = x**p + y**p + ratio * x * (x ** (p - 1) + y ** (p - 1))
    lhs, rhs = jnp.stack([ratio * y * step, middle]), jnp.stack([middle, ratio * x * step])
    return Sides(lhs, rhs, scale=scale)


LEMMA_14 = Claim(
    name=f"{_PAPER}/lemma-14",
    paper=_PAPER,
    locator="Lemma 14",
    statement=(
        r"x \ge y \ge 0: \quad \frac{p}{p-1} y (x^{p-1} - y^{p-1}) \le x^p - y^p"
        r"\le \frac{p}{p-1} x (x^{p-1} - y^{p-1})"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_fourteen,
    assumptions=(_ORDER,),
    free=("x", "y"),
    domain=_ordered,
    control=(Control("p and p - 1 exchanged", sides=partial(_fourteen, swapped=True)),),
    note="Both ends are tight as x - y becomes small.",
)


def _fifteen(instance: Instance, exchanged: bool = False) -> Sides:
    x, y, p = instance["x"], instance["y"], instance["p"]
    power = jnp.where(p >= 2, x, y), jnp.where(p >= 2, y, x)
    large, small = power[::-1] if exchanged else power
    step = x ** (p - 1) - y ** (p - 1)
    ends = [(p - 1) * base ** (p - 2) * (x - y) for base in (small, large)]
    scale = x ** (p - 1) + y ** (p - 1) + jnp.stack(ends)
    return Sides(jnp.stack([ends[0], step]), jnp.stack([step, ends[1]]), scale=scale)


LEMMA_15 = Claim(
    name=f"{_PAPER}/lemma-15",
    paper=_PAPER,
    locator="Lemma 15",
    statement=(
        r"x \ge y \ge 0: \quad (p-1) y^{p-2} (x-y) \le x^{p-1} - y^{p-1} \le (p-1) x^{p-2} (x-y)"
        r"\ (p \ge 2), \quad \text{reversed for } 1 < p < 2"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_fifteen,
    assumptions=(_ORDER, _POSITIVE),
    free=("x", "y"),
    domain=_ordered,
    control=(Control("the regimes of p exchanged", sides=partial(_fifteen, exchanged=True)),),
    note="Equalities at p = 2, and as x - y becomes small.",
)
