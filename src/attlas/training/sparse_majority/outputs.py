r"""The single-layer Transformer of Theorem 4.1 on embedded bits, without forming token sequences.

Only [CLS] attends and its query is the same in every sequence. A position t with bit b has weight
u_tb = exp(x_tb' W_QK x_cls), so that numerator and denominator of the attention are linear in the
bits and follow from one product of n x (2 T + 1) bits with a table of d + 1 columns.
`majority_table` does the same for the model of the released program.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int8

from attlas.core.errors import refuse_misfits
from attlas.data.sparse_majority import BitEmbedding
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer


@refuse_misfits
def majority_outputs(
    model: SingleLayerTransformer, embedding: BitEmbedding, bits: Int8[Array, "n T"]
) -> Float[Array, " n"]:
    r"""Outputs of the model on sequences of bits, equal to those on the tokens up to rounding.

    Source: section 4.1 of trauger2023sequence; the order of summation derived.

    Examples:
        >>> embedding = BitEmbedding(*jnp.eye(3), positions=jnp.zeros((3, 3)))
        >>> eye = jnp.eye(3)[None]
        >>> model = SingleLayerTransformer(jnp.array([1.0, 0.0, 0.0]), 0 * eye, eye, eye)
        >>> out = majority_outputs(model, embedding, jnp.array([[0, 1], [0, 0]], jnp.int8))
        >>> [f"{float(value):.4f}" for value in out]
        ['0.3333', '0.6667']
    """
    bits = jnp.asarray(bits)
    places = embedding.positions[:-1]
    cls = embedding.cls + embedding.positions[-1]
    of_zero, of_one = places + embedding.zero[None], places + embedding.one[None]
    tokens = jnp.concatenate([of_zero, of_one, cls[None]])
    scores = jnp.einsum("te,hed,d->ht", tokens, model.query_key, cls)
    weights = jnp.exp(scores - jax.lax.stop_gradient(jnp.max(scores, axis=1, keepdims=True)))
    extended = jnp.concatenate([jnp.ones_like(tokens[:, :1]), tokens], axis=1)
    table = weights[:, :, None] * extended[None]
    # Absent tokens are left out, not subtracted: the sum of those present may be far smaller.
    present = jnp.concatenate([1 - bits, bits, jnp.ones_like(bits[:, :1])], axis=1)
    sums = jnp.einsum("nt,hte->nhe", present.astype(tokens.dtype), table)
    pooled = sums[..., 1:] / sums[..., :1]
    hidden = model.activation(jnp.einsum("nhd,hdk->nhk", pooled, model.value))
    return jnp.einsum("nhk,hkd,d->n", hidden, model.output, model.w)
