"""Inputs of p words with t entries each, one column per word, as liu2021analyzing writes them."""

from jaxtyping import Array, Bool

from attlas.core.errors import UserError


def require_columns(
    x: Array, t: int, p: int | None = None, mask: Bool[Array, "*shape"] | None = None
) -> None:
    """Refuse an input x that is not [t, p], as a model reads it; costs nothing once compiled.

    Args:
        t: entries of a word that the model reads.
        p: words that it reads; any number when None.
        mask: True at words; None where there is no padding.

    Examples:
        >>> import jax.numpy as jnp
        >>> require_columns(jnp.ones((2, 5)), 2)
        >>> require_columns(jnp.ones((5, 2)), 2, 5)
        Traceback (most recent call last):
        attlas.core.errors.UserError: x has shape (5, 2), the model reads (2, 5): words as columns
    """
    words = "p" if p is None else p
    if x.ndim != 2 or x.shape[0] != t or x.shape[1] != (x.shape[1] if p is None else p):
        raise UserError(f"x has shape {x.shape}, the model reads ({t}, {words}): words as columns")
    if mask is not None and mask.shape != x.shape[1:]:
        raise UserError(
            f"mask has shape {mask.shape} for {x.shape[1]} words: give one entry per word"
        )
