r"""Two-layer networks with softmax, ReLU or exponential activation, after gu2024exploring.

Softmax: F_l(x) = m <a_l, softmax(W' x)> (Definition 3.1). The prefactor m makes every unit's
share of order one, so that the tangent kernel is m H with H of order one (Definition 3.6). The
two networks that the paper compares with have the usual prefactor m^(-1/2), and a tangent
kernel of order one.
"""

from enum import StrEnum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.errors import UserError
from attlas.core.memory import require_memory


class Activation(StrEnum):
    """What the hidden units do: Table 1 of gu2024exploring."""

    SOFTMAX = "softmax"
    RELU = "relu"
    EXPONENTIAL = "exponential"


class SoftmaxNetwork(eqx.Module):
    r"""F_l(x) = m <a_l, softmax(W' x)>, or m^(-1/2) <a_l, phi(W' x)> for the two others.

    Read as attention, the softmax network is one query x over m keys w_r (the columns of W)
    whose values are the columns of m A: the average of values under softmax weights.

    Attributes:
        W: first layer, one unit a column; trained.
        a: second layer, one output a row; fixed in the paper.

    Examples:
        >>> network = SoftmaxNetwork(jnp.zeros((3, 2)), jnp.array([[1.0, 2.0]]))
        >>> network(jnp.ones(3)).tolist()
        [3.0]
    """

    W: Float[Array, "d m"]
    a: Float[Array, "k m"]
    activation: Activation = eqx.field(static=True, default=Activation.SOFTMAX)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, " k"]:
        """The outputs on one sample; softmax is safe for logits of any size."""
        return self.a @ self.hidden(x)

    @property
    def width(self) -> int:
        """The number of hidden units m."""
        return self.W.shape[1]

    def hidden(self, x: Float[Array, " d"]) -> Float[Array, " m"]:
        """The hidden units with their prefactor: m softmax(W' x), or m^(-1/2) phi(W' x)."""
        logits = x @ self.W
        if self.activation is Activation.SOFTMAX:
            return self.width * jax.nn.softmax(logits)
        prefactor = 1 / jnp.sqrt(jnp.asarray(self.width, logits.dtype))
        if self.activation is Activation.RELU:
            return prefactor * jax.nn.relu(logits)
        return prefactor * jnp.exp(logits)


def symmetric_network(
    key: PRNGKeyArray,
    d: int,
    m: int,
    outputs: int = 1,
    *,
    sigma: float = 1.0,
    activation: Activation = Activation.SOFTMAX,
    dtype: Any = None,
) -> SoftmaxNetwork:
    r"""Symmetric initialisation: pairs of equal units of opposite sign, so that F = 0.

    w_{2r-1} ~ N(0, sigma^2 I), a_{2r-1} ~ Unif{+-1}^k, w_{2r} = w_{2r-1}, a_{2r} = -a_{2r-1},
    Definition 3.7 of gu2024exploring.

    Args:
        sigma: standard deviation of the first layer, positive.
        dtype: floating type, JAX's default when None.

    Raises:
        UserError: if m is odd or below 2, a size is below 1, or sigma is not positive.

    Examples:
        >>> network = symmetric_network(jax.random.key(0), 3, 8)
        >>> bool(jnp.abs(network(jnp.ones(3)))[0] < 1e-6)
        True
        >>> symmetric_network(jax.random.key(0), 3, 7)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: m = 7: the symmetric initialisation pairs units: choose ...
    """
    if m < 2 or m % 2:
        raise UserError(f"m = {m}: the symmetric initialisation pairs units: choose an even width")
    if d < 1 or outputs < 1:
        raise UserError(f"d = {d}, outputs = {outputs}: both must be at least 1")
    require_memory(4 * m * (d + outputs), f"{m} units", "take fewer")
    if not sigma > 0:
        raise UserError(f"sigma = {sigma}: the standard deviation must be positive")
    weights, signs = jax.random.split(key)
    half = sigma * jax.random.normal(weights, (d, m // 2), dtype)
    a = jax.random.rademacher(signs, (outputs, m // 2)).astype(half.dtype)
    return SoftmaxNetwork(
        jnp.repeat(half, 2, axis=1),
        jnp.stack((a, -a), axis=2).reshape(outputs, m),
        activation,
    )
