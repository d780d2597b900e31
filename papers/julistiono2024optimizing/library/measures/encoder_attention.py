"""Where the readout of an encoder attends, and the weights that make its attention."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.data.token_sequences import TokenSequences
from attlas.models.networks.encoder import Encoder


@eqx.filter_jit
def readout_attention(models: Encoder, data: TokenSequences) -> Float[Array, "e n T"]:
    r"""Share of each token in the attention of the readout, which is a first token of its own.

    Weights of the last block, heads averaged; the readout's own position is left out and the rest
    divided by its sum.

    Args:
        models: encoders along a leading axis of every array.

    Returns:
        One distribution over the tokens for each encoder and sequence.

    Examples:
        >>> from attlas.models.networks.encoder import make_encoder
        >>> make = lambda key: make_encoder(key, 3, 2, width=4, blocks=1, heads=1, hidden=4)
        >>> models = jax.vmap(make)(jax.random.split(jax.random.key(0), 2))
        >>> import numpy as np
        >>> data = TokenSequences(np.ones((5, 2), int), np.ones((5, 2), bool), np.zeros(5))
        >>> share = readout_attention(models, data)
        >>> share.shape, bool(jnp.allclose(share.sum(axis=-1), 1))
        ((2, 5, 2), True)
    """

    def attention_of_member(model: Encoder, tokens: Array, mask: Array) -> Array:
        weights = jnp.mean(model.attention(tokens, mask)[-1][:, 0, 1:], axis=0)
        return weights / jnp.sum(weights)

    members = jax.vmap(attention_of_member, in_axes=(None, 0, 0))
    return eqx.filter_vmap(members, in_axes=(0, None, None))(
        models, jnp.asarray(data.tokens), jnp.asarray(data.mask)
    )


def attention_weights(models: Encoder) -> dict[str, Float[Array, "e L d d"]]:
    """Query, key and value weights of all blocks.

    Args:
        models: encoders along a leading axis of every array.

    Returns:
        Weights by name, blocks along the second axis.

    Examples:
        >>> from attlas.models.networks.encoder import make_encoder
        >>> make = lambda key: make_encoder(key, 3, 2, width=4, blocks=3, heads=1, hidden=8)
        >>> models = jax.vmap(make)(jax.random.split(jax.random.key(0), 2))
        >>> {name: weights.shape for name, weights in attention_weights(models).items()}
        {'query': (2, 3, 4, 4), 'key': (2, 3, 4, 4), 'value': (2, 3, 4, 4)}
    """
    return {
        name: jnp.stack([getattr(block, name) for block in models.blocks], axis=1)
        for name in ("query", "key", "value")
    }
