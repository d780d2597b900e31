r"""Theorem 4.2 of gu2024exploring for gradient flow, with a width that can be computed.

The sharpened Lemma 5.1 in place of e^{10B} gives a condition on one network and one data set:
find R so that the kernel keeps half of lambda within R, and the weights stay within R. Proof:
papers/gu2024exploring/proofs/kernel_perturbation.md.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.optimisation.gu2024_perturbation import Number, gu2024_kernel_change
from attlas.models.networks.softmax_network import SoftmaxNetwork


class FlowCertificate(NamedTuple):
    r"""What is known of the flow from a softmax network; it converges where `ratio` < 1.

    Attributes:
        radius: R, within which the kernel changes by lambda / 2 at most.
        movement: bound on ||w_r(t) - w_r(0)|| as long as the weights stay within R.
        ratio: movement / radius; at the same R, kappa and P it falls as 1/m.
        width: the width m ratio for which the ratio would be 1 with these numbers.
    """

    radius: Float[Array, ""]
    movement: Float[Array, ""]
    ratio: Float[Array, ""]
    width: Float[Array, ""]


@closed_form
def gu2024_flow_certificate(
    network: SoftmaxNetwork,
    X: Float[Array, "n d"],
    Y: Float[Array, "n k"],
    smallest: Number,
) -> FlowCertificate:
    r"""Whether gradient flow converges at rate m lambda / 2, by the sharpened Lemma 5.1.

    $$k(1+\alpha)^2\|M\|_F\le\tfrac\lambda2,\qquad
    \frac{2(1+\alpha)\sqrt k\,e^{2R\xi}P\,\|F(0)-Y\|}{m\lambda}<R$$

    for the largest R that satisfies the first; M has the entries of `gu2024_kernel_change` and
    P = max_r (sum_i ||x_i||^2 (m S_ir)^2)^{1/2}, xi = max ||x_i||.

    Args:
        network: the start, softmax, with |a| <= 1.
        smallest: lambda, the least eigenvalue of H at the start.

    Returns:
        The certificate; infinite ratios where lambda is not positive.

    Source: Theorem 4.2 of gu2024exploring (sharpened for flow, derived).

    Examples:
        >>> network = SoftmaxNetwork(jnp.zeros((1, 1000)), jnp.array([[1.0, -1.0] * 500]))
        >>> result = gu2024_flow_certificate(network, jnp.ones((1, 1)), jnp.ones((1, 1)), 1.0)
        >>> print(f"{float(result.radius):.4f} {float(result.ratio):.4f}")
        0.0881 0.0295
    """
    smallest = jnp.asarray(smallest, X.dtype)
    # At R = 1 / xi the change exceeds any lambda; 50 halvings reach the rounding of float64.
    high = 1 / jnp.max(jnp.linalg.norm(X, axis=1))

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        fits = jnp.linalg.norm(gu2024_kernel_change(network, X, middle)) <= smallest / 2
        return jnp.where(fits, middle, low), jnp.where(fits, high, middle)

    radius, _ = jax.lax.fori_loop(0, 50, halve, (jnp.zeros_like(high), high))
    movement = gu2024_flow_movement(network, X, Y, smallest, radius)
    ratio = movement / radius
    return FlowCertificate(radius, movement, ratio, network.width * ratio)


@closed_form
def gu2024_flow_movement(
    network: SoftmaxNetwork,
    X: Float[Array, "n d"],
    Y: Float[Array, "n k"],
    smallest: Number,
    R: Number,
) -> Float[Array, ""]:
    r"""Bound on how far a unit moves while all of them stay within R, along gradient flow.

    $$\|w_r(t)-w_r(0)\|\le\frac{2(1+\alpha)\sqrt k\,e^{2R\xi}P\,\|F(0)-Y\|}{m\lambda}$$

    Args:
        network: the start, softmax, with |a| <= 1.
        smallest: lambda; the kernel keeps at least half of it within R.

    Source: Lemma C.2 of gu2024exploring (sharpened for flow, derived).

    Examples:
        >>> network = SoftmaxNetwork(jnp.zeros((1, 2)), jnp.array([[1.0, -1.0]]))
        >>> one = jnp.ones((1, 1))
        >>> float(gu2024_flow_movement(network, one, one, 1.0, 0.0))
        1.0
    """
    k, m = network.a.shape
    lengths = jnp.linalg.norm(X, axis=1)
    shares = jax.vmap(network.hidden)(X)
    F = shares @ network.a.T
    alpha = jnp.max(jnp.minimum(jnp.abs(F) / m + (R * lengths)[:, None], 1))
    P = jnp.sqrt(jnp.max(jnp.sum((lengths[:, None] * shares) ** 2, axis=0)))
    growth = jnp.exp(2 * R * jnp.max(lengths))
    return 2 * (1 + alpha) * k**0.5 * growth * P * jnp.linalg.norm(F - Y) / (m * smallest)
