r"""Theorem 4.2 of trauger2023sequence: L normalised layers, scalar readout.

Errors of the matrices add up in the output with costs beta; Lemma E.1 shares the resolution out.
One `Part` is one matrix. Constants: "printed" as in the theorem; "corrected" its own recursion,
with the input bound of the first layer; "sharp" has 1 for the softmax. Proofs:
papers/trauger2023sequence/proofs/layers.md.

The spectral norms of W_c, W_v and W_QK by layer and head are c, v and qk; L_sigma is `lipschitz`,
kappa is 1 in "sharp" and else 2.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import Constants
from attlas.bounds.covering.dudley import Number, dudley_chain
from attlas.bounds.covering.trauger2023_allocation import trauger2023_allocation
from attlas.bounds.generalisation.trauger2023_single import trauger2023_softmax_lipschitz
from attlas.core.memory import require_memory
from attlas.core.ranges import require_at_least


class Part(NamedTuple):
    """One matrix of a deep network.

    Attributes:
        layer: 1, ..., L; 0 for the readout.
        kind: "output", "value", "query_key" or "readout".
        beta: how much the output moves for each unit of error on the inputs of this matrix.
        input_norm: largest norm of those inputs.
    """

    layer: int
    kind: str
    beta: Float[Array, ""]
    input_norm: Number


@closed_form
def trauger2023_amplification(
    c: Float[Array, "L H"],
    v: Float[Array, "L H"],
    qk: Float[Array, "L H"],
    lipschitz: Number = 1.0,
    *,
    constants: Constants = "sharp",
) -> Float[Array, " L"]:
    r"""alpha_i: how much an error of the rows after layer i grows up to the last layer.

    $$\alpha_i=\prod_{j>i}\sum_hL_\sigma\|W_c^{jh}\|\,\|W_v^{jh}\|\,(1+2\kappa\|W_{QK}^{jh}\|)$$

    Returns:
        alpha_1, ..., alpha_L = 1.

    Source: Theorem 4.2 of trauger2023sequence (found, one head).

    Examples:
        >>> one = jnp.ones((2, 1))
        >>> trauger2023_amplification(one, one, one).tolist()
        [3.0, 1.0]
    """
    kappa = trauger2023_softmax_lipschitz(constants)
    growth = jnp.sum(lipschitz * c * v * (1 + 2 * kappa * qk), axis=1)
    later = jnp.cumprod(growth[::-1])[::-1]
    return jnp.concatenate([later[1:], jnp.ones_like(later[:1])])


@closed_form
def trauger2023_parts(
    c: Float[Array, "L H"],
    v: Float[Array, "L H"],
    qk: Float[Array, "L H"],
    readout: Number,
    B_x: Number,
    lipschitz: Number = 1.0,
    *,
    constants: Constants = "sharp",
) -> list[Part]:
    r"""The unrolled recursion: what an error in each matrix costs in the output.

    $$|\Delta|\le\epsilon_w+B_w\sum_i\alpha_i\sum_h\big(\epsilon_c+L_\sigma\|W_c\|\epsilon_v
    +\kappa L_\sigma\|W_c\|\|W_v\|x_i^2\epsilon_{QK}\big)$$

    with x_1 = B_x and x_i = 1 above; inputs have norm L_sigma before W_c, B_x in the first layer.

    Args:
        readout: B_w, Euclidean norm of the readout.
        B_x: largest norm of a token.

    Returns:
        The parts, readout first, then W_c, W_v, W_QK head by head.

    Source: proof of Theorem 4.2 of trauger2023sequence; B_x and L_sigma corrected (derived).

    Examples:
        >>> one = jnp.ones((1, 1))
        >>> [float(part.beta) for part in trauger2023_parts(one, one, one, 1.0, 1.0)]
        [1.0, 1.0, 1.0, 1.0]
    """
    kappa = trauger2023_softmax_lipschitz(constants)
    alpha = readout * trauger2023_amplification(c, v, qk, lipschitz, constants=constants)
    matrices = [Part(0, "readout", jnp.ones_like(alpha[0]), 1.0)]
    for layer in range(c.shape[0]):
        first = B_x if layer == 0 else 1.0
        for head in range(c.shape[1]):
            outer = alpha[layer] * lipschitz * c[layer, head]
            # keys and values of the first layer bring one B_x each
            inner = kappa * first**2 * outer * v[layer, head]
            matrices.append(Part(layer + 1, "output", alpha[layer], lipschitz))
            matrices.append(Part(layer + 1, "value", outer, first))
            matrices.append(Part(layer + 1, "query_key", inner, first))
    return matrices


@closed_form
def trauger2023_deep_entropy(
    C_1: Number,
    C_x: Number,
    norms: tuple[Number, Number, Number, Number],
    L: int,
    lipschitz: Number = 1.0,
    *,
    constants: Constants = "sharp",
) -> Float[Array, ""]:
    r"""(gamma + eta)^3 of Theorem 4.2 for layers of equal norms, one head.

    $$\gamma=C_x^{1/3}(2\lambda B_v\alpha_1B_w)^{2/3}+C_1^{1/3}\big(1+(B_wL_\sigma B_v)^{2/3}\big),
    \quad\eta=C_1^{1/3}B_w^{2/3}\sum_{i\ge2}\alpha_i^{2/3}+(2\alpha_i\lambda B_v)^{2/3}
    +(\alpha_iL_\sigma B_v)^{2/3},\quad\lambda=L_\sigma B_c$$

    "corrected" has lambda instead of L_sigma B_v, alpha_1 in all terms of the first layer and its
    W_c: the optimum of Lemma E.1 for the theorem's own recursion, for B_x <= 1.

    Args:
        C_1: entropy coefficient on inputs of norm 1.
        C_x: the same on inputs of norm B_x.
        norms: spectral norms B_c, B_v, B_QK and the readout's B_w.
        constants: "sharp" has kappa = 1.

    Source: Theorem 4.2 of trauger2023sequence (found); corrected (derived).

    Examples:
        >>> norms = (2.0, 1.0, 1.0, 1.0)
        >>> for constants in ("printed", "corrected", "sharp"):
        ...     print(f"{trauger2023_deep_entropy(1.0, 1.0, norms, 1, constants=constants):.2f}")
        92.34
        227.79
        138.57
    """
    require_at_least(1, L=L)
    require_memory(8 * L, f"a number for each of L = {L} layers", "give fewer")
    B_c, B_v, B_qk, B_w = (jnp.asarray(norm) for norm in norms)
    kappa = trauger2023_softmax_lipschitz(constants)
    growth = lipschitz * B_c * B_v * (1 + 2 * kappa * B_qk)
    alpha = growth ** jnp.arange(L - 1, -1, -1, dtype=growth.dtype)
    third_root, heavy = jnp.cbrt(jnp.asarray(C_1)), jnp.cbrt(jnp.asarray(C_x))
    third = lipschitz * (B_v if constants == "printed" else B_c)
    inner = kappa * lipschitz * B_c * B_v

    def root(cost: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.cbrt(cost * B_w) ** 2

    eta = third_root * jnp.sum(root(alpha[1:]) + root(alpha[1:] * inner) + root(alpha[1:] * third))
    if constants == "printed":
        own_first = 1 + root(third)
    else:
        own_first = 1 + root(alpha[0]) + root(alpha[0] * third)
    return (heavy * root(inner * alpha[0]) + third_root * own_first + eta) ** 3


@closed_form
def trauger2023_deep(
    C: Float[Array, " n"], beta: Float[Array, " n"], m: Number, radius: Number
) -> Float[Array, ""]:
    r"""The empirical Rademacher complexity of the deep class.

    $${\rm chain}\big(\gamma^3/\epsilon^2\big),\qquad\gamma=\sum_iC_i^{1/3}\beta_i^{2/3}$$

    Args:
        C: entropy coefficient of each part on its inputs.
        radius: largest |output|, B_w for the scalar readout.

    Returns:
        The bound; at most the radius.

    Source: Theorem 4.2 of trauger2023sequence and Dudley's chain (derived).

    Examples:
        >>> print(f"{float(trauger2023_deep(jnp.ones(1), jnp.ones(1), 10000, 1.0)):.4f}")
        0.2037
    """
    entropy, _ = trauger2023_allocation(C, beta)
    return dudley_chain(lambda epsilon: entropy / epsilon**2, m, radius)
