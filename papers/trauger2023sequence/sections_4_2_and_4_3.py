r"""Sections 4.2 and 4.3: what heads, layers and long tokens cost.

In Section 4.2 each head is s relu(v' X' softmax(X M x_1)), s = 1 or -1, v one of the vectors e_j
and -e_j, M one of two matrices: sixteen functions, every triple of them, every sign vector.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.constants import Constants
from attlas.bounds.covering.trauger2023_allocation import trauger2023_allocation
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_deep import (
    trauger2023_deep_entropy,
    trauger2023_parts,
)
from attlas.bounds.generalisation.trauger2023_single import trauger2023_alpha
from attlas.claims.claim import Control, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity, inequality
from trauger2023sequence.single_layer_instances import (
    exact_complexity,
    small_sequences,
)

_M, _TRIPLE = 6, 3


def _one_head(X, M):
    """The sixteen functions of one head as rows."""
    logits = jnp.einsum("mtd,kde,me->kmt", X, M, X[:, 0])
    pooled = jnp.einsum("kmt,mtd->kdm", jax.nn.softmax(logits, axis=-1), X).reshape(-1, _M)
    half = jax.nn.relu(jnp.concatenate([pooled, -pooled]))
    return jnp.concatenate([half, -half])


@identity(
    "Section 4.2",
    Source.FOUND,
    sample=partial(small_sequences, m=_M, matrices=2),
    count=32,
    controls=[Control("the root of $H$", factor=_TRIPLE**0.5), Control("one head", factor=1.0)],
)
def section_4_2_heads(X, M, *, factor=float(_TRIPLE)):
    r"""$$\mathbb{E} \sup_{Y_1,\dots,Y_H} \sum_{i=1}^m \epsilon_i w^\top \sum_{j=1}^H Y_j(X_i) =
    H\, \mathbb{E} \sup_{Y} \sum_{i=1}^m \epsilon_i w^\top Y(X_i)$$

    $H = 3$, all triples of heads. An equality, no bound: averaged instead of summed, heads would
    cost nothing. That $w$ is shared costs nothing either, as every column of each $W_c$ is free:
    the supremum of a head is the same at every entry of $w$.
    """
    single = _one_head(X, M)
    triples = (single[:, None, None] + single[None, :, None] + single[None, None, :]).reshape(
        -1, _M
    )
    return exact_complexity(triples), factor * exact_complexity(single)


_HEADS, _DEPTH = (2, 5), 3
_NORMS = ("B", "B_x", "B_c", "B_v", "B_qk", "B_w", "lipschitz")
_COST, _GROWTH, _K, _D = 2 + 2 ** (2 / 3), 5 ** (2 / 3), 3, 5
"""Roots of what a layer costs and of its growth at norms 1, and the sizes of matrices."""


def layers(rng, count):
    """Norms c, v and qk of three layers, a coefficient for each kind of matrix, and a readout."""
    batch = {name: six_decades(rng, (count, 3), -1, 1) for name in ("c", "v", "qk")}
    return batch | {"C": 10.0 ** rng.uniform(-1, 1, (count, 3)), "w": rng.uniform(0.1, 5, count)}


def _gamma(c, v, qk, C, w, *, depth, heads, only=0):
    """Gamma of the network below the readout, or of one of its layers."""
    ones = jnp.ones((depth, heads))
    c, v, qk = (ones * norm[:depth, None] for norm in (c, v, qk))
    costs = trauger2023_parts(c, v, qk, w, 1.0, constants="corrected")[1:]
    places = [place for place, part in enumerate(costs) if only in (0, part.layer)]
    # W_c, W_v and W_QK have coefficients of their own, equal in all layers and heads
    C = jnp.stack([C[place % 3] for place in places])
    beta = jnp.stack([costs[place].beta for place in places])
    return jnp.cbrt(trauger2023_allocation(C, beta)[0])


on_layers = partial(identity, sample=layers, count=48, roundings=128)


@on_layers("Section 4.3, dependence $H^{1.5}$", controls=[Control("linear in $H$", power=1.0)])
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
        jnp.sum(
            jnp.stack(
                [heads**power * gamma_1 for power, gamma_1 in zip(powers, single, strict=True)]
            )
        )
        for heads in _HEADS
    ]
    return jnp.stack([gamma(heads=heads) for heads in _HEADS]), jnp.stack(right)


def sizes(rng, count, least=0.0):
    """Norms from 10^least to 10; in every fourth instance all but at most one are the least.

    The exception is 10: none of them at first, then each of them in turn, so that the power of each
    norm is tested alone. Half of those of W_QK are as far as 10^(least + 6).
    """
    place = np.arange(count)
    spread = (place % 4 > 0) * (1 - least)
    norms = {name: 10 ** (least + spread * rng.uniform(0, 1, count)) for name in _NORMS}
    for turn, name in enumerate(_NORMS, start=1):
        norms[name][(place % 4 == 0) & (place // 4 % (len(_NORMS) + 1) == turn)] = 10.0
    far = 10 ** (least + 6 * rng.uniform(0, 1, count))
    norms["B_qk"] = np.where(place % 4 > 1, far, norms["B_qk"])
    return norms


@inequality(
    "Section 4.3, the order displayed after Corollary 4.2.1",
    Source.FOUND,
    sample=sizes,
    status=Status.SHARPENED,
    search_over=_NORMS,
    project=lambda **norms: {name: jnp.maximum(norms[name], 1.0) for name in _NORMS},
    controls=[
        Control("norms below 1 as well", sample=partial(sizes, least=-1.0)),
        Control("the exponent $L$ in place of $2L$", power=1.0),
        Control("without $B_x^2$", tokens=0.0),
        Control("without $B_w^2$", readout=0.0),
        Control("half of the right side", share=0.5),
    ],
)
def corollary_4_2_1_order(
    B, B_x, B_c, B_v, B_qk, B_w, lipschitz, *, power=2.0, tokens=2.0, readout=2.0, share=1.0
):
    r"""$$(\gamma+\eta)^3 \le (2+2^{2/3})^3\, 5^{2(L-1)} \ln(2dk+1)\, B^2 B_x^2 B_w^2
    (L_\sigma B_{c2} B_{v2} B_{QK2})^{2L},\quad \text{all norms} \ge 1$$

    The display with its exponent, $2L$, and its constant, attained at $L = 1$ and norms 1: each
    term of the printed $\gamma$ and $\eta$ is at most its value at norms 1 times the powers on
    the right. Norms of at least 1 are needed, as the term of the readout has none of them. The
    corrected $\gamma$ and $\eta$ have $5.45^3$ in place of $3.59^3$. $L = 1$, 2, 4.
    """
    C, norms = trauger2023_cover("1,1", B, 1.0, _K, _D), (B_c, B_v, B_qk, B_w)
    most: dict[Constants, float] = {"printed": _COST, "corrected": _COST * _GROWTH / (_GROWTH - 1)}
    left, right = [], []
    for constants, cost in most.items():
        for L in (1, 2, 4):
            entropy = partial(trauger2023_deep_entropy, C, C * B_x**2, norms, L, lipschitz)
            left.append(entropy(constants=constants))
            outer = B_x**tokens * B_w**readout * (lipschitz * B_c * B_v * B_qk) ** (power * L)
            size = cost**3 * 25.0 ** (L - 1) * math.log(2 * _D * _K + 1)
            right.append(share * size * B**2 * outer)
    return jnp.stack(left), jnp.stack(right)


@identity(
    "Section 4.3, cross product terms for a factor of $B_x^2$",
    Source.FOUND,
    sample=partial(sizes, least=-1.0),
    roundings=128,
    controls=[Control("$B_x$ in place of $B_x^2$", power=1.0)],
)
def section_4_3_trade(B, B_x, B_c, B_v, B_w, lipschitz, *, power=2.0):
    r"""$$B_w B_c L_\sigma B_v\, B_x^3 \alpha = B_x^2 \sqrt{\gamma_0^3},\quad
    \gamma_0 = C_{B_x}^{1/3} (2 L_\sigma B_{c2} B_{v2} B_w)^{2/3},\quad L = 1$$

    The single layer's $2 B B_x^2 \sqrt C$ against $\gamma^{3/2}$ of one layer without the terms of
    $W_c$, $W_v$ and $w$, equal numbers for the norms of either. With the corrected cost of long
    tokens (second component, lemma-e-2-first-layer) $\gamma_0$ has the $B_x^2$ itself: Section 4.1
    drops the cross terms and pays nothing for it.
    """
    single = B_w * B_c * lipschitz * B_v * B_x**3
    single *= trauger2023_alpha("1,1", B, _D, constants="corrected")
    C = trauger2023_cover("1,1", B, B_x, _D, _D)
    printed = partial(trauger2023_deep_entropy, 0.0, C, (B_c, B_v, B, B_w), 1, lipschitz)
    c, v, qk = (jnp.full((1, 1), 1.0) * norm for norm in (B_c, B_v, B))
    costs = trauger2023_parts(c, v, qk, B_w, B_x ** (power / 2), lipschitz, constants="corrected")
    traded = B_x**power * jnp.sqrt(printed(constants="printed"))
    return jnp.stack([single, single]), jnp.stack([traded, costs[-1].beta * jnp.sqrt(C)])
