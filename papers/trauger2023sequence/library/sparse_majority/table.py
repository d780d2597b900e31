r"""The same function as `MajorityAttention` on embedded bits, without a token of any sequence.

Only [CLS] is read, and its query q_h does not depend on the sequence. With tokens e(b_t) + p_t
and r_h = W_K,h q_h / sqrt(k), the score of token t is (e(b_t) + p_t)' r_h, the bias of the keys
drops out, and attention is a product of one weight per position and one per bit,

    weight_t = a_t w_{b_t},   a_t = exp(p_t' r_h),   w_b = exp(e(b)' r_h).

With u_tb = a_t w_b, numerator and denominator of the attention are linear in the bits,

    sum_t u_{t b_t} (1, V_h x_t) = sum_t u_t0 (1, V_h x_t0)
                                   + sum_t b_t [u_t1 (1, V_h x_t1) - u_t0 (1, V_h x_t0)],

so that one product of the n x T bits with a T x h(d + 1) table gives all of it. V_h = W_V,h W_O,h,
and the two linear maps after the ReLU are one. Nothing is approximated.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int8

from attlas.data.sparse_majority import BitEmbedding
from trauger2023sequence.library.models.majority_attention import MajorityAttention


class MajorityTable(NamedTuple):
    r"""All that the sequences do not change; column 0 is the denominator of the attention.

    Attributes:
        constant: logit and value sums per head for [CLS] and a sequence of zeros.
        change: change when bit t turns to 1.
        bias: term of the attention layer that no sequence changes.
        readout: matrix and bias from the ReLU to the logits.
    """

    constant: Float[Array, "h d1"]
    change: Float[Array, "T h d1"]
    bias: Float[Array, " d"]
    readout: tuple[Float[Array, "d c"], Float[Array, " c"]]


def majority_table(model: MajorityAttention, embedding: BitEmbedding) -> MajorityTable:
    r"""Table of positions and the collapsed readout.

    Weights are scaled so that the largest possible weight of a token is 1. As every position is
    in every sequence, the denominator is at least min(w_0, w_1)/max(w_0, w_1): it underflows in
    float32 only where the scores of the two bits differ by over 87, and then the logits are NaN.

    Examples:
        >>> from attlas.data.sparse_majority import make_sparse_majority
        >>> from trauger2023sequence.library.models.majority_attention import (
        ...     make_majority_attention,
        ... )
        >>> data = make_sparse_majority(jax.random.key(0), 12)
        >>> table = majority_table(make_majority_attention(jax.random.key(1)), data.embedding)
        >>> table.change.shape
        (12, 2, 65)
    """
    rows = jnp.concatenate([
        embedding.positions[:-1],
        jnp.stack([embedding.zero, embedding.one, embedding.cls + embedding.positions[-1]]),
    ])  # fmt: skip
    q = jnp.einsum("d,dhk->hk", rows[-1], model.query[0]) + model.query[1]
    r = jnp.einsum("hk,dhk->hd", q, model.key[0]) / q.shape[-1] ** 0.5
    # einsum contracts in the cheaper order: the rows first where they are fewer than d.
    values = jnp.einsum(
        "td,dhk,hke->the", rows, model.value[0], model.output[0], optimize="optimal"
    )
    scores = rows @ r.T
    largest_bit = jnp.maximum(scores[-3], scores[-2])
    shift = jnp.maximum(jnp.max(scores[:-3], axis=0), scores[-1] - largest_bit)
    # The shift cancels: no gradient has to pass it.
    largest_bit, shift = jax.lax.stop_gradient((largest_bit, shift))
    place = jnp.exp(scores[:-3] - shift[None])[:, :, None]
    zero, one_bit = (
        place
        * jnp.exp(scores[bit] - largest_bit)[None, :, None]
        * _with_one(values[:-3] + values[bit][None])
        for bit in (-3, -2)
    )
    cls = jnp.exp(scores[-1] - largest_bit - shift)[:, None] * _with_one(values[-1])
    bias = jnp.einsum("hk,hkd->d", model.value[1], model.output[0]) + model.output[1]
    last = model.readout[0]
    readout = model.dense[0] @ last, model.dense[1] @ last + model.readout[1]
    return MajorityTable(cls + jnp.sum(zero, axis=0), one_bit - zero, bias, readout)


def _with_one(values: Float[Array, "*t d"]) -> Float[Array, "*t d1"]:
    """A one before each value: its weight goes to the denominator."""
    return jnp.concatenate([jnp.ones_like(values[..., :1]), values], axis=-1)


def table_logits(table: MajorityTable, bits: Int8[Array, "n T"]) -> Float[Array, "n c"]:
    r"""Logits of many sequences from one product with the table.

    Args:
        table: result of `majority_table`.

    Examples:
        >>> from attlas.data.sparse_majority import make_sparse_majority
        >>> from trauger2023sequence.library.models.majority_attention import (
        ...     make_majority_attention,
        ... )
        >>> data = make_sparse_majority(jax.random.key(0), 12)
        >>> model = make_majority_attention(jax.random.key(1))
        >>> plain = jax.vmap(model)(jax.vmap(data.embedding)(data.bits))
        >>> fast = table_logits(majority_table(model, data.embedding), data.bits)
        >>> bool(jnp.max(jnp.abs(fast - plain)) < 1e-5)
        True
    """
    T, heads, width = table.change.shape
    moved = bits.astype(table.bias.dtype) @ table.change.reshape(T, heads * width)
    sums = moved.reshape(-1, heads, width) + table.constant[None]
    attention = jnp.sum(sums[:, :, 1:] / sums[:, :, :1], axis=1)
    matrix, bias = table.readout
    return jax.nn.relu(attention + table.bias[None]) @ matrix + bias[None]
