"""A model's tensors by name, in one floating type, read on access."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from attlas._files.plain_file import printable
from attlas.core.arrays import working_dtype
from attlas.core.errors import UserError
from attlas.transformers.safetensors_file import SafetensorsFile


@dataclass(frozen=True)
class Unread:
    """A tensor that can be read.

    Attributes:
        shape: of its axes.
        dtype: of its numbers where they are.
        where: what a message calls the place.
        read: gives the numbers, converted to a type.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    where: str
    read: Callable[[np.dtype], np.ndarray]


class LazyTensors(Mapping[str, np.ndarray]):
    """Tensors by name; each access reads anew, so that one tensor at a time is in memory.

    Floating numbers come in the working type, whole ones as they are. Numbers that are NaN or
    infinite are refused where they are read, by the tensor's name.

    Args:
        dtype: the working type; None for the widest of the tensors', at least float32.

    Examples:
        >>> half = Unread((2,), np.dtype("f2"), "memory", lambda dtype: np.ones(2, dtype))
        >>> tensors = LazyTensors({"W": half})
        >>> tensors["W"].dtype.name, tensors.shapes, tensors.parameters
        ('float32', {'W': (2,)}, 2)
    """

    def __init__(self, tensors: Mapping[str, Unread], dtype: np.dtype | None = None):
        self._tensors = dict(tensors)
        floating = {tensor.dtype for tensor in self._tensors.values() if _is_floating(tensor.dtype)}
        widest = working_dtype(np.dtype("f4"), *sorted(floating, key=str))
        self.dtype = widest if dtype is None else dtype
        """The working type."""

    def __getitem__(self, name: str) -> np.ndarray:
        unread = self._tensors[name]
        if not _is_floating(unread.dtype):
            return unread.read(unread.dtype)
        values = unread.read(self.dtype)
        # The least and the largest number are NaN where one is; nothing of their size is made.
        if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
            bad = int((~np.isfinite(values)).sum())
            raise UserError(
                f"{unread.where}: tensor '{printable(name)}' has {bad} entries that are NaN or "
                f"infinite as {self.dtype}: the model diverged or the file was damaged"
            )
        return values

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"LazyTensors({len(self)} tensors, {self.parameters} numbers, {self.dtype})"

    def with_copy(self, name: str, of: str) -> "LazyTensors":
        """The same tensors, one of which is there under another name too."""
        return LazyTensors({**self._tensors, name: self._tensors[of]}, self.dtype)

    def with_change(
        self, name: str, shape: tuple[int, ...], change: Callable[[np.ndarray], np.ndarray]
    ) -> "LazyTensors":
        """The same tensors, one of which is changed, to a shape, when it is read."""
        before = self._tensors[name]
        after = replace(before, shape=shape, read=lambda dtype: change(before.read(dtype)))
        return LazyTensors({**self._tensors, name: after}, self.dtype)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each tensor; nothing is read."""
        return {name: tensor.shape for name, tensor in self._tensors.items()}

    @property
    def parameters(self) -> int:
        """Number of floating numbers of all tensors; nothing is read."""
        return sum(math.prod(t.shape) for t in self._tensors.values() if _is_floating(t.dtype))


def tensors_of_files(files: Iterable[SafetensorsFile]) -> dict[str, Unread]:
    """The tensors of some files, none of which names a tensor of another.

    Raises:
        UserError: if two files hold tensors of one name.
    """
    tensors: dict[str, Unread] = {}
    for file in files:
        where = printable(str(file.path))
        for name, place in file.tensors.items():
            if name in tensors:
                raise UserError(
                    f"{where} holds tensor '{printable(name)}', and so does {tensors[name].where}: "
                    "keep one of them"
                )
            tensors[name] = Unread(place.shape, place.dtype, where, _reader(file, name))
    return tensors


def _reader(file: SafetensorsFile, name: str) -> Callable[[np.dtype], np.ndarray]:
    return lambda dtype: file.read(name, dtype)


def _is_floating(dtype: np.dtype) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.floating))
