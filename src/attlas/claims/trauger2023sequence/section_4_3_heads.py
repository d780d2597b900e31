r"""Section 4.3: what H heads cost in the covering of several layers."""

from functools import partial

import jax.numpy as jnp

from attlas.bounds.covering.trauger2023_allocation import trauger2023_allocation
from attlas.bounds.generalisation.trauger2023_deep import trauger2023_parts
from attlas.core.claim import Control, Status
from attlas.core.statement import identity

_HEADS, _DEPTH = (2, 5), 3


def layers(rng, count):
    """Norms c, v and qk of three layers, a coefficient for each kind of matrix, and a readout."""
    drawn = {name: 10.0 ** rng.uniform(-1, 1, (count, 3)) for name in ("c", "v", "qk")}
    return drawn | {"C": 10.0 ** rng.uniform(-1, 1, (count, 3)), "w": rng.uniform(0.1, 5, count)}


def _gamma(c, v, qk, C, w, *, depth, heads, only=0):
    """Gamma of the network below the readout, or of one of its layers."""
    one = jnp.ones((depth, heads))
    c, v, qk = (one * norm[:depth, None] for norm in (c, v, qk))
    parts = trauger2023_parts(c, v, qk, w, 1.0, constants="corrected")[1:]
    kept = [place for place, part in enumerate(parts) if only in (0, part.layer)]
    # W_c, W_v and W_QK have coefficients of their own, equal in all layers and heads
    C = jnp.stack([C[place % 3] for place in kept])
    beta = jnp.stack([parts[place].beta for place in kept])
    return jnp.cbrt(trauger2023_allocation(C, beta)[0])


on_layers = partial(identity, sample=layers, count=48, roundings=128)


@on_layers(
    "Section 4.3, dependence $H^{1.5}$",
    controls=[Control("linear in $H$", power=1.0)],
)
def section_4_3_heads(c, v, qk, C, w, *, power=1.5):
    r"""$$\sqrt{\gamma_H^3} = H^{1.5} \sqrt{\gamma_1^3}, \quad
    \gamma_H = \sum_{h \le H} \sum_j C_j^{1/3} \beta_j^{2/3}$$

    One layer of $H$ equal heads, without the readout: $\sqrt{\gamma^3}$ is what Dudley's integral
    multiplies. Section 4.2 has $H$ for one layer: the covering of sums costs $\sqrt H$.
    """
    gamma = partial(_gamma, c, v, qk, C, w, depth=1)
    left = jnp.stack([gamma(heads=heads) ** 1.5 for heads in _HEADS])
    return left, jnp.stack([heads**power * gamma(heads=1) ** 1.5 for heads in _HEADS])


@on_layers(
    "Section 4.3, $H$ heads in $L$ layers",
    status=Status.NEW,
    controls=[Control("$H$ in all layers, so $H^{1.5}$", amplified=False)],
)
def section_4_3_heads_deep(c, v, qk, C, w, *, amplified=True):
    r"""$$\gamma_H = \sum_{i=1}^L H^{1+\frac23(L-i)} \gamma_1^{(i)}, \quad
    \sqrt{\gamma_H^3} = \Theta(H^{L+1/2})$$

    Heads of equal norms also multiply the amplification: $\alpha_i$ gains $H^{L-i}$. The $H^{1.5}$
    of Section 4.3 is meant for one layer.
    """
    gamma = partial(_gamma, c, v, qk, C, w, depth=_DEPTH)
    single = [gamma(heads=1, only=layer) for layer in range(1, _DEPTH + 1)]
    powers = [1 + (2 * (_DEPTH - i) / 3 if amplified else 0.0) for i in range(1, _DEPTH + 1)]
    right = [
        jnp.sum(jnp.stack([heads**power * one for power, one in zip(powers, single, strict=True)]))
        for heads in _HEADS
    ]
    return jnp.stack([gamma(heads=heads) for heads in _HEADS]), jnp.stack(right)
