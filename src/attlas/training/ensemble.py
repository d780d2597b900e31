r"""Many independent trainings in chunks of one compiled program, on all cores or all devices.

The work of a chunk should fit the cache. XLA runs the small products of one chunk on one core, so
that several chunks run at once, one per thread. With several devices, a chunk is that many times
wider, and its members are distributed over them.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float

from attlas._jax.device_arrays import on_device
from attlas._jax.processes import available_cores
from attlas.core.arrays import read_array
from attlas.core.axes import require_axes
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.piece_cache import cached_pieces
from attlas.core.ranges import require_at_least
from attlas.core.trees import as_tree, require_real_tree
from attlas.models.attention.multi_head import MultiHead

CACHE_BYTES = 2**22
"""Most bytes of the attention of one chunk.

Measured on second-level caches of 1 MB: leave-one-out of 100 trainings is 1.75 times as fast as a
loop over them in chunks of this size, 1.56 times in chunks twice as wide (4 heads, d = 10), and
1.05 and 1.01 times with 8 heads and d = 20; chunks half as wide are not faster.
"""
ACCELERATOR_BYTES = 2**30
"""The same for an accelerator, which needs work for all its units."""

Out = TypeVar("Out")


@refuse_misfits
def cache_width(model: Any, X: Float[Array | np.ndarray, " n *shape"]) -> int:
    """The best number of models to train together, 1 to 128 on a CPU, on the samples X.

    Examples:
        >>> from attlas.models.attention.multi_head import make_multi_head
        >>> cache_width(make_multi_head(4, 10, 10), jnp.ones((100, 10, 10), jnp.float32))
        6
    """
    X = X if hasattr(X, "dtype") else read_array(X, "X")
    require_axes("n *shape", {"X": X.shape})
    heads, tokens = 1, 1
    if isinstance(model, MultiHead):
        require_axes("n T d", {"X": X.shape})
        model.require_tokens(*X.shape[1:])
        heads, tokens = model.heads, X.shape[1]
    # Attention, readout and two rows of d per head and token.
    entries = X.size * heads * (2 * tokens / X.shape[-1] + 2)
    size = entries * X.dtype.itemsize
    return max(1, min(128, int(CACHE_BYTES // size))) if on_cpu() else accelerator_width(size)


def on_cpu() -> bool:
    """Whether JAX computes on a CPU, where chunks should fit the cache.

    Examples:
        >>> on_cpu() == (jax.devices()[0].platform == "cpu")
        True
    """
    return jax.default_backend() == "cpu"


def accelerator_width(size: float) -> int:
    """The best number of members of `size` bytes each to train together on an accelerator.

    Examples:
        >>> accelerator_width(2.0**20)
        1024
    """
    require_at_least(1, size=size)
    return max(1, int(ACCELERATOR_BYTES // size))


def core_share(count: int) -> int:
    """Members per chunk if every core of a CPU takes one chunk; on other devices all.

    Examples:
        >>> core_share(1)
        1
    """
    return -(-count // available_cores()) if on_cpu() else count


def in_chunks(program: Callable[[Any], Out], batch: Any, width: int) -> Out:
    """Apply a compiled program to slices of a batch; the last slice repeats its last member.

    With several devices the members of a slice are distributed over them. Each member is computed
    on one device as it would be alone, so that results depend on the number of devices only through
    rounding in products of other batch sizes: by at most 1e-12 of the largest number in float64, on
    1, 2 and 8 devices and in the ensembles of selection, softmax networks, leave-one-out and sparse
    majority (`tests/training/test_devices.py`).

    The program must not factorise batches of matrices (Cholesky, LU, eigenvalues): XLA's CPU pool
    deadlocks when two such programs run at once (jaxlib 0.10.2).

    Args:
        program: maps a batch of members to their results, along the leading axis.
        batch: tree of arrays with a leading axis.
        width: most members per chunk and device. Several chunks have equal size, and their number
            is chosen so that no core waits for the last one.

    Raises:
        UserError: if there is no member, or the width is below 1.

    Examples:
        >>> in_chunks(lambda a: 2 * a, np.arange(5), 2).tolist()
        [0, 2, 4, 6, 8]
    """
    all_members, count = _members(batch)
    if count < 1 or width < 1:
        raise UserError(f"{count} trainings in chunks of {width}: both must be at least 1")
    devices = member_devices()
    spread = _spread(devices)
    # Two programs that use all devices may wait for each other: they take turns.
    threads = available_cores() if len(devices) == 1 else 1
    width = _even_width(count, width * len(devices), threads, len(devices))

    # Settings by a context manager hold in one thread only: float64 would be lost.
    wide = jnp.result_type(float) == jnp.float64
    digits = jax.config.jax_default_matmul_precision  # pyright: ignore[reportAttributeAccessIssue]

    def members(number: int) -> Any:
        pick = np.minimum(np.arange(number * width, (number + 1) * width), count - 1)
        return jax.tree.map(lambda a: spread(a[pick]), all_members)

    def chunk(number: int) -> Any:
        with jax.enable_x64(wide), jax.default_matmul_precision(digits):
            return jax.tree.map(np.asarray, program(members(number)))

    # All at once: a program of short loops runs within its call, so that a first chunk begun here
    # would run alone. The first thread compiles while JAX lets the others wait.
    with ThreadPoolExecutor(threads) as pool:
        pieces = cached_pieces(
            (all_members, width), -(-count // width), lambda some: pool.map(chunk, some),
            like=lambda: jax.eval_shape(program, members(0)),
        )  # fmt: skip
    return jax.tree.map(lambda *arrays: on_device(np.concatenate(arrays)[:count]), *pieces)


def _members(batch: Any) -> tuple[Any, int]:
    """The arrays of a batch on the host, and the number of its members."""
    batch = as_tree(batch, "batch")
    require_real_tree(batch, "batch")
    arrays = jax.tree.map(np.asarray, batch)
    shapes = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(arrays)}
    if len(shapes) != 1 or () in shapes:
        sizes = ", ".join(map(str, sorted(shapes))) or "no array"
        raise UserError(f"batch has leading axes of {sizes}: give each array one entry per member")
    return arrays, shapes.pop()[0]


def _even_width(count: int, most: int, threads: int, devices: int) -> int:
    """Members of each chunk: at most `most`, a multiple of the devices."""
    chunks = -(-count // most)
    if chunks > 1:  # as many for each thread, if that can be
        chunks = min(count, -(-chunks // threads) * threads)
    return -(-count // (chunks * devices)) * devices


def member_devices() -> list[jax.Device]:
    """The devices over which members are distributed: all that this process sees.

    Examples:
        >>> len(member_devices()) == jax.local_device_count()
        True
    """
    return jax.local_devices()


def _spread(devices: list[jax.Device]) -> Callable[[np.ndarray], Array]:
    """The function that puts a slice of the members on the devices."""
    if len(devices) == 1:
        return on_device
    shared = NamedSharding(Mesh(np.array(devices), ("members",)), PartitionSpec("members"))
    return lambda rows: jax.device_put(rows, shared)
