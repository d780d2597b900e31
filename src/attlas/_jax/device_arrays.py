"""Arrays and random draws without the programs that JAX's eager operations compile for each shape.

`jnp.asarray` of a NumPy array costs 13 ms for each new shape, an index 33 ms (JAX 0.10.2).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray


def on_device(value: Any) -> Array:
    """An array of JAX by `device_put`: `jnp.asarray` compiles a program for each shape.

    JAX gets a view of its own: threads of different precision that pass one NumPy object at once
    get the wrong one, an array that says float64 and has float32 (jaxlib 0.10.2).

    Args:
        value: array of any shape of NumPy or JAX, a number, or lists of numbers.

    Examples:
        >>> on_device(np.arange(3)).tolist()
        [0, 1, 2]
    """
    return value if isinstance(value, jax.Array) else jax.device_put(np.asarray(value).view())


def entry(array: Any, index: Any) -> Any:
    """The entry at an index of an array, traced or not; on the CPU nothing is compiled.

    Examples:
        >>> entry(jnp.arange(6.0).reshape(2, 3), 1).tolist()
        [3.0, 4.0, 5.0]
    """
    if not isinstance(array, jax.Array) or is_traced(array) or not _is_on_host(array):
        return array[index]
    return on_device(np.asarray(array)[index])


def _is_on_host(array: Array) -> bool:
    is_key = jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
    return not is_key and all(device.platform == "cpu" for device in array.devices())


def is_traced(value: Any) -> bool:
    """Whether it stands for an array in `jit`, `vmap` or `grad`; False for other objects."""
    return isinstance(value, jax.Array) and not hasattr(value, "block_until_ready")


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
