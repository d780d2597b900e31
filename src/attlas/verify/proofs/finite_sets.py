r"""The finite set of instances that the draws of a sampler declare.

Arrays of whole numbers declare all arrays of their shape with the values that occur in them, or all
orders of an array that is drawn as nothing else. Sides that do not depend on the order along the
axis that all these arrays share need each multiset of columns once. A claim that enumerates whole
numbers lists its instances itself, the same at each seed.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.symmetry import is_symmetric
from attlas.verify.proofs.witnesses import digest_of

MOST_INSTANCES = 100_000
_MOST_VALUES = 16
Batch = Mapping[str, np.ndarray]


class NoFiniteSetError(NotProvedError):
    """A statement is not about a finite set at all."""


@dataclass(frozen=True)
class FiniteSet:
    """Instances that can be counted.

    Attributes:
        values: of each array that varies, the values of its entries.
        orders: arrays whose entries are these values once each, in any order.
        shapes: of the arrays that vary.
        fixed: the other arrays.
        symmetric: whether instances that differ in the order of their first axis count once.
        listed: the instances themselves, where the sampler lists them.
    """

    values: Mapping[str, np.ndarray]
    orders: frozenset[str]
    shapes: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, np.ndarray]
    symmetric: bool = False
    listed: Batch | None = None

    def count(self) -> int:
        """How many instances there are."""
        if self.listed is not None:
            return len(next(iter(self.listed.values())))
        if self.symmetric:
            size = next(iter(self.shapes.values()))[0]
            return math.comb(math.prod(map(len, self.values.values())) + size - 1, size)
        return math.prod(
            math.factorial(len(v))
            if name in self.orders
            else len(v) ** math.prod(self.shapes[name])
            for name, v in self.values.items()
        )

    def batches(self, size: int) -> Iterator[dict[str, np.ndarray]]:
        """All instances, so many at once; the last one is repeated to fill the last batch."""
        if self.listed is not None:
            count = self.count()
            for start in range(0, count, size):
                rows = np.minimum(np.arange(start, start + size), count - 1)
                yield {name: array[rows] for name, array in self.listed.items()}
            return
        rows = self._columns() if self.symmetric else self._products()
        fixed = {name: np.repeat(array[None], size, axis=0) for name, array in self.fixed.items()}
        while chunk := list(itertools.islice(rows, size)):
            chunk += [chunk[-1]] * (size - len(chunk))
            varying = zip(self.values, zip(*chunk, strict=True), strict=True)
            yield fixed | {
                name: np.array(column).reshape(size, *self.shapes[name]) for name, column in varying
            }

    def _products(self) -> Iterator[tuple[tuple[float, ...], ...]]:
        entries = [
            itertools.permutations(v.tolist())
            if name in self.orders
            else itertools.product(v.tolist(), repeat=math.prod(self.shapes[name]))
            for name, v in self.values.items()
        ]
        return itertools.product(*entries)

    def _columns(self) -> Iterator[tuple[tuple[float, ...], ...]]:
        columns = itertools.product(*(v.tolist() for v in self.values.values()))
        size = next(iter(self.shapes.values()))[0]
        multisets = itertools.combinations_with_replacement(list(columns), size)
        return (tuple(zip(*multiset, strict=True)) for multiset in multisets)

    def contains(self, batch: Batch) -> bool:
        """Whether all instances of a batch lie in the set."""
        if self.listed is not None:
            mine = {_bytes(self.listed, k) for k in range(self.count())}
            count = len(next(iter(batch.values())))
            return all(_bytes({n: batch[n] for n in self.listed}, k) in mine for k in range(count))
        return all(
            batch[name].shape[1:] == self.shapes[name]
            and np.isin(batch[name], v).all()
            and (name not in self.orders or (np.sort(batch[name], axis=1) == v).all())
            for name, v in self.values.items()
        ) and all(np.array_equal(batch[name], np.broadcast_to(array, batch[name].shape))
                  for name, array in self.fixed.items())  # fmt: skip

    def sentence(self) -> str:
        """The set in words.

        Examples:
            >>> bits = FiniteSet({"u": np.array([0, 1])}, frozenset(), {"u": (3,)}, {})
            >>> bits.sentence()
            'for all u of shape (3,) with entries among 0, 1: 8 instances'
        """
        if self.listed is not None:
            return f"for each of the {self.count()} instances that its sampler lists at every seed"
        words = []
        for name, v in self.values.items():
            values = f"{v[0]:g}, {v[1]:g}, ..., {v[-1]:g}" if len(v) > 4 else _listed(v)
            shape = f" of shape {self.shapes[name]}" if self.shapes[name] else ""
            if name in self.orders:
                words.append(f"orders {name} of {values}")
            else:
                words.append(f"{name}{shape} with entries among {values}")
        order = " up to the order of their entries, on which the sides do not depend"
        more = order if self.symmetric else ""
        return f"for all {' and '.join(words)}: {self.count()} instances{more}"

    def document(self) -> dict[str, Any]:
        """What a certificate keeps."""
        return {
            "entries": {name: v.tolist() for name, v in self.values.items()},
            "orders": sorted(self.orders),
            "symmetric": self.symmetric,
            "instances": self.count(),
            "listed": digest_of(self.listed) if self.listed is not None else "",
        }


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{v:g}" for v in values.tolist())


def _bytes(batch: Batch, k: int) -> bytes:
    return b"|".join(np.asarray(batch[name][k] + 0.0).tobytes() for name in sorted(batch))


def finite_set(
    batch: Batch, program: Callable[[], Any], others: Sequence[Batch], enumerates: bool
) -> FiniteSet:
    """The set that contains the draws of a batch.

    Args:
        batch: the arrays that sides and assumptions read, with a leading axis.
        program: gives the sides and assumptions as a closed program of these arrays, by name.
        others: draws at other seeds.
        enumerates: whether the claim says that its sampler lists all instances. Real numbers that
            it computes, such as a radius on a grid, are no proof of anything.

    Raises:
        NotProvedError: if it is too large; `NoFiniteSetError` if there is none.
    """
    whole = all(np.array_equal(array, np.rint(array)) for array in batch.values())
    same = all(np.array_equal(draw[name], batch[name]) for draw in others for name in batch)
    if enumerates and whole and same:
        return FiniteSet({}, frozenset(), {}, {}, listed=batch)
    varying = {name: v for name, v in batch.items() if (v != v[:1]).any()}
    for name, array in varying.items():
        if not np.array_equal(array, np.rint(array)):
            raise NoFiniteSetError(f"'{name}' has other numbers than whole ones")
    values = {name: np.unique(array) for name, array in varying.items()}
    if large := [name for name, v in values.items() if len(v) > _MOST_VALUES]:
        raise NotProvedError(f"'{large[0]}' has more than {_MOST_VALUES} values")
    orders = frozenset(
        name for name, v in values.items()
        if varying[name].shape[1:] == (len(v),) and (np.sort(varying[name], axis=1) == v).all()
    )  # fmt: skip
    shapes = {name: array.shape[1:] for name, array in varying.items()}
    fixed = {name: array[0] for name, array in batch.items() if name not in varying}
    where = FiniteSet(values, orders, shapes, fixed)
    if where.count() > MOST_INSTANCES and len(set(shapes.values())) == 1 and not orders:
        places = [0 if name in varying else None for name in sorted(batch)]
        if len(next(iter(shapes.values()))) == 1 and is_symmetric(program(), places):
            where = FiniteSet(values, orders, shapes, fixed, symmetric=True)
    if where.count() > MOST_INSTANCES:
        raise NotProvedError(f"its whole numbers give more than {MOST_INSTANCES} instances")
    return where
