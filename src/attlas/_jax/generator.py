"""A NumPy generator from a JAX key: small instances are drawn without compiling anything."""

import jax
import numpy as np
from jaxtyping import PRNGKeyArray


def generator(key: PRNGKeyArray) -> np.random.Generator:
    """A NumPy generator seeded by a key; JAX's own draws compile for each new shape.

    Examples:
        >>> key = jax.random.key(3)
        >>> bool(generator(key).random() == generator(key).random())
        True
    """
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())


def seed_of(key: PRNGKeyArray) -> tuple[int, ...]:
    """Integers that stand for a key, which is not hashable, as the key of a cache.

    Examples:
        >>> len(seed_of(jax.random.key(3)))
        2
    """
    return tuple(generator(key).integers(2**31, size=2).tolist())
