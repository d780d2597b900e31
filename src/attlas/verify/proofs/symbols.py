r"""The arrays of a claim as symbols: positive, negative or real ones, and numbers that never vary.

What its sampler draws declares the domain: an array of positive numbers becomes positive symbols,
an entry that is the same number in every instance is that number, and an array of integers or
truth values stays what was drawn. The sentence of the proof says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas.verify.proofs.elements import Atom, NotProvedError
from attlas.verify.proofs.exact_rules import Exact
from attlas.verify.proofs.nodes import Node
from attlas.verify.proofs.parametrisations import (
    DEFINITE,
    TURNED,
    Parametrisation,
    parametrisations,
)
from attlas.verify.proofs.rotations import turned

_DRAWS = 16
"""Draws in all of which entries must agree to count as always equal."""
_MOST_VALUES = 16
"""Different values of the arrays that stay numbers, for each of which a claim is proved."""


@dataclass(frozen=True)
class Domain:
    """Where a claim is proved.

    Attributes:
        signs: of each array of symbols: 1 if positive, -1 if negative, 0 if real.
        shapes: of each array of symbols.
        fixed: entries of these arrays that never vary, by name; NaN elsewhere.
        values: the values of the arrays that stay numbers.
        links: entries that are always equal or opposite to another one, by name, with the array
            and place of that one and the sign.
        sets: of each array whose entries are functions of free numbers, the set in which it lies.
        closed: whether what is proved inside of these sets holds on their boundary.
    """

    signs: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, np.ndarray]
    values: tuple[Mapping[str, Any], ...]
    links: Mapping[str, tuple[str, tuple[int, ...], int]] = field(default_factory=dict)
    sets: Mapping[str, Parametrisation] = field(default_factory=dict)
    closed: bool = False

    def sentence(self, everywhere: bool) -> str:
        """The domain in words.

        Args:
            everywhere: whether nothing is excluded but where a side is not defined.
        """
        words = {1: "positive", -1: "negative", 0: "real"}
        groups = []
        for sign, word in words.items():
            names = [
                f"{name} of shape {self.shapes[name]}" if self.shapes[name] else name
                for name in sorted(self.signs)
                if self.signs[name] == sign and name not in self.sets
            ]
            if names:
                groups.append(f"{word} {', '.join(names)}")
        begin = "for all " if everywhere else "for almost all "
        parts = [begin + " and ".join(groups)] if groups else []
        if self.sets:
            sets = " and ".join(
                where.words(name, self.shapes[name], self.closed)
                for name, where in sorted(self.sets.items())
            )
            almost = "" if everywhere or groups else "almost "
            parts = [f"{parts[0]} and {sets}" if parts else f"for {almost}{sets}"]
        constants = sorted(name for name, v in self.fixed.items() if np.isfinite(v).any())
        if constants:
            parts.append(f"with the entries of {', '.join(constants)} that never vary as drawn")
        if self.links:
            parts.append("with entries equal or opposite where they always are so as drawn")
        numbers = sorted(self.values[0]) if self.values else []
        if numbers:
            count = "each of the {} values" if len(self.values) > 1 else "the value"
            text = count.format(len(self.values))
            parts.append(f"for {text} of {', '.join(numbers)} that the sampler draws")
        return ", ".join([*parts, "where both sides are defined"])

    def document(self) -> dict[str, Any]:
        """The domain as plain JSON."""
        sets = {name: where.document() for name, where in sorted(self.sets.items())}
        return {
            **({"sets": sets} if sets else {}),
            "signs": dict(self.signs),
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
            "fixed": {
                name: [None if np.isnan(v) else float(v) for v in array.ravel()]
                for name, array in self.fixed.items()
                if np.isfinite(array).any()
            },
            "links": {
                label: ("-" if sign < 0 else "") + entry_name(name, place)
                for label, (name, place, sign) in self.links.items()
            },
            "values": [
                {name: np.asarray(value).tolist() for name, value in row.items()}
                for row in self.values
            ],
        }

    def symbols(self, exact: Exact, values: Mapping[str, Any]) -> dict[str, Any]:
        """An instance of symbols, positive or negative ones where a case says so.

        Args:
            values: the arrays that stay numbers.
        """
        instance: dict[str, Any] = dict(values)
        for name, shape in self.shapes.items():
            if name in self.sets:
                instance[name] = self._in_set(exact, name)
                continue
            array = np.empty(shape, dtype=object)
            for place in np.ndindex(shape):
                constant = self.fixed[name][place]
                array[place] = (
                    self._symbol(exact, name, place) if np.isnan(constant) else exact.real(constant)
                )
            instance[name] = array
        return instance

    def _symbol(self, exact: Exact, name: str, place: tuple[int, ...]) -> Node:
        label = entry_name(name, place)
        if label in self.links:
            name, place, link = self.links[label]
            size = self._symbol(exact, name, place)
            return -size if link < 0 else size
        return self._free(exact, label, self.signs[name])

    def _in_set(self, exact: Exact, name: str) -> np.ndarray:
        """An array of a set, by symbols for its free numbers."""
        return self.sets[name].entries(
            self.shapes[name],
            lambda place, positive: self._free(exact, entry_name(name, place), int(positive)),
            exact.functions.power,
            Fraction(1, 2),
            exact.real,
        )

    @staticmethod
    def _free(exact: Exact, label: str, sign: int) -> Node:
        decided = exact.functions.signs.get(label, 0)
        sign = sign or decided
        size = Node.of(exact.field.symbol(Atom(f"|{label}|" if sign else label, bool(sign))))
        if decided:
            exact.functions.excluded[label] = size.expanded()
        return -size if sign < 0 else size

    def numbers(self, instance: Mapping[str, Any]) -> dict[str, float] | None:
        """The numbers for which symbols stand, by name; None where a set is left."""
        numbers: dict[str, float] = {}
        vectors = sorted((where.row, name) for name, where in self.sets.items()
                         if where.kind == TURNED)  # fmt: skip
        if vectors:
            arrays = {name: np.asarray(instance[name]) for _, name in vectors}
            instance = {**instance, **turned(arrays)}
        for name in self.signs:
            array = np.asarray(instance[name])
            if name not in self.sets:
                numbers |= {entry_name(name, p): float(array[p]) for p in np.ndindex(array.shape)}
                continue
            free = self.sets[name].parameters(array, self.closed)
            if free is None:
                return None
            numbers |= {entry_name(name, place): value for place, value in free.items()}
        return numbers


def entry_name(name: str, place: tuple[int, ...]) -> str:
    """The name of an entry of an array.

    Examples:
        >>> entry_name("x", (0, 2)), entry_name("t", ())
        ('x[0,2]', 't')
    """
    return f"{name}[{','.join(map(str, place))}]" if place else name


def domain_of(
    batch: Mapping[str, Any],
    read: set[str],
    discrete: bool,
    wide: Mapping[str, Any] | None = None,
    digits: int = 1,
) -> Domain:
    """The domain that the draws of a batch declare.

    Args:
        read: arrays that the sides read.
        discrete: whether arrays of few different values stay numbers.
        wide: draws in which distributions, intervals, definite matrices and unit vectors are
            recognised; None for signs alone.
        digits: digits of the ends of intervals, in units of their width.

    Raises:
        NotProvedError: if arrays that stay numbers have too many different values.
    """
    arrays = {
        name: np.asarray(value)
        for name, value in batch.items()
        if name in read and hasattr(value, "dtype") and value.dtype.kind in "biuf"
    }
    if strange := sorted(read - arrays.keys()):
        raise NotProvedError(f"'{strange[0]}' is no array of numbers")
    few = [name for name, v in arrays.items() if v.dtype.kind != "f" or (discrete and _is_few(v))]
    signs, shapes, fixed = {}, {}, {}
    for name in sorted(arrays.keys() - few):
        array = arrays[name]
        signs[name] = 1 if (array > 0).all() else -1 if (array < 0).all() else 0
        shapes[name] = array.shape[1:]
        same = (array == array[:1]).all(axis=0)
        fixed[name] = np.where(same, array[0], np.nan)
    floats = {name: arrays[name] for name in signs}
    links = linked({name: v for name, v in floats.items() if len(v) >= _DRAWS}, fixed)
    recognised_sets: dict[str, Parametrisation] = {}
    if wide is not None:
        recognised_sets = _sets(
            {name: np.asarray(wide[name]) for name in signs}, fixed, links, digits
        )
    links = {label: link for label, link in links.items() if link[0] not in recognised_sets}
    return Domain(signs, shapes, fixed, _values(arrays, few), links, recognised_sets)


def _sets(
    arrays: Mapping[str, np.ndarray],
    fixed: Mapping[str, np.ndarray],
    links: Mapping[str, tuple[str, tuple[int, ...], int]],
    digits: int,
) -> dict[str, Parametrisation]:
    """The sets of arrays without constants, that are not tied to entries of others."""
    free = {name: v for name, v in arrays.items() if np.isnan(fixed[name]).all()}
    recognised_sets = parametrisations(free, digits)
    for label, (name, _, _) in links.items():
        array = label.partition("[")[0]
        if array != name or (array in recognised_sets and recognised_sets[array].kind != DEFINITE):
            recognised_sets.pop(array, None)
            recognised_sets.pop(name, None)
    return recognised_sets


def linked(
    arrays: Mapping[str, np.ndarray], fixed: Mapping[str, np.ndarray]
) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """The entries that have the same numbers as an earlier one in all draws, up to one sign.

    Args:
        arrays: draws by name, with a leading axis.
        fixed: entries that are numbers and no symbols, by name; NaN elsewhere.

    Returns:
        By the name of an entry, the array and the place of the earlier one, and the sign.

    Examples:
        >>> linked({"x": np.array([[1.5, -1.5]])}, {"x": np.full(2, np.nan)})
        {'x[1]': ('x', (0,), -1)}
    """
    first: dict[bytes, tuple[str, tuple[int, ...], float]] = {}
    links = {}
    for name, array in arrays.items():
        for place in np.ndindex(array.shape[1:]):
            column = array[(slice(None), *place)]
            nonzero = column[column != 0]
            if not np.isnan(fixed[name][place]) or not len(nonzero):
                continue
            sign = float(np.sign(nonzero[0]))
            key = (column * sign + 0.0).tobytes()
            if key not in first:
                first[key] = name, place, sign
                continue
            other, at, its = first[key]
            links[entry_name(name, place)] = other, at, 1 if sign == its else -1
    return links


def _is_few(array: np.ndarray) -> bool:
    return len(np.unique(array.reshape(len(array), -1), axis=0)) <= _MOST_VALUES


def _values(arrays: Mapping[str, np.ndarray], few: list[str]) -> tuple[Mapping[str, Any], ...]:
    if not few:
        return ({},)
    rows: dict[bytes, Mapping[str, Any]] = {}
    for k in range(len(arrays[few[0]])):
        row = {name: arrays[name][k] for name in few}
        rows.setdefault(b"".join(np.asarray(v).tobytes() for v in row.values()), row)
    if len(rows) > _MOST_VALUES:
        raise NotProvedError(f"{', '.join(sorted(few))} have more than {_MOST_VALUES} values")
    return tuple({name: jnp.asarray(v) for name, v in row.items()} for row in rows.values())
