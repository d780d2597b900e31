r"""How far the kernel can have moved at a time, known before training, at any width.

No eigenvalue is needed: with `gu2024_coupling` it bounds the distance of a trained network from its
kernel regression, and tends to 0 as the width grows. Proof:
papers/gu2024exploring/proofs/diffusion.md.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.models.networks.softmax_network import SoftmaxNetwork

_ROUNDS = 400
_LARGEST = 1 / (2 * math.e)
"""R = c e^{2R} has a root for c up to here."""


class KernelRegime(NamedTuple):
    """What holds for all weights that the flow can have reached at a time.

    Attributes:
        radius: R, no unit has moved further; infinite where the width is too small for the time.
        kernel_change: eps_H, on the training samples.
        test_change: eps_test, of the row of each further sample.
    """

    radius: Float[Array, ""]
    kernel_change: Float[Array, ""]
    test_change: Float[Array, " n2"]


@closed_form
def gu2024_kernel_regime(
    network: SoftmaxNetwork,
    X: Float[Array, "n d"],
    Z: Float[Array, "n2 d"],
    start: float | Float[Array, ""],
    time: float | Float[Array, ""],
) -> KernelRegime:
    r"""R as the least root, and both changes of the kernel within it.

    $$R=2\sqrt k\,e^{2R}P\,\|Y\|\frac\tau m,\quad P=\max_r\Big(\sum_i\|x_i\|^2p_{ir}^2\Big)^{1/2},
    \quad\epsilon=4k\,(e^{4R}-1)\,\|G\circ\kappa\|$$

    with the shares p = m S, G the absolute inner products and kappa = p p' / m; for eps_test the
    row of a further sample stands in place of the matrix.

    Args:
        network: the start, softmax, symmetric, with |a| <= 1.
        X: samples of norm at most 1.
        Z: further samples of norm at most 1.
        start: ||Y||, in Frobenius norm.
        time: tau, m times that of the flow, or m eta times the steps.

    Returns:
        Radius and changes; infinite where no root exists.

    Source: the regime of Theorem 6.6 of gu2024exploring restated (derived).

    Examples:
        >>> network = SoftmaxNetwork(jnp.zeros((1, 1000)), jnp.array([[1.0, -1.0] * 500]))
        >>> result = gu2024_kernel_regime(network, jnp.ones((1, 1)), jnp.ones((2, 1)), 1.0, 1.0)
        >>> print(f"{float(result.radius):.5f} {float(result.kernel_change):.4f}")
        0.00201 0.0323
    """
    k, m = network.a.shape
    p, q = (m * jax.nn.softmax(inputs @ network.W, axis=1) for inputs in (X, Z))
    lengths = jnp.linalg.norm(X, axis=1)
    P = jnp.sqrt(jnp.max(jnp.sum((lengths[:, None] * p) ** 2, axis=0)))
    c = 2 * math.sqrt(k) * P * start * time / m
    safe = jnp.minimum(c, _LARGEST)
    root = jax.lax.fori_loop(0, _ROUNDS, lambda _, R: safe * jnp.exp(2 * R), jnp.zeros_like(c))
    R = jnp.where(c < _LARGEST * (1 - 1e-3), root, jnp.inf)
    moved = 4 * k * jnp.expm1(4 * R)
    training, further = jnp.abs(X @ X.T) * (p @ p.T) / m, jnp.abs(Z @ X.T) * (q @ p.T) / m
    return KernelRegime(
        R, moved * jnp.linalg.norm(training), moved * jnp.linalg.norm(further, axis=1)
    )
