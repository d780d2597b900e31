r"""Long computations that resume: their state is kept by the clock, and they go on from it.

Whoever runs a computation names a keeper of states for it (`checkpointed`); the training loops ask
for a `Stage` each, in the order in which they run, and offer it their state after each piece of
work. Where a keeper has the state of a stage, the stage goes on from there: a pure computation
comes to the same trainings in the same order. Without a keeper nothing is kept and nothing is paid.
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
class Keeper(Protocol):
    """Where the states of a computation are kept."""

    def read(self, stage: int) -> Named | None:
        """The arrays of a stage, None where there are none that can be used."""
        ...

    def write(self, stage: int, arrays: Named) -> None:
        """Keep the arrays of a stage in place of earlier ones."""
        ...


class Checkpoints:
    """The stages of one computation, and when they are kept.

    Attributes:
        keeper: of the states.
        seconds: at least between two times at which something is kept.
        resumed: steps that were taken over from the keeper.
        made: steps that were made here.
    """

    def __init__(self, keeper: Keeper, seconds: float):
        self.keeper = keeper
        self.seconds = seconds
        self.resumed = 0
        self.made = 0
        self._stages = 0
        self._last = time.monotonic()
        self._ended: dict[int, Named] = {}

    def stage(self, origin: Any) -> "Stage":
        """The next stage.

        Args:
            origin: what it begins with, a tree of arrays: a kept state of another is not used.
        """
        self._stages += 1
        return Stage(self, self._stages - 1, tree_digest(origin))

    def offer(self, stage: int, state: Callable[[], Named], is_last: bool) -> None:
        """Keep the state of a stage if it is time; the last one of a stage waits for that time.

        Args:
            state: makes its arrays.
            is_last: whether the stage has ended.
        """
        if is_last:
            self._ended[stage] = state()
        if time.monotonic() - self._last < self.seconds:
            return
        for number, arrays in self._ended.items():
            self.keeper.write(number, arrays)
        self._ended.clear()
        if not is_last:
            self.keeper.write(stage, state())
        self._last = time.monotonic()


_CURRENT: ContextVar[Checkpoints | None] = ContextVar("checkpoints", default=None)


@contextlib.contextmanager
def checkpointed(keeper: Keeper, seconds: float) -> Iterator[Checkpoints]:
    """Let the trainings below, of this thread, keep their states and resume from them.

    Args:
        seconds: at least between two times at which something is kept.

    Yields:
        What was resumed and made.
    """
    checkpoints = Checkpoints(keeper, seconds)
    token = _CURRENT.set(checkpoints)
    try:
        yield checkpoints
    finally:
        _CURRENT.reset(token)


@contextlib.contextmanager
def not_kept() -> Iterator[None]:
    """Let the trainings below keep no states: what they are for is kept as a whole."""
    token = _CURRENT.set(None)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def is_kept() -> bool:
    """Whether what runs in this thread keeps states: pieces of it should then be short.

    Examples:
        >>> is_kept()
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
        """Steps that the next piece should have, so that states can be kept in time."""
        return self._size

    def kept(self) -> Named | None:
        """The arrays from which to go on.

        Returns:
            What was offered under this stage; None where it begins.
        """
        found = self._checkpoints.keeper.read(self._number)
        if found is None or str(found[ORIGIN]) != str(self._origin):
            return None
        self._made = int(found[MADE])
        self._checkpoints.resumed += self._made
        return found

    def offer(self, steps: int, state: Callable[[], Named], is_last: bool = False) -> None:
        """Say that a piece has ended, which keeps the state if it is time.

        Args:
            state: makes the arrays from which to go on.
            is_last: whether the stage has ended.
        """
        now = time.monotonic()
        took, self._began = now - self._began, now
        # From one step on pieces grow: a step takes microseconds here, and minutes there.
        if took < self._checkpoints.seconds / 8 and steps >= self._size:
            self._size *= 2
        elif took > self._checkpoints.seconds / 2:
            self._size = max(1, self._size // 2)
        self._made += steps
        self._checkpoints.made += steps
        made = {ORIGIN: self._origin, MADE: np.array(self._made)}
        self._checkpoints.offer(self._number, lambda: {**state(), **made}, is_last)
        self._began = time.monotonic()


def new_stage(origin: Any, given: Any = None) -> Stage | None:
    """The stage of a training that begins, None where no state is kept.

    Args:
        origin: what it begins with, a tree whose arrays tell it from other trainings.

    Returns:
        None also under a transformation of JAX, where there is no state at hand.

    Examples:
        >>> new_stage(jnp.zeros(3)) is None
        True
    """
    checkpoints = _CURRENT.get()
    if checkpoints is None or any(map(is_traced, jax.tree.leaves((origin, given)))):
        return None
    return checkpoints.stage(origin)


def tree_digest(tree: Any) -> str:
    """The sha256 of the arrays of a tree: types, shapes and content.

    Args:
        tree: of arrays and numbers; other leaves are left out.

    Returns:
        64 hexadecimal digits.

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
    """The arrays of a tree by name, for a keeper.

    Returns:
        Arrays by the name of the tree and their number.

    Examples:
        >>> named_leaves("w", {"a": jnp.zeros(2)})
        {'w.0': array([0., 0.])}
    """
    return {f"{name}.{k}": _plain(leaf) for k, leaf in enumerate(jax.tree.leaves(tree))}


def with_leaves(name: str, tree: Any, kept: Named) -> Any:
    """A tree with the arrays that `named_leaves` gave of one like it.

    Args:
        tree: like the one that was kept.
        kept: arrays by name.

    Returns:
        The tree; arrays of JAX where it has such, of NumPy elsewhere.

    Examples:
        >>> with_leaves("w", {"a": np.zeros(2)}, {"w.0": np.ones(2)})
        {'a': array([1., 1.])}
    """
    leaves, form = jax.tree.flatten(tree)
    found = [_like(leaf, kept[f"{name}.{k}"]) for k, leaf in enumerate(leaves)]
    return jax.tree.unflatten(form, found)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    # A copy: buffers on the host are written on, and arrays of JAX may share them.
    return np.array(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(leaf: Any, array: np.ndarray) -> Any:
    if _is_key(leaf):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=jax.random.key_impl(leaf))
    return jnp.asarray(array) if isinstance(leaf, jax.Array) else array
