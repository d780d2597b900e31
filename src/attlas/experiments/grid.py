"""A grid: the cells of an experiment at three scales, as data that a user can change."""

import difflib
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from attlas.core.errors import UserError
from attlas.data.sources import as_if_present
from attlas.experiments.cell import DTYPES, Cell, Scale, canonical_json
from attlas.experiments.settings import KINDS, Settings, checked

LAYOUT = ("members", "block", "seed", "dtype")
"""Settings every grid may have: how cells are laid out; any experiment knows them."""

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

    A value may be a function of the settings named before it: it follows them when they change.
    Four settings lay out the cells: `members`, the number of independent repetitions; `block`,
    how many of them one cell computes (all, unless said otherwise); `seed`, the number of the
    first; `dtype`.

    Attributes:
        each: the values of each axis. An axis of lists (sizes that are computed together) has
            one cell for each list, and is an axis of the data set only as the results name it.
        fixed: settings of all cells.
        smoke: what differs at the smallest scale, axes and settings alike; or a function that
            says so when cells are laid out, where it depends on the data that are there.
        quick: what differs at the middle scale.
        paper: what differs at the paper's own scale; where the paper has none, at the largest that
            two cores compute in about an hour.
        where: which combinations are cells; all of them when None.
        data: the real data set that a cell reads, None for generated data.
        choices: names that a setting may have besides those that stand in the grid.
        work: how the operations of a cell grow with its settings, up to a factor; an estimate of
            cost takes the product of all whole numbers where this is not said.

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
    paper: Values | Callable[[], Values] = field(default_factory=dict)
    where: Callable[[Settings], bool] | None = None
    data: Callable[[Settings], Hashed | None] | None = None
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    work: Work | None = None
    changes: Values = field(default_factory=dict)

    def cells(self, scale: Scale | str) -> tuple[Cell, ...]:
        """The cells of a scale, the last axis running fastest.

        Args:
            scale: which.

        Returns:
            Cells, members in blocks.

        Raises:
            UserError: if there is none.
        """
        axes, shared = self._declared(Scale(scale))
        found = []
        for point in itertools.product(*axes.values()):
            values = dict(zip(axes, point, strict=True))
            values |= {name: value for name, value in shared.items() if not callable(value)}
            for name, value in shared.items():
                if callable(value):
                    values[name] = value(Settings(values))
            if self.where is None or self.where(Settings(values)):
                found += self._blocks(values)
        if not found:
            raise UserError(f"the {scale} grid has no cell: {', '.join(self.changes) or 'where='}")
        return tuple(found)

    def layouts(self, scale: Scale | str) -> Iterator[tuple[Cell, ...]]:
        """The cells of a scale here, then those where every data set is at hand, if they differ.

        Records on real data are those of a grid also where the data are not.

        Args:
            scale: which.

        Yields:
            Cells, see `cells`.
        """
        yield (here := self.cells(scale))
        with as_if_present():
            elsewhere = self.cells(scale)
        if elsewhere != here:
            yield elsewhere

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes, also of those that a change made."""
        swept = (name for name, value in self.changes.items() if isinstance(value, _Swept))
        return tuple(dict.fromkeys([*self.each, *swept]))

    def changed(self, values: Mapping[str, Any], of: str = "this experiment") -> "Grid":
        """The grid with other values of some settings, at every scale.

        Several values of a setting that has one become an axis.

        Args:
            values: texts or values by name; a list, or one value alone.
            of: name of the experiment, for messages.

        Returns:
            Another grid.

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
        known = self.known()
        new = dict(self.changes)
        for name, given in values.items():
            if name not in known:
                raise UserError(self._unknown(name, of))
            items = list(given) if isinstance(given, list | tuple) else [given]
            if not items:
                raise UserError(f"setting {name} is empty: name at least one value")
            new[name] = self._value(name, items, known[name])
        return replace(self, changes=new)

    def known(self) -> dict[str, list[Any]]:
        """The values of the grid for each setting, at any scale.

        Returns:
            Values by name, the axes' first; those of a function are evaluated.
        """
        found: dict[str, list[Any]] = {name: list(values) for name, values in self.each.items()}
        # Hashed: to look for each value among all others would be quadratic.
        met = {name: set(map(_hashed, values)) for name, values in self.each.items()}
        for scale in Scale:
            for cell in replace(self, changes={}).cells(scale):
                for name, value in cell.settings.items():
                    if _hashed(value) not in met.setdefault(name, set()):
                        met[name].add(_hashed(value))
                        found.setdefault(name, []).append(value)
        if "members" in found:
            found.setdefault("block", list(found["members"]))
        return {**found, "seed": [0], "dtype": list(DTYPES)}

    def _declared(self, scale: Scale) -> tuple[dict[str, list[Any]], dict[str, Any]]:
        """Axes and shared settings of a scale."""
        given = {Scale.SMOKE: self.smoke, Scale.QUICK: self.quick, Scale.PAPER: self.paper}[scale]
        own = given() if callable(given) else given
        whole = {**self.each, **self.fixed, **own, **self.changes}
        axes = {name: list(whole[name]) for name in whole if name in self.axes}
        return axes, {n: v for n, v in whole.items() if n not in axes}

    def _blocks(self, values: dict[str, Any]) -> list[Cell]:
        own = dict(values)
        data = self.data(Settings(values)) if self.data else None
        digest = data.data_hash if data else ""
        seed, dtype = own.pop("seed", 0), own.pop("dtype", "float64")
        block = own.pop("block", None)
        if "members" not in own:
            return [Cell(own, seed, dtype, digest)]
        members = own.pop("members")
        size = members if block is None else block
        if members < 1 or size < 1:
            raise UserError(f"members = {members}, block = {size}: choose at least 1")
        return [
            Cell({**own, "members": min(size, members - k)}, seed + k, dtype, digest)
            for k in range(0, members, size)
        ]

    def _value(self, name: str, items: list[Any], declared: list[Any]) -> Any:
        """The value of a changed setting: a list for an axis, one value or a list elsewhere."""
        like = declared[0]
        names = list(dict.fromkeys([*_names(declared), *self.choices.get(name, ())]))
        if isinstance(like, list | tuple):
            whole = checked(name, items, like, names)
            return [whole] if name in self.each else whole
        items = _whole_names(items, names)
        found = [checked(name, item, like, names) for item in items]
        if name in ("members", "block") and min(found) < 1:
            raise UserError(f"{name} = {min(found)}: choose at least 1")
        if name in self.each:
            return found
        if len(found) == 1:
            return found[0]
        if name in LAYOUT:
            raise UserError(f"setting {name} takes one value, not {len(found)}")
        return _Swept(found)

    def _unknown(self, name: str, of: str) -> str:
        known = self.known()
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        told = [f"{n} ({_allowed(known[n])})" for n in near or known]
        if near:
            return f"{of} has no setting '{name}': did you mean {' or '.join(told)}?"
        return f"{of} has no setting '{name}', but {', '.join(told)}"


class _Swept(list):
    """Values of a setting that became an axis."""


def _hashed(value: Any) -> Hashable:
    """What equal values of a setting have in common; lists are not hashable themselves."""
    return canonical_json(value) if isinstance(value, list | tuple | dict) else value


def _names(values: Any) -> list[str]:
    """All texts in values that may be lists."""
    if isinstance(values, list | tuple):
        return [name for value in values for name in _names(value)]
    return [values] if isinstance(values, str) else []


def _whole_names(items: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """The items, with those put together again that a comma inside a name had split."""
    found, rest = [], list(items)
    # Spaces at a comma were taken off.
    whole = {",".join(part.strip() for part in name.split(",")): name for name in names}
    while rest:
        lengths = range(len(rest), 1, -1)
        size = next((k for k in lengths if ",".join(map(str, rest[:k])) in whole), 1)
        found.append(rest[0] if size == 1 else whole[",".join(map(str, rest[:size]))])
        rest = rest[size:]
    return found


def _allowed(values: Sequence[Any]) -> str:
    """What a setting takes, in a few words."""
    item = values[0]
    if _names(values):
        return ", ".join(dict.fromkeys(_names(values)))
    while isinstance(item, list | tuple):
        item = item[0]
    kind = next(kind for kind in KINDS if isinstance(item, kind))
    return f"{KINDS[kind]}, such as {_text(values[0])}"


def _text(value: Any) -> str:
    return ",".join(map(_text, value)) if isinstance(value, list | tuple) else f"{value}"
