r"""Attention on the relevant tokens by who asks: all queries, relevant ones, irrelevant ones."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.library.measures.token_attention import relevant_attention

QUERIES = ("all", "relevant", "irrelevant")


@jax.jit
def queried_attention(
    models: MultiHead, X: Float[Array, "n T d"], relevant: Bool[Array, "n T"]
) -> Float[Array, "3 e s H"]:
    r"""Mass on the relevant tokens, mean over samples, of many models of one shape.

    Rows in the order of `QUERIES`; the last two are the cases of Proposition 3 of
    deora2023optimization.

    Args:
        models: with two leading axes, such as the starts and the records of an ensemble.
        X: samples.
        relevant: which tokens are relevant.

    Returns:
        Masses in [0, 1], by queries, model and head.

    Examples:
        >>> U, W = jnp.zeros((1, 2, 3, 4, 5)), jnp.zeros((1, 2, 3, 5, 5))
        >>> models = jax.vmap(jax.vmap(MultiHead))(U, W)
        >>> marked = jnp.array([[True, False, False, False]])
        >>> queried_attention(models, jnp.ones((1, 4, 5)), marked)[:, 0, 0, 0].tolist()
        [0.25, 0.25, 0.25]
    """

    def one(model: MultiHead) -> Array:
        mass = partial(relevant_attention, model, X, relevant)
        every = mass(), mass(relevant), mass(~relevant)
        return jnp.stack([jnp.mean(each, axis=0) for each in every])

    return jnp.moveaxis(jax.vmap(jax.vmap(one))(models), 2, 0)
