r"""Attention mass that the heads put on the relevant tokens."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attlas.models.attention.multi_head import Decoder, MultiHead


def relevant_attention(
    model: MultiHead,
    X: Float[Array, "n T d"],
    relevant: Bool[Array, "n T"],
    queries: Bool[Array, "n T"] | None = None,
) -> Float[Array, "n H"]:
    r"""Mass on the relevant tokens, averaged over queries.

    (1/|Q|) sum_{t in Q} sum_{s in R} phi_ts, one number per sample and head; without attention
    weights it is |R| / T. A decoder of the last token reads one query only, which is taken then.

    Args:
        model: the multi-head model.
        X: samples.
        relevant: R, which tokens are relevant.
        queries: Q, the queries to average over; those that the decoder reads when None. Sets such
            as `relevant` and its complement part the two cases of Proposition 3 of
            deora2023optimization.

    Returns:
        Masses in [0, 1]; NaN for a sample without queries.

    Examples:
        >>> from attlas.models.attention.multi_head import make_multi_head
        >>> marked = jnp.array([[True, False, False, False]])
        >>> relevant_attention(make_multi_head(2, 4, 3), jnp.ones((1, 4, 3)), marked).tolist()
        [[0.25, 0.25]]
    """
    if queries is None:
        queries = jnp.ones(relevant.shape, bool)
        if model.decoder is Decoder.LAST:
            queries = queries.at[:, :-1].set(False)
    attention = jax.vmap(model.attention)(X)
    mass = jnp.sum(jnp.where(relevant[:, None, None, :], attention, 0), axis=-1)
    asked = jnp.sum(queries, axis=-1).astype(mass.dtype)
    return jnp.sum(jnp.where(queries[:, None, :], mass, 0), axis=-1) / asked[:, None]
