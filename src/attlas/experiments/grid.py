"""A grid: the cells of an experiment at four scales, as data that a user can change."""

import difflib
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from attlas.core.errors import UserError
from attlas.data.sources import as_if_present
from attlas.experiments.cell import DTYPES, Cell, Scale
from attlas.experiments.packed import canonical_json
from attlas.experiments.settings import KINDS, Settings, checked

LAYOUT = ("members", "block", "seed", "dtype")
"""Settings that every grid may have; they say how cells are laid out."""

Values = Mapping[str, Any]
Work = Callable[[Settings], float]
"""How the operations of a cell grow with its settings, up to a factor."""


class Hashed(Protocol):
    """A real data set, whose content is part of the key of what is computed from it."""

    @property
    def data_hash(self) -> str:
        """Hash of the parsed content."""
        ...


@dataclass(frozen=True)
class Grid:
    """The product of some axes, with the settings that all of its cells share.

    A value may be a function of the settings before it, and is recomputed when they change.
    Four settings lay out the cells: `members`, the number of independent repetitions; `block`,
    how many of them one cell computes (by default all); `seed`, the number of the first; `dtype`.

    Attributes:
        each: values of each axis. An axis of lists (sizes computed together) has one cell per list.
        smoke: axes and settings that differ at the smallest scale; a function if they depend on
            which data are present.
        small: axes and settings that differ at the largest scale that two cores compute in about an
            hour, where the paper's own takes far longer; None where it does not.
        paper: axes and settings that differ at the paper's own scale; if the paper has none, at the
            largest that two cores compute in about an hour.
        where: predicate that selects combinations as cells; all when None.
        data: the real data set that a cell reads, None for generated data.
        choices: further names that a setting may take.
        work: operations of a cell as a function of its settings, up to a factor; by default the
            product of its whole numbers. Estimates of cost use it.

    Examples:
        >>> grid = Grid(each={"p": [1.75, 2.0]}, fixed={"steps": lambda s: int(100 * s.p)},
        ...             smoke={"members": 4}, quick={"members": 20}, paper={"members": 100})
        >>> [cell.label for cell in grid.cells("smoke")]
        ['members=4 p=1.75 steps=175 seed=0', 'members=4 p=2.0 steps=200 seed=0']
        >>> [cell.label for cell in grid.changed({"p": ["3"], "block": ["2"]}).cells("smoke")]
        ['members=2 p=3.0 steps=300 seed=0', 'members=2 p=3.0 steps=300 seed=2']
    """

    each: Values = field(default_factory=dict)
    fixed: Values = field(default_factory=dict)
    smoke: Values | Callable[[], Values] = field(default_factory=dict)
    quick: Values | Callable[[], Values] = field(default_factory=dict)
    small: Values | Callable[[], Values] | None = None
    paper: Values | Callable[[], Values] = field(default_factory=dict)
    where: Callable[[Settings], bool] | None = None
    data: Callable[[Settings], Hashed | None] | None = None
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    work: Work | None = None
    changes: Values = field(default_factory=dict)

    def cells(self, scale: Scale | str) -> tuple[Cell, ...]:
        """The cells of a scale, the last axis running fastest.

        Raises:
            UserError: if the grid is empty.
        """
        axes, shared = self._declared(Scale(scale))
        cells = []
        for point in itertools.product(*axes.values()):
            values = dict(zip(axes, point, strict=True))
            values |= {name: value for name, value in shared.items() if not callable(value)}
            for name, value in shared.items():
                if callable(value):
                    values[name] = value(Settings(values))
            if self.where is None or self.where(Settings(values)):
                cells += self._blocks(values)
        if not cells:
            raise UserError(f"the {scale} grid has no cell: {', '.join(self.changes) or 'where='}")
        return tuple(cells)

    def layouts(self, scale: Scale | str) -> Iterator[tuple[Cell, ...]]:
        """The cells with the data sets present here, then those with all data sets, if different.

        So published records on real data count even if the data are absent.
        """
        yield (present := self.cells(scale))
        with as_if_present():
            elsewhere = self.cells(scale)
        if elsewhere != present:
            yield elsewhere

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes, including those that `changed` introduced."""
        swept = (name for name, value in self.changes.items() if isinstance(value, _Swept))
        return tuple(dict.fromkeys([*self.each, *swept]))

    @property
    def largest_first(self) -> tuple[Scale, ...]:
        """The scales that differ, from the largest to the smallest."""
        small = () if self.small is None else (Scale.SMALL,)
        return (Scale.PAPER, *small, Scale.QUICK, Scale.SMOKE)

    def changed(self, values: Mapping[str, Any], of: str = "this experiment") -> "Grid":
        """The grid with other values of some settings, at every scale.

        Several values for a setting that had one become an axis.

        Args:
            values: texts or values by name, single or in a list.
            of: name of the experiment, for messages.

        Raises:
            UserError: if a setting is unknown, or a value is not of its type.

        Examples:
            >>> Grid(each={"start": ["zero", "gaussian"]}).changed({"strat": "zero"}, of="toy")
            Traceback (most recent call last):
                ...
            attlas.core.errors.UserError: toy has no setting 'strat': did you mean start (zero, ...
        """
        if not values:
            return self
        declared = self.settings_values()
        new = dict(self.changes)
        for name, value in values.items():
            if name not in declared:
                raise UserError(self._unknown(name, of))
            items = list(value) if isinstance(value, list | tuple) else [value]
            if not items:
                raise UserError(f"setting {name} is empty: name at least one value")
            new[name] = self._value(name, items, declared[name])
        return replace(self, changes=new)

    def settings_values(self) -> dict[str, list[Any]]:
        """All values of each setting at any scale, the axes' first; functions are evaluated."""
        values_of: dict[str, list[Any]] = {name: list(values) for name, values in self.each.items()}
        # Hashed: comparing each value with all others would be quadratic.
        met = {name: set(map(_hashed, values)) for name, values in self.each.items()}
        for scale in Scale:
            for cell in replace(self, changes={}).cells(scale):
                for name, value in cell.settings.items():
                    if _hashed(value) not in met.setdefault(name, set()):
                        met[name].add(_hashed(value))
                        values_of.setdefault(name, []).append(value)
        if "members" in values_of:
            values_of.setdefault("block", list(values_of["members"]))
        return {**values_of, "seed": [0], "dtype": list(DTYPES)}

    def _declared(self, scale: Scale) -> tuple[dict[str, list[Any]], dict[str, Any]]:
        """Axes and shared settings of a scale."""
        scale_values = {
            Scale.SMOKE: self.smoke,
            Scale.QUICK: self.quick,
            Scale.SMALL: self.paper if self.small is None else self.small,
            Scale.PAPER: self.paper,
        }[scale]
        overrides = scale_values() if callable(scale_values) else scale_values
        settings = {**self.each, **self.fixed, **overrides, **self.changes}
        axes = {name: list(settings[name]) for name in settings if name in self.axes}
        return axes, {n: v for n, v in settings.items() if n not in axes}

    def _blocks(self, values: dict[str, Any]) -> list[Cell]:
        settings = dict(values)
        data = self.data(Settings(values)) if self.data else None
        digest = data.data_hash if data else ""
        seed, dtype = settings.pop("seed", 0), settings.pop("dtype", "float64")
        block = settings.pop("block", None)
        if "members" not in settings:
            return [Cell(settings, seed, dtype, digest)]
        members = settings.pop("members")
        size = members if block is None else block
        if members < 1 or size < 1:
            raise UserError(f"members = {members}, block = {size}: choose at least 1")
        return [
            Cell({**settings, "members": min(size, members - k)}, seed + k, dtype, digest)
            for k in range(0, members, size)
        ]

    def _value(self, name: str, items: list[Any], declared: list[Any]) -> Any:
        """The value of a changed setting: a list for an axis, one value or a list elsewhere."""
        like = declared[0]
        names = list(dict.fromkeys([*_names(declared), *self.choices.get(name, ())]))
        if isinstance(like, list | tuple):
            checked_list = checked(name, items, like, names)
            return [checked_list] if name in self.each else checked_list
        items = _rejoined_names(items, names)
        checked_values = [checked(name, item, like, names) for item in items]
        if name in ("members", "block") and min(checked_values) < 1:
            raise UserError(f"{name} = {min(checked_values)}: choose at least 1")
        if name in self.each:
            return checked_values
        if len(checked_values) == 1:
            return checked_values[0]
        if name in LAYOUT:
            raise UserError(f"setting {name} takes one value, not {len(checked_values)}")
        return _Swept(checked_values)

    def _unknown(self, name: str, of: str) -> str:
        declared = self.settings_values()
        near = difflib.get_close_matches(name, declared, n=3, cutoff=0.5)
        descriptions = [f"{n} ({_allowed(declared[n])})" for n in near or declared]
        if near:
            return f"{of} has no setting '{name}': did you mean {' or '.join(descriptions)}?"
        return f"{of} has no setting '{name}', but {', '.join(descriptions)}"


class _Swept(list):
    """Values of a setting that became an axis."""


def _hashed(value: Any) -> Hashable:
    """A hashable form of a setting's value; lists are not hashable themselves."""
    return canonical_json(value) if isinstance(value, list | tuple | dict) else value


def _names(values: Any) -> list[str]:
    """All texts in values that may be lists."""
    if isinstance(values, list | tuple):
        return [name for value in values for name in _names(value)]
    return [values] if isinstance(values, str) else []


def _rejoined_names(items: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The items, with names rejoined that were split at a comma inside them."""
    joined, remaining = [], list(items)
    # Splitting removed spaces around commas.
    by_split = {",".join(part.strip() for part in name.split(",")): name for name in names}
    while remaining:
        lengths = range(len(remaining), 1, -1)
        size = next((k for k in lengths if ",".join(map(str, remaining[:k])) in by_split), 1)
        joined.append(remaining[0] if size == 1 else by_split[",".join(map(str, remaining[:size]))])
        remaining = remaining[size:]
    return joined


def _allowed(values: Sequence[Any]) -> str:
    """The values that a setting takes, in a few words."""
    item = values[0]
    if _names(values):
        return ", ".join(dict.fromkeys(_names(values)))
    while isinstance(item, list | tuple):
        item = item[0]
    kind = next(kind for kind in KINDS if isinstance(item, kind))
    return f"{KINDS[kind]}, such as {_text(values[0])}"


def _text(value: Any) -> str:
    return ",".join(map(_text, value)) if isinstance(value, list | tuple) else f"{value}"
