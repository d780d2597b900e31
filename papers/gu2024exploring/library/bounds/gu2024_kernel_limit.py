r"""How fast the kernel of a wide network reaches its limit: m^(-1/2), with exact constants.

At the symmetric initialisation of Definition 3.7 of gu2024exploring the kernel is a mean over
m / 2 independent units, or a ratio of such means. Proof:
papers/gu2024exploring/proofs/kernel_limit.md.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.models.networks.softmax_network import Activation


@closed_form
def gu2024_limit_variance(
    X: Float[Array, "n d"],
    sigma: float | Float[Array, ""],
    activation: Activation = Activation.SOFTMAX,
    *,
    same_output: bool = True,
) -> Float[Array, "n n"]:
    r"""The variance V of a kernel entry: (m / 2)^(1/2) (H - K)_ij / <x_i, x_j> tends to N(0, V).

    With s_i = sigma^2 ||x_i||^2 and rho = sigma^2 <x_i, x_j>, softmax has

    $$V=e^{s_i+s_j+4\rho}+(e^{s_i}+e^{s_j})(e^{2\rho}-2e^{3\rho})+2e^{3\rho}-e^{2\rho}$$

    in a block of one output, and the first term alone between two outputs. The two other
    activations, means without a ratio, have exactly the variance V 2 / m.

    Args:
        same_output: whether the entry is in a diagonal block.

    Returns:
        V for each pair of samples, not multiplied with <x_i, x_j>^2; infinite where a term leaves
        the range of its type.

    Source: Definition 3.6 of gu2024exploring at infinite width (derived).

    Examples:
        >>> float(gu2024_limit_variance(jnp.zeros((1, 2)), 1.0)[0, 0])
        0.0
    """
    V = _variance(sigma**2 * (X @ X.T), activation, same_output)
    # Beyond the range the difference of two infinite terms is no number.
    return jnp.where(jnp.isnan(V), jnp.inf, V)


def _variance(rho: Array, activation: Activation, same_output: bool) -> Array:
    """V as a function of rho."""
    s = jnp.diag(rho)
    left, right = s[:, None], s[None, :]
    if activation is Activation.RELU:
        lengths = jnp.sqrt(jnp.maximum(left * right, 0))
        cosine = jnp.clip(rho / jnp.where(lengths > 0, lengths, 1), -1, 1)
        overlap = (jnp.pi - jnp.arccos(cosine)) / (2 * jnp.pi)
        return overlap * (1 - overlap) if same_output else overlap
    if activation is Activation.EXPONENTIAL:
        mean = jnp.exp(left / 2 + right / 2 + rho)
        # E exp(2 <w, x_i + x_j>) is the fourth power of E exp(<w, x_i + x_j>).
        return mean**4 - mean**2 if same_output else mean**4
    second = jnp.exp(left + right + 4 * rho)
    if not same_output:
        return second
    ends = jnp.exp(left) + jnp.exp(right)
    exp_1, exp_2, exp_3 = jnp.exp(rho), jnp.exp(2 * rho), jnp.exp(3 * rho)
    return second + ends * (exp_2 - 2 * exp_3) + 2 * exp_1 * exp_2 - exp_2
