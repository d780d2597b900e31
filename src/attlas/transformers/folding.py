r"""Heads as functions of the normalised token: the norm's gain and bias belong to the weights.

A layer reads x = gain * u + bias, where u, the token normalised without gain, has |u| <= sqrt(d),
and for LayerNorm a mean of zero. Rescaling the gain against the weights leaves the model as it is,
so that only the folded matrices, which act on u, are properties of a head.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.errors import refuse_misfits
from attlas.transformers.canonical import Attention, Dense, Norm


def _folded_matrix(
    W: Float[Array, "*heads d k"],
    b: Float[Array, "*heads k"],
    norm: Norm | None,
    projection: Dense | None = None,
) -> tuple[Float[Array, "*heads e k"], Float[Array, "*heads k"]]:
    r"""The matrices that act on the normalised token as W and b act on what the layer reads.

    $$xW+b=u\,W'+b',\quad x=(g\odot u+c)W_e+b_e,\quad
    W'=(I-\tfrac1d\mathbf 1\mathbf 1')\operatorname{diag}(g)W_eW,\quad b'=(cW_e+b_e)W+b$$

    The projection on mean zero stands for LayerNorm only, whose u has mean zero.

    Args:
        norm: the norm before, or None.
        projection: W_e and b_e between norm and layer, or None.

    Examples:
        >>> norm = Norm(jnp.array([2.0, 1.0]), jnp.array([1.0, 0.0]), 0.0, centred=False)
        >>> W, b = _folded_matrix(jnp.eye(2), jnp.zeros(2), norm)
        >>> W.tolist(), b.tolist()
        ([[2.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
    """
    if projection is not None:
        b = projection.b @ W + b
        W = projection.W @ W
    if norm is not None:
        b = norm.bias @ W + b
        W = jnp.broadcast_to(norm.gain[:, None], W.shape) * W
        if norm.centred:
            W = W - jnp.mean(W, axis=-2, keepdims=True)
    return W, b


@refuse_misfits
def folded_attention(
    attention: Attention, norm: Norm | None, projection: Dense | None = None
) -> Attention:
    """The same heads, reading the normalised token in place of the layer's input.

    Args:
        norm: the norm before them, see `TrainedTransformer.input_norm`.

    Returns:
        Heads with other query, key and value matrices, and the same logits and outputs.

    Examples:
        >>> from attlas.transformers.canonical import Attention
        >>> one, zero = jnp.eye(2)[None], jnp.zeros((1, 2))
        >>> heads = Attention(one, zero, one, zero, one, zero, one, zero[0], (0,), 1.0, False)
        >>> norm = Norm(jnp.array([2.0, 1.0]), jnp.zeros(2), 0.0, centred=False)
        >>> folded_attention(heads, norm).W_K[0].tolist()
        [[2.0, 0.0], [0.0, 1.0]]
    """
    W_Q, b_Q = _folded_matrix(attention.W_Q, attention.b_Q, norm, projection)
    W_K, b_K = _folded_matrix(attention.W_K, attention.b_K, norm, projection)
    W_V, b_V = _folded_matrix(attention.W_V, attention.b_V, norm, projection)
    return Attention(
        W_Q,
        b_Q,
        W_K,
        b_K,
        W_V,
        b_V,
        attention.W_O,
        attention.b_O,
        attention.group,
        attention.scale,
        attention.causal,
        attention.window,
        attention.rotary,
        attention.query_norm,
        attention.key_norm,
        attention.softcap,
        attention.relative,
    )
