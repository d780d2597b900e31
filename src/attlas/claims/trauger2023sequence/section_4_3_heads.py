r"""Section 4.3: what H heads cost in the covering of several layers."""

from functools import partial
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.covering.trauger2023_allocation import trauger2023_allocation
from attlas.bounds.generalisation.trauger2023_deep import trauger2023_parts
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "trauger2023sequence"
_HEADS = (2, 5)


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    batch = {name: 10.0 ** rng.uniform(-1, 1, (count, 3)) for name in ("c", "v", "qk")}
    batch |= {"C": 10.0 ** rng.uniform(-1, 1, (count, 3)), "readout": rng.uniform(0.1, 5, count)}
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _root(instance: Instance, depth: int, heads: int, only: int = 0) -> Array:
    """Gamma of the network below the readout, or of one of its layers."""
    one = jnp.ones((depth, heads))
    c, v, qk = (one * instance[name][:depth, None] for name in ("c", "v", "qk"))
    parts = trauger2023_parts(c, v, qk, instance["readout"], 1.0)[1:]
    kept = [place for place, part in enumerate(parts) if only in (0, part.layer)]
    # W_c, W_v and W_QK have coefficients of their own, equal in all layers and heads
    C = jnp.stack([instance["C"][place % 3] for place in kept])
    beta = jnp.stack([parts[place].beta for place in kept])
    return jnp.cbrt(trauger2023_allocation(C, beta)[0])


def _one_layer(instance: Instance, power: float = 1.5) -> Sides:
    single = _root(instance, 1, 1) ** 1.5
    found = [_root(instance, 1, heads) ** 1.5 for heads in _HEADS]
    return Sides(jnp.stack(found), jnp.stack([heads**power * single for heads in _HEADS]))


def _deep(instance: Instance, depth: int = 3, amplified: bool = True) -> Sides:
    """Gamma of H heads, layer by layer from one head."""
    layers = [_root(instance, depth, 1, layer) for layer in range(1, depth + 1)]
    right = []
    for heads in _HEADS:
        grown = [
            heads ** (1 + (2 * (depth - i) / 3 if amplified else 0.0)) * layer
            for i, layer in enumerate(layers, 1)
        ]
        right.append(jnp.sum(jnp.stack(grown)))
    left = [_root(instance, depth, heads) for heads in _HEADS]
    return Sides(jnp.stack(left), jnp.stack(right))


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.IDENTITY,
    "instances": _instances,
    "count": 48,
    "terms": 128,
}

HEADS = Claim(
    name=f"{_PAPER}/section-4-3-heads",
    locator="Section 4.3, dependence H^1.5",
    statement=(
        r"\sqrt{\gamma_H^3} = H^{1.5} \sqrt{\gamma_1^3}, \quad "
        r"\gamma_H = \sum_{h \le H} \sum_j C_j^{1/3} \beta_j^{2/3}"
    ),
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    sides=_one_layer,
    control=Control("linear in H", sides=partial(_one_layer, power=1.0)),
    note=(
        "One layer of H equal heads, without the readout: sqrt(gamma^3) is what Dudley's integral "
        "multiplies. Section 4.2 has H for one layer: the covering of sums costs sqrt(H)."
    ),
    **_COMMON,
)

HEADS_DEEP = Claim(
    name=f"{_PAPER}/section-4-3-heads-deep",
    locator="Section 4.3, H heads in L layers",
    statement=(
        r"\gamma_H = \sum_{i=1}^L H^{1+\frac23(L-i)} \gamma_1^{(i)}, \quad "
        r"\sqrt{\gamma_H^3} = \Theta(H^{L+1/2})"
    ),
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    sides=_deep,
    control=Control("H in all layers, so H^1.5", sides=partial(_deep, amplified=False)),
    note=(
        "Heads of equal norms also multiply the amplification: alpha_i gains H^(L-i). H^1.5 holds "
        "for one layer, or where the norms of a layer's heads add up to a fixed number."
    ),
    **_COMMON,
)
