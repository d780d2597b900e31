"""Which tokens attention selects."""

import jax.numpy as jnp
from jaxtyping import Array, Int

from attlas.core.arrays import ArrayInput, own_precision


def selected_tokens(attention: ArrayInput) -> Int[Array, "*batch"]:
    r"""The tokens of largest attention, argmax_t s_it; the first one where tied.

    Args:
        attention: attention weights, (..., T); a list, or an array of NumPy, JAX or torch.

    Examples:
        >>> selected_tokens(jnp.array([[0.2, 0.8], [0.6, 0.4]])).tolist()
        [1, 0]
    """
    with own_precision("*n T", attention=attention) as (weights,):
        return jnp.argmax(weights, axis=-1)
