r"""Long computations that resume: they store their state from time to time, and continue from it.

A process provides a store of states for a computation (`checkpointed`); the training loops create a
`Stage` each, in the order in which they run, and offer it their state after each piece of work.
Where the store has the state of a stage, it continues from there: a pure computation comes to the
same trainings in the same order. Without a store there are no states, and no cost.
"""

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import is_traced

Named = Mapping[str, np.ndarray]
ORIGIN = "origin"
"""Name of the digest of what a stage began with, among its arrays."""
MADE = "made"
"""Name of the number of steps that a stage has made, among its arrays."""


@runtime_checkable
class CheckpointStore(Protocol):
    """A store of the states of a computation."""

    def read(self, stage: int) -> Named | None:
        """The arrays of a stage, None where there are none that can be used."""
        ...

    def write(self, stage: int, arrays: Named) -> None:
        """Store the arrays of a stage instead of earlier ones."""
        ...


class Checkpoints:
    """The stages of one computation, and the times at which their states are stored.

    Attributes:
        seconds: least time between two writes.
        resumed: number of steps that were read from the store.
        made: number of steps that were computed here.
    """

    def __init__(self, store: CheckpointStore, seconds: float):
        self.store = store
        self.seconds = seconds
        self.resumed = 0
        self.made = 0
        self._stages = 0
        self._last = time.monotonic()
        self._ended: dict[int, Named] = {}

    def stage(self, origin: Any) -> "Stage":
        """The next stage; it uses a stored state only of an equal tree of arrays `origin`."""
        self._stages += 1
        return Stage(self, self._stages - 1, tree_digest(origin))

    def offer(self, stage: int, state: Callable[[], Named], is_last: bool) -> None:
        """Store the state of a stage if it is time; the last one of a stage waits for that time."""
        if is_last:
            self._ended[stage] = state()
        if time.monotonic() - self._last < self.seconds:
            return
        for number, arrays in self._ended.items():
            self.store.write(number, arrays)
        self._ended.clear()
        if not is_last:
            self.store.write(stage, state())
        self._last = time.monotonic()


_CURRENT: ContextVar[Checkpoints | None] = ContextVar("checkpoints", default=None)


@contextlib.contextmanager
def checkpointed(store: CheckpointStore, seconds: float) -> Iterator[Checkpoints]:
    """Let the trainings of this thread inside the block store their states and resume from them.

    Examples:
        >>> class Nowhere:
        ...     def read(self, stage):
        ...         return None
        ...     def write(self, stage, arrays):
        ...         pass
        >>> with checkpointed(Nowhere(), seconds=10.0):
        ...     is_checkpointed()
        True
    """
    checkpoints = Checkpoints(store, seconds)
    token = _CURRENT.set(checkpoints)
    try:
        yield checkpoints
    finally:
        _CURRENT.reset(token)


@contextlib.contextmanager
def without_checkpoints() -> Iterator[None]:
    """Let the trainings inside the block store no states: their result is stored as a whole.

    Examples:
        >>> with without_checkpoints():
        ...     is_checkpointed()
        False
    """
    token = _CURRENT.set(None)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def is_checkpointed() -> bool:
    """Whether computations in this thread store states: their pieces should then be short.

    Examples:
        >>> is_checkpointed()
        False
    """
    return _CURRENT.get() is not None


class Stage:
    """One training of a computation."""

    def __init__(self, checkpoints: Checkpoints, number: int, origin: str):
        self._checkpoints = checkpoints
        self._number = number
        self._origin = np.array(origin)
        self._began = time.monotonic()
        self._made = 0
        self._size = 1

    @property
    def size(self) -> int:
        """Number of steps of the next piece, so that states can be stored in time."""
        return self._size

    def restored(self) -> Named | None:
        """The stored arrays from which to continue; None where the stage begins."""
        arrays = self._checkpoints.store.read(self._number)
        if arrays is None or str(arrays[ORIGIN]) != str(self._origin):
            return None
        self._made = int(arrays[MADE])
        self._checkpoints.resumed += self._made
        return arrays

    def offer(self, steps: int, state: Callable[[], Named], is_last: bool = False) -> None:
        """Report a piece of `steps` that has ended, and store the state if it is time."""
        now = time.monotonic()
        took, self._began = now - self._began, now
        # From one step on pieces grow: a step takes microseconds here, and minutes there.
        if took < self._checkpoints.seconds / 8 and steps >= self._size:
            self._size *= 2
        elif took > self._checkpoints.seconds / 2:
            self._size = max(1, self._size // 2)
        self._made += steps
        self._checkpoints.made += steps
        progress = {ORIGIN: self._origin, MADE: np.array(self._made)}
        self._checkpoints.offer(self._number, lambda: {**state(), **progress}, is_last)
        self._began = time.monotonic()


def new_stage(origin: Any, inputs: Any = None) -> Stage | None:
    """The stage of a training that begins, None without a store or under a transformation of JAX.

    Args:
        origin: the start of the training, a tree whose arrays differ from those of other trainings.
        inputs: further arrays of the training, which may be traced.

    Examples:
        >>> new_stage(jnp.zeros(3)) is None
        True
    """
    checkpoints = _CURRENT.get()
    if checkpoints is None or any(map(is_traced, jax.tree.leaves((origin, inputs)))):
        return None
    return checkpoints.stage(origin)


def tree_digest(tree: Any) -> str:
    """The sha256 of the arrays and numbers of a tree: types, shapes and content, as 64 digits.

    Examples:
        >>> tree_digest([jnp.zeros(2)]) == tree_digest([jnp.zeros(2), "name"])
        True
        >>> tree_digest(jnp.zeros(2)) == tree_digest(jnp.zeros((2, 1)))
        False
    """
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float):
            array = _plain(leaf)
            digest.update(f"{array.dtype} {array.shape} ".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def named_leaves(name: str, tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree as `<name>.<number>`, for a store.

    Examples:
        >>> named_leaves("w", {"a": jnp.zeros(2)})
        {'w.0': array([0., 0.])}
    """
    return {f"{name}.{k}": _plain(leaf) for k, leaf in enumerate(jax.tree.leaves(tree))}


def with_leaves(name: str, tree: Any, arrays: Named) -> Any:
    """A tree of the same structure with the arrays of `named_leaves`, of JAX where it has such.

    Examples:
        >>> with_leaves("w", {"a": np.zeros(2)}, {"w.0": np.ones(2)})
        {'a': array([1., 1.])}
    """
    leaves, form = jax.tree.flatten(tree)
    restored = [_like(leaf, arrays[f"{name}.{k}"]) for k, leaf in enumerate(leaves)]
    return jax.tree.unflatten(form, restored)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    # A copy: buffers on the host are written on, and arrays of JAX may share them.
    return np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(leaf: Any, array: np.ndarray) -> Any:
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
    return jnp.asarray(array) if isinstance(leaf, jax.Array) else array
