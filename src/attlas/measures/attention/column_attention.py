r"""The attention that each token receives, a score that identifies attention sinks."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.arrays import ArrayInput, own_precision, read_mask


def column_attention(weights: ArrayInput, seen: ArrayInput) -> Float[Array, "H T"]:
    r"""Mean weight of each token over the rows that see it.

    $$\alpha_k=\frac1{|\{i: k\in S_i\}|}\sum_{i: k\in S_i} a_{ik}$$

    A head has a sink at token k if alpha_k > 0.3 over T = 64 tokens; the score falls with T.
    Uniform causal attention has alpha_1 = H_T / T, with H_T the harmonic number, 0.074 at T = 64;
    uniform bidirectional attention has 1 / T.

    Args:
        weights: attention maps of one sequence, [H, T, T]; a list, or an array of NumPy, JAX or
            torch, traced or not.
        seen: S, whether the row's token sees the column's and counts, booleans [T, T].

    Returns:
        One score per head and token; 0 for a token that no row sees.

    A `UserError` names an array of another shape or type.

    Source: Gu et al., When Attention Sink Emerges in Language Models (arXiv 2410.10781).

    Examples:
        >>> causal = jnp.tril(jnp.ones((4, 4), bool))
        >>> even = jnp.where(causal, 1 / jnp.arange(1.0, 5)[:, None], 0)
        >>> [round(float(score), 4) for score in column_attention(even[None], causal)[0]]
        [0.5208, 0.3611, 0.2917, 0.25]
    """
    with own_precision("H T T", weights=weights) as (a,):
        sees = jnp.asarray(read_mask(seen, "seen", a.shape[1:]))
        number = jnp.maximum(jnp.sum(sees, axis=0), 1).astype(a.dtype)
        return jnp.sum(jnp.where(sees[None], a, 0), axis=1) / number[None]
