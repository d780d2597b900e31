r"""Which tokens attention selects, and how firmly."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attlas.core.argument_validation import validate_record_arguments
from attlas.core.arrays import ArrayInput, own_precision, read_indices


def selected_tokens(attention: ArrayInput) -> Int[Array, "*batch"]:
    r"""The tokens of largest attention, argmax_t s_it; the first one where tied.

    Args:
        attention: attention weights, (..., T); a list, or an array of NumPy, JAX or torch.

    Returns:
        Token index of each sample.

    Examples:
        >>> selected_tokens(jnp.array([[0.2, 0.8], [0.6, 0.4]])).tolist()
        [1, 0]
    """
    with own_precision("*n T", attention=attention) as (weights,):
        return jnp.argmax(weights, axis=-1)


def attention_mass(attention: ArrayInput, tokens: ArrayInput) -> Float[Array, "*batch"]:
    r"""Attention s_ia on one stated token a_i of each sample.

    Args:
        attention: attention weights, (..., T), as for `selected_tokens`.
        tokens: token index of each sample.

    Returns:
        Weights in [0, 1].

    Examples:
        >>> attention_mass(jnp.array([[0.2, 0.8], [0.6, 0.4]]), jnp.array([1, 1])).tolist()
        [0.8, 0.4]
    """
    with own_precision("*n T", attention=attention) as (weights,):
        chosen = read_indices(tokens, "tokens", weights.shape[:-1], weights.shape[-1])
        return jnp.take_along_axis(weights, jnp.asarray(chosen)[..., None], axis=-1)[..., 0]


def selection_rate(attention: ArrayInput, tokens: ArrayInput) -> Float[Array, "*batch"]:
    r"""Fraction of samples whose selected token is the stated one.

    Args:
        attention: attention weights, (..., n, T), as for `selected_tokens`.
        tokens: stated token of each sample, such as the optimal one.

    Returns:
        Fraction in [0, 1].

    Examples:
        >>> float(selection_rate(jnp.array([[0.2, 0.8], [0.6, 0.4]]), jnp.array([1, 1])))
        0.5
    """
    with own_precision("*n T", attention=attention) as (weights,):
        chosen = read_indices(tokens, "tokens", weights.shape[:-1], weights.shape[-1])
        hits = jnp.argmax(weights, axis=-1) == jnp.asarray(chosen)
        return jnp.mean(hits.astype(weights.dtype), axis=-1)


@validate_record_arguments
def label_probability(
    margin: Float[Array, "*batch n"],
) -> Float[Array, "*batch"]:
    r"""Mean probability of the true label, (1/n) sum_i 1 / (1 + exp(-y_i f_i)).

    Args:
        margin: margins y_i f_i.

    Returns:
        Probability in [0, 1].

    Examples:
        >>> float(label_probability(jnp.zeros(3)))
        0.5
    """
    return jnp.mean(jax.nn.sigmoid(margin), axis=-1)
