r"""The order in which each member of an ensemble visits its training set, epoch by epoch."""

from collections.abc import Iterator

import jax
import numpy as np
from jaxtyping import Array, Key


def epoch_orders(keys: Key[Array, " e"], size: int, batch: int) -> Iterator[np.ndarray]:
    """For each epoch fresh permutations, cut in batches.

    What does not fill a batch waits for another epoch. Drawn on the host: sorting random bits
    would take a third of a compilation.

    Args:
        keys: one random key a member.
        size: examples of the training set.
        batch: examples a batch, at most `size`.

    Yields:
        Example numbers [e, steps, batch], without end.

    Examples:
        >>> first = next(epoch_orders(jax.random.split(jax.random.key(0), 2), size=7, batch=3))
        >>> first.shape, int(np.unique(first[0]).size)
        ((2, 2, 3), 6)
    """
    seeds = np.asarray(jax.random.key_data(keys)).tolist()
    generators = [np.random.default_rng(seed) for seed in seeds]
    steps = size // batch
    while True:
        drawn = [g.permutation(size)[: steps * batch] for g in generators]
        # Of a fixed width: threads do not see a precision that a context manager sets.
        yield np.array(drawn, np.int32).reshape(len(seeds), steps, batch)
