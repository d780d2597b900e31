r"""The D-layer self-attention network of appendix A.4 of liu2021analyzing.

As printed, g_k maps t x d_{k-1} to a matrix of size d_k x d_{k-1}, which the next layer cannot
read as t x d_k. Read here so that sizes fit: every layer keeps the p words (the columns) and
changes their dimension from d_{k-1} to d_k; the last one flattens, as the two-layer model does.
"""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.errors import UserError
from liu2021analyzing.library.models.rectifier import rectify
from liu2021analyzing.library.models.self_attention_mlp import (
    SelfAttentionMLP,
    make_self_attention_mlp,
)
from liu2021analyzing.library.models.word_columns import require_columns


class SelfAttentionLayer(eqx.Module):
    r"""One layer g_k(x) = w_k2 phi(w_k1' W_V x A), on every word alike.

    Attributes:
        W_Q: query matrix.
        W_K: key matrix.
        W_V: value matrix.
        W1: w_k1.
        W2: w_k2.
        temperature: divisor of the logits.
        sharpness: tau_0 of the softplus; the rectified linear unit when None.

    Examples:
        >>> import jax.numpy as jnp
        >>> one = jnp.ones((1, 1))
        >>> SelfAttentionLayer(0 * one, one, one, one, -one)(jnp.array([[1.0, 3.0]])).tolist()
        [[-2.0, -2.0]]
    """

    W_Q: Float[Array, "q t"]
    W_K: Float[Array, "q t"]
    W_V: Float[Array, "v t"]
    W1: Float[Array, "v u"]
    W2: Float[Array, "k u"]
    temperature: float = eqx.field(static=True, default=1.0)
    sharpness: float | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if not self.temperature > 0:
            raise UserError(f"temperature = {self.temperature} is not positive: choose one above 0")

    def attention(self, x: Float[Array, "t p"]) -> Float[Array, "p p"]:
        """The attention weights; column z sums to one and belongs to query z.

        Returns:
            A; A[j, z] is the weight that word z gives to word j.
        """
        scale = 1 / (self.temperature * math.sqrt(self.W_Q.shape[0]))
        return jax.nn.softmax(scale * ((self.W_K @ x).T @ (self.W_Q @ x)), axis=0)

    def __call__(self, x: Float[Array, "t p"]) -> Float[Array, "k p"]:
        """The words that the next layer reads.

        Returns:
            One column per word, of the layer's own dimension.
        """
        require_columns(x, self.W_V.shape[1])
        attended = (self.W_V @ x) @ self.attention(x)
        return self.W2 @ rectify(self.W1.T @ attended, self.sharpness)


class DeepSelfAttention(eqx.Module):
    r"""h(x) = w_D2' phi(<w_D1, vec(W_V x^{D-1} A)>) with x^{D-1} = g_{D-1}(... g_1(x)).

    Attributes:
        layers: g_1, ..., g_{D-1}; none gives the two-layer model.
        readout: the last layer, a two-layer self-attention model.

    Examples:
        >>> model = make_deep_self_attention(jax.random.key(0), p=3, dimensions=(2, 4), d_q=2,
        ...                                  d_v=2, units=5)
        >>> len(model.layers), [a.shape for a in model.attention(jax.numpy.ones((2, 3)))]
        (1, [(3, 3), (3, 3)])
    """

    layers: tuple[SelfAttentionLayer, ...]
    readout: SelfAttentionMLP

    def __call__(self, x: Float[Array, "t p"]) -> Float[Array, ""]:
        """The output."""
        for layer in self.layers:
            x = layer(x)
        return self.readout(x)

    def attention(self, x: Float[Array, "t p"]) -> tuple[Float[Array, "p p"], ...]:
        """The attention weights of all D layers.

        Returns:
            A of each layer, from the first to the last.
        """
        maps = []
        for layer in self.layers:
            maps.append(layer.attention(x))
            x = layer(x)
        return (*maps, self.readout.attention(x))


def make_deep_self_attention(
    key: PRNGKeyArray,
    p: int,
    dimensions: Sequence[int],
    d_q: int,
    d_v: int,
    units: int,
    temperature: float = 1.0,
    sharpness: float | None = None,
    dtype: Any | None = None,
) -> DeepSelfAttention:
    r"""A network with Xavier's uniform start.

    Args:
        dimensions: dimensions of a word before each of the D layers: t, d_1, ..., d_{D-1}.
        units: hidden units q_k of every layer.
        temperature: divisor of the logits, positive.
        sharpness: tau_0 of the softplus, positive; the rectified linear unit when None.
        dtype: floating type; JAX's default when None.

    Examples:
        >>> make_deep_self_attention(jax.random.key(0), 3, (2,), 2, 2, 5).layers
        ()
    """
    if not dimensions or min(*dimensions, p, d_q, d_v, units) < 1:
        sizes = f"p = {p}, dimensions = {tuple(dimensions)}, d_q = {d_q}, d_v = {d_v}"
        raise UserError(f"{sizes}, units = {units}: give at least one layer, all sizes 1 or up")
    last, *keys = jax.random.split(key, len(dimensions))
    xavier = jax.nn.initializers.glorot_uniform()
    layers = []
    for layer_key, t, k in zip(keys, dimensions, dimensions[1:], strict=False):
        shapes = ((d_q, t), (d_q, t), (d_v, t), (d_v, units), (k, units))
        pairs = zip(jax.random.split(layer_key, 5), shapes, strict=True)
        matrices = (xavier(*pair, dtype) for pair in pairs)
        layers.append(SelfAttentionLayer(*matrices, temperature=temperature, sharpness=sharpness))
    readout = make_self_attention_mlp(
        last,
        p,
        dimensions[-1],
        d_q,
        d_v,
        units,
        temperature=temperature,
        sharpness=sharpness,
        dtype=dtype,
    )
    return DeepSelfAttention(tuple(layers), readout)
