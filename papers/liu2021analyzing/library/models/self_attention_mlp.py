r"""The two-layer self-attention model w2' phi(<W1, vec(W_V x A)>) of liu2021analyzing.

An input x holds p words as its columns, as the paper prints it. Column z of A holds the weights
with which word z attends to all words, a^(z) = softmax(K Q^z / sqrt(d_q)).
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.errors import UserError
from liu2021analyzing.library.models.rectifier import rectify
from liu2021analyzing.library.models.word_columns import require_columns


class SelfAttentionMLP(eqx.Module):
    r"""Model (4) of liu2021analyzing, on one input.

    vec stacks columns: row z v + i of W1 belongs to entry i of the attended vector of word z.

    Attributes:
        W_Q: query matrix.
        W_K: key matrix.
        W_V: value matrix.
        W1: first layer of the network on the flattened attended values.
        w2: second layer.
        b1: biases of the hidden units; none, as in the paper, when None.
        b2: bias of the output; none when None.
        temperature: divisor of the logits; 1/5 is the tempered softmax of section 6.
        equal_weights: whether every word has weight 1/p, as in the third model of section 6.
        sharpness: tau_0 of the softplus; the rectified linear unit when None.

    Examples:
        >>> one = jnp.ones((1, 1))
        >>> model = SelfAttentionMLP(0 * one, one, one, jnp.ones((2, 1)), jnp.ones(1))
        >>> float(model(jnp.array([[1.0, 3.0]])))
        4.0
    """

    W_Q: Float[Array, "q t"]
    W_K: Float[Array, "q t"]
    W_V: Float[Array, "v t"]
    W1: Float[Array, "vp d"]
    w2: Float[Array, " d"]
    b1: Float[Array, " d"] | None = None
    b2: Float[Array, ""] | None = None
    temperature: float = eqx.field(static=True, default=1.0)
    equal_weights: bool = eqx.field(static=True, default=False)
    sharpness: float | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if not self.temperature > 0:
            raise UserError(f"temperature = {self.temperature} is not positive: choose one above 0")

    def attention(self, x: Float[Array, "t p"]) -> Float[Array, "p p"]:
        r"""The attention weights A; column z sums to one and belongs to query z.

        Returns:
            A; A[j, z] is the weight that word z gives to word j.
        """
        require_columns(x, self.W_Q.shape[1])
        p = x.shape[1]
        if self.equal_weights:
            return jnp.full((p, p), 1 / p, x.dtype)
        scale = 1 / (self.temperature * math.sqrt(self.W_Q.shape[0]))
        return jax.nn.softmax(scale * ((self.W_K @ x).T @ (self.W_Q @ x)), axis=0)

    def attended(self, x: Float[Array, "t p"]) -> Float[Array, "v p"]:
        """The attended values W_V x A."""
        return (self.W_V @ x) @ self.attention(x)

    def features(self, x: Float[Array, "t p"]) -> Float[Array, " d"]:
        """The hidden units Phi = phi(<W1, vec(W_V x A)>)."""
        require_columns(x, self.W_V.shape[1], self.W1.shape[0] // self.W_V.shape[0])
        z = self.attended(x).T.reshape(-1) @ self.W1
        return rectify(z if self.b1 is None else z + self.b1, self.sharpness)

    def __call__(self, x: Float[Array, "t p"]) -> Float[Array, ""]:
        """The output."""
        y = self.features(x) @ self.w2
        return y if self.b2 is None else y + self.b2


def make_self_attention_mlp(
    key: PRNGKeyArray,
    p: int,
    t: int,
    d_q: int,
    d_v: int,
    d: int,
    temperature: float = 1.0,
    equal_weights: bool = False,
    biases: bool = False,
    sharpness: float | None = None,
    dtype: Any | None = None,
) -> SelfAttentionMLP:
    r"""A model with Xavier's uniform start, as section 6 of liu2021analyzing trains it.

    Args:
        temperature: divisor of the logits, positive.
        equal_weights: whether every word has weight 1/p.
        biases: whether the units and the output have biases, which start at zero.
        sharpness: tau_0 of the softplus, positive; the rectified linear unit when None.
        dtype: floating type; JAX's default when None.

    Examples:
        >>> model = make_self_attention_mlp(jax.random.key(0), p=3, t=2, d_q=4, d_v=5, d=6)
        >>> model.W1.shape, model.attention(jnp.ones((2, 3))).shape
        ((15, 6), (3, 3))
    """
    for name, size in {"p": p, "t": t, "d_q": d_q, "d_v": d_v, "d": d}.items():
        if size < 1:
            raise UserError(f"{name} = {size} of a self-attention model is below 1: choose 1 or up")
    for name, value in {"temperature": temperature, "sharpness": sharpness}.items():
        if value is not None and not value > 0:
            raise UserError(f"{name} = {value} is not positive: choose a positive number")
    shapes = ((d_q, t), (d_q, t), (d_v, t), (d_v * p, d), (d, 1))
    xavier = jax.nn.initializers.glorot_uniform()
    keys = jax.random.split(key, len(shapes))
    W_Q, W_K, W_V, W1, w2 = (xavier(k, shape, dtype) for k, shape in zip(keys, shapes, strict=True))
    b1, b2 = (jnp.zeros(d, W1.dtype), jnp.zeros((), W1.dtype)) if biases else (None, None)
    return SelfAttentionMLP(
        W_Q, W_K, W_V, W1, w2[:, 0], b1, b2, temperature, equal_weights, sharpness
    )
