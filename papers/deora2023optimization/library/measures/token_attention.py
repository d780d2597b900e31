r"""Attention mass on the relevant tokens: all queries, relevant ones, irrelevant ones."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attlas.core.arrays import ArrayInput, own_precision, read_mask
from attlas.models.attention.multi_head import Decoder, MultiHead


def relevant_attention(
    model: MultiHead, X: ArrayInput, relevant: ArrayInput, queries: ArrayInput | None = None
) -> Float[Array, "n H"]:
    r"""Mass on the relevant tokens, averaged over queries.

    (1/|Q|) sum_{t in Q} sum_{s in R} phi_ts, one number per sample and head; without attention
    weights it is |R| / T. A decoder of the last token reads one query only, which is taken then.

    Args:
        X: samples, [n, T, d]; a list, or an array of NumPy, JAX or torch, traced or not.
        relevant: R, which tokens are relevant, booleans [n, T].
        queries: Q, the queries to average over, booleans [n, T]; those that the decoder reads
            when None. Sets such as `relevant` and its complement part the two cases of
            Proposition 3 of deora2023optimization.

    Returns:
        Masses in [0, 1]; NaN for a sample without queries.

    A `UserError` names an array that is not finite, not of booleans, or does not fit the model.

    Examples:
        >>> from attlas.models.attention.multi_head import make_multi_head
        >>> marked = jnp.array([[True, False, False, False]])
        >>> relevant_attention(make_multi_head(2, 4, 3), jnp.ones((1, 4, 3)), marked).tolist()
        [[0.25, 0.25]]
    """
    with own_precision("n T d, H d d", X=X, **{"model.W": model.W}) as (X, W):
        n, T, _ = X.shape
        relevant = jnp.asarray(read_mask(relevant, "relevant", (n, T)))
        if queries is None:
            read = jnp.ones((n, T), bool)
            if model.decoder is Decoder.LAST:
                read = read.at[:, :-1].set(False)
        else:
            read = jnp.asarray(read_mask(queries, "queries", (n, T)))
        attention = jax.vmap(MultiHead(model.U, W, model.decoder).attention)(X)
        mass = jnp.sum(jnp.where(relevant[:, None, None, :], attention, 0), axis=-1)
        number = jnp.sum(read, axis=-1).astype(mass.dtype)
        return jnp.sum(jnp.where(read[:, None, :], mass, 0), axis=-1) / number[:, None]


QUERIES = ("all", "relevant", "irrelevant")


@jax.jit
def queried_attention(
    models: MultiHead, X: Float[Array, "n T d"], relevant: Bool[Array, "n T"]
) -> Float[Array, "3 e s H"]:
    r"""Mass on the relevant tokens, mean over samples, of many models of one shape.

    Rows in the order of `QUERIES`; the last two are the cases of Proposition 3 of
    deora2023optimization.

    Args:
        models: parameters with two leading axes, such as the starts and the records of an ensemble.

    Returns:
        Masses in [0, 1], by queries, model and head.

    Examples:
        >>> U, W = jnp.zeros((1, 2, 3, 4, 5)), jnp.zeros((1, 2, 3, 5, 5))
        >>> models = jax.vmap(jax.vmap(MultiHead))(U, W)
        >>> marked = jnp.array([[True, False, False, False]])
        >>> queried_attention(models, jnp.ones((1, 4, 5)), marked)[:, 0, 0, 0].tolist()
        [0.25, 0.25, 0.25]
    """

    def by_queries(model: MultiHead) -> Array:
        mass = partial(relevant_attention, model, X, relevant)
        masses = mass(), mass(relevant), mass(~relevant)
        return jnp.stack([jnp.mean(mass_of_queries, axis=0) for mass_of_queries in masses])

    return jnp.moveaxis(jax.vmap(jax.vmap(by_queries))(models), 2, 0)
