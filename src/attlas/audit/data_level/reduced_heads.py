r"""Heads in coordinates of their own, in which derivatives and their norms are cheap.

A head reads X through X W_Q, X W_K and X W_V alone, at most 3k directions, and writes through
W_O. In orthonormal bases of what it reads and of what it writes it is a function from T x r to
T x v numbers with the same Lipschitz constant as the head itself.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attlas.transformers.canonical import Attention, Norm
from attlas.transformers.forward import relative_logits, rotate, scaled_logits


class ReducedHeads(NamedTuple):
    """The heads of one layer, one entry per head; v is the rank of what a head writes.

    Attributes:
        basis: orthonormal directions that the head reads.
        W_Q: query projection in that basis.
        b_Q: its bias.
        W_K: key projection.
        b_K: its bias.
        W_V: value and output projection, in an orthonormal basis of what the head writes.
        b_V: the bias of the values there.
        relative: what positions add to the logits, or None.
    """

    basis: Float[Array, "H d r"]
    W_Q: Float[Array, "H r k"]
    b_Q: Float[Array, "H k"]
    W_K: Float[Array, "H r k"]
    b_K: Float[Array, "H k"]
    W_V: Float[Array, "H r v"]
    b_V: Float[Array, "H v"]
    relative: Float[Array, "H offsets"] | None


def reduce_heads(attention: Attention) -> ReducedHeads:
    """The heads of a layer in their own coordinates.

    Args:
        attention: heads, the norm folded in where it shall be.

    Returns:
        The same functions up to rotations of what they read and write.
    """
    group = jnp.array(attention.group)
    W_K, b_K = attention.W_K[group], attention.b_K[group]
    W_V, b_V = attention.W_V[group], attention.b_V[group]
    joint = jnp.concatenate([attention.W_Q, W_K, W_V], axis=-1)
    basis = jnp.linalg.qr(joint)[0]
    written = jnp.swapaxes(jnp.linalg.qr(jnp.swapaxes(attention.W_O, -1, -2))[1], -1, -2)

    def inside(W: Array) -> Array:
        return jnp.einsum("hdr,hdk->hrk", basis, W)

    return ReducedHeads(
        basis,
        inside(attention.W_Q),
        attention.b_Q,
        inside(W_K),
        b_K,
        inside(W_V) @ written,
        jnp.einsum("hv,hvo->ho", b_V, written),
        attention.relative,
    )


def read_rows(heads: ReducedHeads, x: Float[Array, "T d"]) -> Float[Array, "H T r"]:
    """Tokens in the coordinates of each head.

    Returns:
        One row per head and token, no longer than the token itself.
    """
    return jnp.einsum("td,hdr->htr", x, heads.basis)


def turned(attention: Attention, norm: Norm | None, h: Float[Array, "T k"]) -> Float[Array, "T k"]:
    """Queries or keys of one head after their norm and their rotation.

    Args:
        attention: heads whose rotation is applied.
        norm: norm of queries or keys, or None.
        h: queries or keys before norm and rotation.
    """
    h = h if norm is None else norm(h)
    return h if attention.rotary is None else rotate(attention.rotary, h[None])[0]


def head_maps(
    attention: Attention, head: ReducedHeads, y: Float[Array, "T r"], seen: Bool[Array, "T T"]
) -> tuple[Float[Array, "T k"], Float[Array, "T k"], Float[Array, "T T"]]:
    """Turned queries, turned keys and attention weights of one head.

    Args:
        attention: scale, rotation and norms of the layer.
        head: one entry of `ReducedHeads`.
        y: tokens in the head's coordinates.
        seen: True where the row's token sees the column's.
    """
    queries = turned(attention, attention.query_norm, y @ head.W_Q + head.b_Q[None])
    keys = turned(attention, attention.key_norm, y @ head.W_K + head.b_K[None])
    logits = scaled_logits(attention, queries @ keys.T)
    if head.relative is not None:
        places = jnp.arange(y.shape[0])
        logits = logits + relative_logits(head.relative, places, places)
    return queries, keys, jax.nn.softmax(jnp.where(seen, logits, -jnp.inf), axis=-1)


def head_output(
    attention: Attention, head: ReducedHeads, y: Float[Array, "T r"], seen: Bool[Array, "T T"]
) -> Float[Array, "T v"]:
    """What one head writes, in its own coordinates.

    Args:
        attention: scale, rotation and norms of the layer.
        seen: True where the row's token sees the column's.
    """
    weights = head_maps(attention, head, y, seen)[2]
    return weights @ (y @ head.W_V + head.b_V[None])
