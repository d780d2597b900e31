"""All variants and replications of one review model as one stacked model."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.core.errors import UserError
from liu2021analyzing.library.reviews.variants import ReviewModel, ReviewSizes, make_review_model


def make_review_ensemble(
    keys: Key[Array, " members"],
    kind: str,
    sizes: ReviewSizes,
    variants: Sequence[tuple[float, float]],
) -> tuple[ReviewModel, Key[Array, " e"]]:
    """Every variant at the start of every key: differences between variants are paired.

    Args:
        keys: one per replication.
        kind: "mlp", "attention", "lstm" or "recurrent".
        sizes: of the models.
        variants: factor of the l1 penalty and temperature of the softmax.

    Returns:
        The stacked models, the replications of the first variant first; and their keys.

    Raises:
        UserError: if there is no variant, or no such kind of model.

    Examples:
        >>> keys = jax.random.split(jax.random.key(0), 2)
        >>> sizes = ReviewSizes(5, 3, 2, 4, 2, 2, (3,))
        >>> models, own = make_review_ensemble(keys, "mlp", sizes, [(0.0, 1.0), (0.5, 1.0)])
        >>> models.strength.tolist(), own.shape
        ([0.0, 0.0, 0.5, 0.5], (4,))
    """
    if not variants:
        raise UserError("no variant of the review model: give at least one pair of numbers")
    numbers = np.repeat(np.array(variants, np.float32), len(keys), axis=0)
    every = jnp.tile(keys, len(variants))

    def start(key: Array, own: Array) -> ReviewModel:
        return make_review_model(key, kind, sizes, own[0], own[1])

    made = jax.jit(jax.vmap(start), compiler_options=CHEAP_COMPILATION)(every, numbers)
    return made, every
