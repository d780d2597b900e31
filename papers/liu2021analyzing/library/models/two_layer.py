r"""Two-layer networks on p features: the baseline, and with attention weights or a fixed mask.

Section 2 and appendix D of liu2021analyzing. Its baseline has no bias terms; the construction in
its proof of Theorem 4 uses some, so they are optional here.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.errors import UserError
from liu2021analyzing.library.models.rectifier import rectify


class TwoLayer(eqx.Module):
    r"""The baseline y = w2' phi(W1' x) of section 2 of liu2021analyzing.

    Attributes:
        W1: first layer, one column per hidden unit.
        w2: second layer.
        b1: biases of the hidden units; none, as in the paper, when None.
        b2: bias of the output; none when None.
        sharpness: tau_0 of the softplus; the rectified linear unit when None.

    Examples:
        >>> model = TwoLayer(jnp.eye(2), jnp.array([1.0, -3.0]))
        >>> float(model(jnp.array([2.0, 1.0])))
        -1.0
    """

    W1: Float[Array, "p d"]
    w2: Float[Array, " d"]
    b1: Float[Array, " d"] | None = None
    b2: Float[Array, ""] | None = None
    sharpness: float | None = eqx.field(static=True, default=None)

    def features(self, x: Float[Array, " p"]) -> Float[Array, " d"]:
        """The hidden units phi(W1' x)."""
        if x.shape != self.W1.shape[:1]:
            raise UserError(f"x has shape {x.shape}, the network reads {self.W1.shape[:1]}")
        z = x @ self.W1
        return rectify(z if self.b1 is None else z + self.b1, self.sharpness)

    def __call__(self, x: Float[Array, " p"]) -> Float[Array, ""]:
        """The output."""
        y = self.features(x) @ self.w2
        return y if self.b2 is None else y + self.b2


class AttendedTwoLayer(eqx.Module):
    r"""The model y = w2' phi(W1' (x o f(x))) with known attention weights f.

    Model (3) of liu2021analyzing, which requires ||f(x)||_2 = 1; see `fixed_attention` for the
    functions f and for why a softmax does not satisfy this.

    Attributes:
        network: the two layers.
        attention: f, from p features to their p weights.

    Examples:
        >>> network = TwoLayer(jnp.eye(2), jnp.ones(2))
        >>> float(AttendedTwoLayer(network, lambda x: jnp.array([0.0, 1.0]))(jnp.array([5.0, 2.0])))
        2.0
    """

    network: TwoLayer
    attention: Callable[[Array], Array]

    def features(self, x: Float[Array, " p"]) -> Float[Array, " d"]:
        """The hidden units phi(W1' (x o f(x)))."""
        return self.network.features(_weighted(x, self.attention(x)))

    def __call__(self, x: Float[Array, " p"]) -> Float[Array, ""]:
        """The output."""
        return self.network(_weighted(x, self.attention(x)))


class MaskedTwoLayer(eqx.Module):
    r"""The model y = w2' phi(W1' (x o a)) with one mask a in [0, 1]^p for all inputs.

    Appendix D of liu2021analyzing (Lemma 1).

    Attributes:
        network: the two layers.
        mask: a.
        trainable: whether gradients reach the mask; it stays fixed when False.

    Examples:
        >>> network = TwoLayer(jnp.eye(2), jnp.ones(2))
        >>> float(MaskedTwoLayer(network, jnp.array([0.5, 0.0]))(jnp.array([4.0, 9.0])))
        2.0
    """

    network: TwoLayer
    mask: Float[Array, " p"]
    trainable: bool = eqx.field(static=True, default=False)

    def features(self, x: Float[Array, " p"]) -> Float[Array, " d"]:
        """The hidden units phi(W1' (x o a))."""
        return self.network.features(_weighted(x, self._mask()))

    def __call__(self, x: Float[Array, " p"]) -> Float[Array, ""]:
        """The output."""
        return self.network(_weighted(x, self._mask()))

    def _mask(self) -> Float[Array, " p"]:
        return self.mask if self.trainable else jax.lax.stop_gradient(self.mask)


def _weighted(x: Array, weights: Array) -> Array:
    """The product x o f; a broadcast would hide weights of another length."""
    if x.shape != weights.shape:
        raise UserError(f"weights of shape {weights.shape} for x of shape {x.shape}: one each")
    return x * weights


def make_two_layer(
    key: PRNGKeyArray,
    p: int,
    d: int,
    biases: bool = False,
    sharpness: float | None = None,
    dtype: Any | None = None,
) -> TwoLayer:
    r"""A network with Xavier's uniform start, as section 6 of liu2021analyzing trains it.

    Args:
        p: features of an input, at least 1.
        biases: whether the units and the output have biases, which start at zero.
        sharpness: tau_0 of the softplus, positive; the rectified linear unit when None.
        dtype: floating type; JAX's default when None.

    Examples:
        >>> make_two_layer(jax.random.key(0), 3, 5).W1.shape
        (3, 5)
    """
    if p < 1 or d < 1:
        raise UserError(f"p = {p}, d = {d}: a two-layer network needs both at least 1")
    if sharpness is not None and not sharpness > 0:
        raise UserError(f"sharpness = {sharpness} is not positive: choose tau_0 > 0 or None")
    first, second = jax.random.split(key)
    xavier = jax.nn.initializers.glorot_uniform()
    W1, w2 = xavier(first, (p, d), dtype), xavier(second, (d, 1), dtype)[:, 0]
    none = None, None
    b1, b2 = (jnp.zeros(d, W1.dtype), jnp.zeros((), W1.dtype)) if biases else none
    return TwoLayer(W1, w2, b1, b2, sharpness)
