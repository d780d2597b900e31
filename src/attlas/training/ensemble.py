r"""Many independent trainings in chunks of one compiled program, on all cores or all devices.

The work of a chunk should stay in the cache. XLA runs the small products of one chunk on one
core, so that several chunks run at once, each from its own thread. Where the process has several
devices, a chunk is so many times wider, and its members are shared out among them.
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
from attlas.core.errors import UserError
from attlas.core.piece_cache import cached_pieces
from attlas.models.attention.multi_head import MultiHead

CACHE_BYTES = 2**22
"""What the attention of one chunk may take.

Measured on second-level caches of 1 MB: leave-one-out of 100 trainings beside a loop over them is
1.75 times as fast in chunks of this size, 1.56 in twice as wide ones (4 heads, d = 10), and 1.05
and 1.01 times (8 heads, d = 20); half as wide ones are not faster.
"""
ACCELERATOR_BYTES = 2**30
"""The same on an accelerator, which is idle unless all of its units have work."""

Out = TypeVar("Out")


def cache_width(model: Any, X: Float[Array, "n *shape"]) -> int:
    """How many models train together best.

    Args:
        model: one of them.
        X: samples that each one sees.

    Returns:
        Number of models, from 1 to 128 on a CPU.

    Examples:
        >>> from attlas.models.attention.multi_head import make_multi_head
        >>> cache_width(make_multi_head(4, 10, 10), jnp.ones((100, 10, 10), jnp.float32))
        6
    """
    heads, tokens = (model.heads, X.shape[1]) if isinstance(model, MultiHead) else (1, 1)
    # Attention, readout and two rows of d per head and token.
    entries = X.size * heads * (2 * tokens / X.shape[-1] + 2)
    size = entries * X.dtype.itemsize
    return max(1, min(128, int(CACHE_BYTES // size))) if on_cpu() else accelerator_width(size)


def on_cpu() -> bool:
    """Whether JAX computes on a CPU, where chunks should fit the cache."""
    return jax.default_backend() == "cpu"


def accelerator_width(size: float) -> int:
    """How many members train together best on an accelerator.

    Args:
        size: bytes that one of them takes.

    Returns:
        Number of members, at least 1.

    Examples:
        >>> accelerator_width(2.0**20)
        1024
    """
    return max(1, int(ACCELERATOR_BYTES // size))


def core_share(count: int) -> int:
    """Members of a chunk where every core takes one; all elsewhere than on a CPU.

    Args:
        count: members of the ensemble.

    Returns:
        Number of members, at least 1.

    Examples:
        >>> core_share(1)
        1
    """
    return -(-count // available_cores()) if on_cpu() else count


def in_chunks(program: Callable[[Any], Out], batch: Any, width: int) -> Out:
    """Apply a compiled program to slices of a batch; the last slice repeats its last member.

    With several devices the members of a slice are shared out among all of them: a member is
    computed on one device, as it would be alone, so that results differ between numbers of devices
    by the rounding of products whose batches are of another size: by at most 1e-12 of the largest
    number in float64, on 1, 2 and 8 devices and in the ensembles of selection, softmax networks,
    leave-one-out and sparse majority (`tests/training/test_devices.py`).

    The program must not factorise batches of matrices (Cholesky, LU, eigenvalues): XLA's CPU pool
    locks for ever when two such programs run at once (jaxlib 0.10.2).

    Args:
        program: maps a batch of members to their results, along the leading axis.
        batch: tree of arrays with a leading axis.
        width: most members per chunk and device. Several chunks are of one size, and so many that
            no core waits for the last one.

    Returns:
        The results along the leading axis.

    Raises:
        UserError: if there is no member, or the width is below 1.

    Examples:
        >>> in_chunks(lambda a: 2 * a, np.arange(5), 2).tolist()
        [0, 2, 4, 6, 8]
    """
    whole = jax.tree.map(np.asarray, batch)
    count = jax.tree.leaves(whole)[0].shape[0]
    if count < 1 or width < 1:
        raise UserError(f"{count} trainings in chunks of {width}: both must be at least 1")
    devices = member_devices()
    spread = _spread(devices)
    # Two programs that both use all devices may wait for each other: those take turns.
    threads = available_cores() if len(devices) == 1 else 1
    width = _even_width(count, width * len(devices), threads, len(devices))

    # Settings made by a context manager hold for one thread alone: float64 would be lost.
    wide = jnp.result_type(float) == jnp.float64
    digits = jax.config.jax_default_matmul_precision  # pyright: ignore[reportAttributeAccessIssue]

    def members(number: int) -> Any:
        pick = np.minimum(np.arange(number * width, (number + 1) * width), count - 1)
        return jax.tree.map(lambda a: spread(a[pick]), whole)

    def chunk(number: int) -> Any:
        with jax.enable_x64(wide), jax.default_matmul_precision(digits):
            return jax.tree.map(np.asarray, program(members(number)))

    # All at once: a program of short loops runs within its call, and a first chunk begun here
    # would run alone. The one that comes first compiles, JAX lets the others wait for it.
    with ThreadPoolExecutor(threads) as pool:
        pieces = cached_pieces(
            (whole, width), -(-count // width), lambda some: pool.map(chunk, some),
            like=lambda: jax.eval_shape(program, members(0)),
        )  # fmt: skip
    return jax.tree.map(lambda *parts: on_device(np.concatenate(parts)[:count]), *pieces)


def _even_width(count: int, most: int, threads: int, devices: int) -> int:
    """Members of each chunk: at most `most`, a multiple of the devices."""
    chunks = -(-count // most)
    if chunks > 1:  # as many for each thread, if that can be
        chunks = min(count, -(-chunks // threads) * threads)
    return -(-count // (chunks * devices)) * devices


def member_devices() -> list[jax.Device]:
    """The devices among which members are shared out: all that this process sees.

    Returns:
        At least one device.

    Examples:
        >>> len(member_devices()) == jax.local_device_count()
        True
    """
    return jax.local_devices()


def _spread(devices: list[jax.Device]) -> Callable[[np.ndarray], Array]:
    """How a slice of the members comes to the devices."""
    if len(devices) == 1:
        return on_device
    shared = NamedSharding(Mesh(np.array(devices), ("members",)), PartitionSpec("members"))
    return lambda rows: jax.device_put(rows, shared)
