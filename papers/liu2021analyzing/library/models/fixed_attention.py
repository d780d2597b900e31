r"""Known attention functions f of section 3.1 of liu2021analyzing: p features to p weights.

A softmax has weights that sum to one; model (3) of the paper requires ||f(x)||_2 = 1 instead.
Uniform weights have ||f||_2 = p^{-1/2} under the first and 1 under the second, so the two are
different models: `EuclideanAttention` makes any f one of the second kind.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.errors import UserError

Weights = Callable[[Array], Array]


class UniformAttention(eqx.Module):
    r"""Weights 1/p for every feature: no concentration.

    Examples:
        >>> UniformAttention()(jnp.array([3.0, -1.0])).tolist()
        [0.5, 0.5]
    """

    def __call__(self, x: Float[Array, " p"]) -> Float[Array, " p"]:
        """The weights."""
        return jnp.full_like(x, 1 / x.shape[0])


class SoftmaxAttention(eqx.Module):
    r"""Weights softmax(M x / temperature) with a known matrix M.

    Attributes:
        matrix: M.
        temperature: divisor of the logits; the smaller, the more concentrated.

    Examples:
        >>> SoftmaxAttention(jnp.zeros((2, 2)))(jnp.array([3.0, -1.0])).tolist()
        [0.5, 0.5]
    """

    matrix: Float[Array, "p p"]
    temperature: float = eqx.field(static=True, default=1.0)

    def __check_init__(self) -> None:
        if not self.temperature > 0:
            raise UserError(f"temperature = {self.temperature}: choose a positive number")

    def __call__(self, x: Float[Array, " p"]) -> Float[Array, " p"]:
        """The weights.

        Returns:
            p weights that sum to one.
        """
        return jax.nn.softmax(self.matrix @ x / self.temperature)


class TopAttention(eqx.Module):
    r"""The s_0 largest weights of another attention function, scaled to the same sum.

    It satisfies (A2) of liu2021analyzing with tau = 0 once its Euclidean norm is one. Of equal
    weights the first remain.

    Attributes:
        weights: the other function.
        s0: the number of weights, at least 1.

    Examples:
        >>> TopAttention(lambda x: x, 1)(jnp.array([0.25, 0.75])).tolist()
        [0.0, 1.0]
    """

    weights: Weights
    s0: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.s0 < 1:
            raise UserError(f"s0 = {self.s0} weights: keep at least one")

    def __call__(self, x: Float[Array, " p"]) -> Float[Array, " p"]:
        """The weights.

        Args:
            x: one input, of at least s_0 features.

        Returns:
            p weights, at most s_0 of them not zero.
        """
        if self.s0 > x.shape[0]:
            raise UserError(f"s0 = {self.s0} exceeds p = {x.shape[0]} features: keep fewer")
        weights = self.weights(x)
        largest, places = jax.lax.top_k(weights, self.s0)
        total = jnp.sum(weights) / jnp.sum(largest)
        return jnp.zeros_like(weights).at[places].set(largest * total)


class EuclideanAttention(eqx.Module):
    r"""Another attention function, scaled to ||f(x)||_2 = 1 as model (3) of liu2021analyzing asks.

    Attributes:
        weights: the other function; not zero anywhere.

    Examples:
        >>> EuclideanAttention(UniformAttention())(jnp.zeros(4)).tolist()
        [0.5, 0.5, 0.5, 0.5]
    """

    weights: Weights

    def __call__(self, x: Float[Array, " p"]) -> Float[Array, " p"]:
        """The weights.

        Returns:
            p weights, their squares sum to one.
        """
        weights = self.weights(x)
        return weights / jnp.sqrt(jnp.sum(weights**2))
