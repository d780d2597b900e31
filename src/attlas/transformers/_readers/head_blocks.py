"""Matrices of all heads side by side, cut into the matrices of each head."""

from collections.abc import Iterable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.transformers.canonical import Attention, Dense, Norm, Rotary


def dense(W: np.ndarray, b: np.ndarray | None, *, outputs_first: bool = True) -> Dense:
    """A map x W + b of a stored matrix and vector.

    Args:
        b: the bias, or None for none.
        outputs_first: whether rows of W are outputs, as in torch's Linear; else inputs.

    Examples:
        >>> dense(np.ones((3, 2)), None)(jnp.ones((1, 2))).tolist()
        [[2.0, 2.0, 2.0]]
    """
    W = W.T if outputs_first else W
    return Dense(jnp.asarray(W), jnp.asarray(np.zeros(W.shape[1], W.dtype) if b is None else b))


def scaled(outward: Dense, factor: float) -> Dense:
    """A map whose outputs are multiplied by a factor.

    Examples:
        >>> scaled(dense(np.eye(1), None), 2.0).W.tolist()
        [[2.0]]
    """
    return outward if factor == 1 else Dense(factor * outward.W, factor * outward.b)


def blocks_of_outputs(
    joint: Dense, blocks: int
) -> tuple[Float[Array, "{blocks} d k"], Float[Array, "{blocks} k"]]:
    """Queries, keys or values: a block of neighbouring outputs belongs to each head.

    Examples:
        >>> W, b = blocks_of_outputs(dense(np.arange(4.0)[:, None], np.arange(4.0)), 2)
        >>> W[:, 0].tolist(), b.tolist()
        ([[0.0, 1.0], [2.0, 3.0]], [[0.0, 1.0], [2.0, 3.0]])
    """
    d, _ = joint.W.shape
    return joint.W.reshape(d, blocks, -1).swapaxes(0, 1), joint.b.reshape(blocks, -1)


def blocks_of_inputs(
    joint: Dense, blocks: int
) -> tuple[Float[Array, "{blocks} v d"], Float[Array, " d"]]:
    """The output projection: a block of neighbouring inputs belongs to each head.

    Examples:
        >>> W, b = blocks_of_inputs(dense(np.arange(4.0)[None], None), 2)
        >>> W[:, :, 0].tolist()
        [[0.0, 1.0], [2.0, 3.0]]
    """
    _, d = joint.W.shape
    return joint.W.reshape(blocks, -1, d), joint.b


def attention_of(
    maps: Iterable[Dense],
    heads: int,
    *,
    causal: bool,
    groups: int | None = None,
    scale: float | None = None,
    window: int | None = None,
    rotary: Rotary | None = None,
    query_norm: Norm | None = None,
    key_norm: Norm | None = None,
    softcap: float | None = None,
    relative: Float[Array, "{heads} offsets"] | None = None,
) -> Attention:
    """The heads of a layer from its four maps, in which blocks of neighbours belong to each head.

    Args:
        maps: queries of all heads, keys and values of all groups, and the output projection.
        causal: whether a token sees those up to itself only.
        groups: number of key/value groups, each of neighbouring heads; one per head when None.
        scale: factor of the logits; k^(-1/2) when None.

    Examples:
        >>> one = dense(np.eye(4), None)
        >>> found = attention_of([one] * 4, 2, causal=True)
        >>> found.W_Q.shape, found.W_O.shape, found.group, round(found.scale, 3)
        ((2, 4, 2), (2, 2, 4), (0, 1), 0.707)
    """
    shared = heads if groups is None else groups
    queries, keys, values, output = maps
    W_Q, b_Q = blocks_of_outputs(queries, heads)
    (W_K, b_K), (W_V, b_V) = (blocks_of_outputs(joint, shared) for joint in (keys, values))
    W_O, b_O = blocks_of_inputs(output, heads)
    return Attention(
        W_Q=W_Q,
        b_Q=b_Q,
        W_K=W_K,
        b_K=b_K,
        W_V=W_V,
        b_V=b_V,
        W_O=W_O,
        b_O=b_O,
        group=tuple(head // (heads // shared) for head in range(heads)),
        scale=W_Q.shape[2] ** -0.5 if scale is None else scale,
        causal=causal,
        window=window,
        rotary=rotary,
        query_norm=query_norm,
        key_norm=key_norm,
        softcap=softcap,
        relative=relative,
    )


def turned_by(attention: Attention, factor: float) -> Attention:
    """Heads whose queries and keys are multiplied by a factor, in the coordinates that turn.

    Examples:
        >>> one = dense(np.eye(4), None)
        >>> heads = attention_of([one] * 4, 1, causal=True, rotary=Rotary(np.ones(1), False))
        >>> turned_by(heads, 3.0).W_Q[0].diagonal().tolist()
        [3.0, 3.0, 1.0, 1.0]
    """
    if factor == 1 or attention.rotary is None:
        return attention
    turns = jnp.arange(attention.W_Q.shape[2]) < 2 * attention.rotary.frequencies.size
    factors = jnp.where(turns, factor, 1.0).astype(attention.W_Q.dtype)
    return eqx.tree_at(
        lambda heads: (heads.W_Q, heads.b_Q, heads.W_K, heads.b_K),
        attention,
        replace_fn=lambda blocks: blocks * jnp.broadcast_to(factors, blocks.shape),
    )
