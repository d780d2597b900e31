r"""What the cells of a grid will cost, from the records of cells that have run.

Seconds and bytes of a cell are each c w^b, where w is the product of its whole-number settings
(members, steps, samples, widths; a list counts as its sum) and 0 <= b <= 1 is fitted to the
logarithms of what the records of the same experiment say. Where the grid says what its work is
(`Grid.work`, operations up to a factor), seconds are a + c w instead, a being what compiling takes.
Memory is m + c w^b: m is what a process holds before its first cell (Python, JAX, attlas), and the
power is of what cells took beyond what was held before. A power of a product is a crude model: it
holds as far as the settings of a larger scale grow together as those of the smaller ones did.
Therefore an estimate has its limits: the largest ratio between a measured cell and the fit is told,
and where the work lies too far beyond what was measured there is no estimate.

Where a user's own records do not tell the cost of each cell, the records that attlas publishes are
measured cells too, of another machine perhaps: which one is told. Only cells of one kind of device
are fitted together: times on a GPU do not predict those on a CPU.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from attlas.experiments.cell import Cell, Scale, scale_named
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Work
from attlas.experiments.record import Record, record_key
from attlas.experiments.settings import Settings
from attlas.experiments.store import Store

CPU = "cpu: cpu"
NEAR = 30.0
"""How many times the largest measured work may be exceeded where all measured cells are alike."""


@dataclass(frozen=True)
class Power:
    """a + c w^b, fitted to measured cells.

    Attributes:
        scale: c.
        exponent: b.
        factor: largest ratio, either way, between a measured cell and the fit; at least 1.
        largest: the largest w that was measured.
        span: the largest over the smallest w that were measured.
        constant: a.
        steep: whether the work is known, and c w makes more than half of the largest measured
            value: c is then known well enough for any w.
    """

    scale: float
    exponent: float
    factor: float
    largest: float
    span: float
    constant: float = 0.0
    steep: bool = False

    def at(self, work: float) -> float | None:
        """The value at w = work.

        Args:
            work: w of a cell.

        Returns:
            c w^b; None where w is further beyond the largest measured work than `NEAR` times the
            square of the measured span, unless the line is steep.
        """
        if not self.steep and work > self.largest * NEAR * self.span**2:
            return None
        return self.constant + self.scale * work**self.exponent


class Measured(NamedTuple):
    """What a record says of the cost of its cell.

    Attributes:
        work: see `work_of`.
        seconds: that it took.
        memory: bytes that its process held at most, 0 where that is not known.
        size: bytes of its arrays.
        before: bytes that its process held when it began, 0 where that is not known.
        device: that computed it, as `environment` tells it.
    """

    work: float
    seconds: float
    memory: float
    size: float
    before: float = 0.0
    device: str = CPU


@dataclass(frozen=True)
class Estimate:
    """What is left to compute of an experiment at a scale.

    Attributes:
        experiment: its name.
        cells: of the grid.
        finished: those that have a record.
        seconds: that the others take in one process; None where no cell was measured, or none
            that is large enough.
        longest: seconds of the longest of them.
        memory: bytes that a process needs at most.
        disk: bytes that the records will take.
        factor: by which the seconds of a measured cell differ from the fit, at most.
        beyond: how many times more work the largest cell has than the largest measured one.
        by_cell: seconds of each cell that is left, by its key.
        published_on: the machines of the published records that were needed; none where the user's
            own sufficed.
    """

    experiment: str
    cells: int
    finished: int
    seconds: float | None
    longest: float | None
    memory: float | None
    disk: float | None
    factor: float | None
    beyond: float | None
    by_cell: Mapping[str, float | None]
    published_on: tuple[str, ...] = ()


def work_of(cell: Cell, work: Work | None = None) -> float:
    """The product of the whole-number settings of a cell, or what its grid says.

    Args:
        cell: any.
        work: of the grid.

    Returns:
        w; settings that are zero or negative, such as an index, are left out.

    Examples:
        >>> work_of(Cell({"members": 4, "steps": 100, "rate": 0.5, "sizes": [2, 3]}))
        2000.0
        >>> work_of(Cell({"steps": 100, "rate": 0.5}), lambda s: 3 * s.steps)
        300.0
    """
    if work is not None:
        return float(work(Settings(cell.settings, seed=cell.seed, dtype=cell.dtype)))
    sizes = (_size(value) for value in cell.settings.values())
    return float(math.prod(size for size in sizes if size > 0))


def fitted(works: Sequence[float], values: Sequence[float]) -> Power | None:
    """The power c w^b of least squares between logarithms, 0 <= b <= 1.

    Args:
        works: w of measured cells.
        values: what was measured.

    Returns:
        The power, in proportion to w where all cells have the same; None where nothing positive
        was measured.

    Examples:
        >>> power = fitted([1.0, 100.0], [3.0, 30.0])
        >>> round(power.scale, 6), round(power.exponent, 6), round(power.factor, 6)
        (3.0, 0.5, 1.0)
        >>> round(power.at(1e4), 6)
        300.0
    """
    w, y = np.asarray(works, float), np.asarray(values, float)
    w, y = np.log(w[y > 0]), np.log(y[y > 0])
    if not len(y):
        return None
    around = w - w.mean()
    spread = float(around @ around)
    slope = float(np.clip(around @ y / spread, 0, 1)) if spread else 1.0
    level = float(y.mean() - slope * w.mean())
    factor = float(np.exp(np.max(np.abs(level + slope * w - y))))
    ends = float(w.min()), float(w.max())
    return Power(math.exp(level), slope, factor, math.exp(ends[1]), math.exp(ends[1] - ends[0]))


def proportional(works: Sequence[float], values: Sequence[float]) -> Power | None:
    """The line a + c w with the least squares of relative errors, a and c not negative.

    Where times do not grow with w, c cannot be told from them: the line is then the one through
    zero and the slowest of the largest cells, which overstates rather than understates.

    Args:
        works: w of measured cells.
        values: what was measured.

    Returns:
        The line, through zero where all cells have the same w; None where nothing positive was
        measured.

    Examples:
        >>> line = proportional([1.0, 10.0, 100.0], [5.0, 14.0, 104.0])
        >>> round(line.constant, 6), round(line.scale, 6), round(line.at(1000.0), 6)
        (4.0, 1.0, 1004.0)
        >>> round(proportional([1.0, 10.0], [5.0, 4.0]).at(100.0), 6)
        40.0
    """
    power = fitted(works, values)
    if power is None or power.span == 1:
        return power
    w, y = np.asarray(works, float), np.asarray(values, float)
    w, y = w[y > 0], y[y > 0]
    (constant, scale), _ = nnls(np.stack([1 / y, w / power.largest / y], 1), np.ones_like(y))
    if not scale:
        constant, scale = 0.0, float(y[w == w.max()].max())
    apart = np.abs(np.log((constant + scale * w / power.largest) / y))
    return Power(
        scale=float(scale / power.largest),
        exponent=1.0,
        factor=float(np.exp(np.max(apart))),
        largest=power.largest,
        span=power.span,
        constant=float(constant),
        steep=bool(scale > constant > 0),  # a = 0 where times grow faster than the work
    )


def measured(record: Record, work: Work | None = None) -> Measured:
    """What a record says of the cost of its cell.

    Args:
        record: any.
        work: of the grid.

    Returns:
        Numbers.
    """
    return Measured(
        work_of(record.cell, work),
        float(record.metadata["seconds"]),
        float(record.metadata.get("peak_memory", 0)),
        float(sum(array.nbytes for array in record.arrays.values())),
        float(record.metadata.get("memory_before", 0)),
        record.metadata["device"],
    )


def memory_at(known: Sequence[Measured], work: float) -> float | None:
    """The bytes that a process needs for a cell: a constant, and a power of the work.

    Args:
        known: measured cells.
        work: w of the cell.

    Returns:
        m + c w^b, with m the least that a process held before a cell; where no record says that,
        the least that one held at most. None where no memory was measured, or no cell that is
        large enough.

    Examples:
        >>> cells = [Measured(w, 1.0, 200.0 + w, 0.0, 200.0) for w in (1.0, 10.0)]
        >>> round(memory_at(cells, 100.0), 6)
        300.0
    """
    told = [one for one in known if one.memory > 0]
    if not told:
        return None
    base = min([one.before for one in told if one.before] or [one.memory for one in told])
    own = [max(0.0, one.memory - (one.before or base)) for one in told]
    power = fitted([one.work for one in told], own)
    if power is None:  # no more than the constant was needed so far
        return base if work <= NEAR * max(one.work for one in told) else None
    more = power.at(work)
    return None if more is None else base + more


def estimate(
    experiment: Experiment,
    scale: Scale | str,
    store: Store,
    known: Mapping[str, Measured] | None = None,
    published: Store | None = None,
    device: str | None = None,
) -> Estimate:
    """What is left of an experiment, measured by its own records of any scale.

    Args:
        experiment: which.
        scale: whose grid.
        store: results folder.
        known: what records that were read already say, by key: they are not read again.
        published: records that are measured cells too where those of the results folder do not tell
            the cost of each cell; none of them counts as finished.
        device: that will compute, as `environment` tells it; what computed all own records when
            None, or a CPU where that is not one device.

    Returns:
        The estimate.

    Raises:
        UserError: if the scale is unknown.
    """
    cells = {
        record_key(experiment.name, experiment.revision, cell): cell
        for cell in experiment.cells(scale_named(scale))
    }
    there = dict(known or {})
    work = experiment.grid.work
    # Records of an earlier revision may lack a setting that the work depends on.
    needed = set().union(*(cell.settings for cell in cells.values())) if work else set()

    def told(records: Iterable[Record]) -> dict[str, Measured]:
        return {r.key: measured(r, work) for r in records if needed <= r.cell.settings.keys()}

    there |= told(store.records(experiment.name, there))
    left = {key: work_of(cell, work) for key, cell in cells.items() if key not in there}
    fit = proportional if work else fitted
    here = _device(there.values()) if device is None else device
    alike = [one for one in there.values() if one.device == here]
    own = _told(experiment.name, len(cells), left, alike, fit)
    if published is None or own.seconds is not None:
        return own
    others = [
        record
        for record in published.records(experiment.name, there)
        if record.metadata["device"] == here
    ]
    if not others:
        return own
    both = [*alike, *told(others).values()]
    machines = tuple(sorted({machine_of(record) for record in others}))
    return replace(_told(experiment.name, len(cells), left, both, fit), published_on=machines)


def _device(known: Iterable[Measured]) -> str:
    devices = {one.device for one in known}
    return devices.pop() if len(devices) == 1 else CPU


def machine_of(record: Record) -> str:
    """The machine that computed a record.

    Args:
        record: any.

    Returns:
        Its platform and device.
    """
    return ", ".join(str(record.metadata[name]) for name in ("platform", "device"))


def _told(
    name: str,
    cells: int,
    left: Mapping[str, float],
    known: Sequence[Measured],
    fit: Callable[[list[float], list[float]], Power | None],
) -> Estimate:
    """What is left, by the work of each cell, from measured cells."""
    works = [one.work for one in known]
    time = fit(works, [one.seconds for one in known])
    disk = fitted(works, [one.size for one in known])
    largest = max(left.values(), default=0.0)
    by_cell = {key: time.at(work) if time else None for key, work in left.items()}
    return Estimate(
        experiment=name,
        cells=cells,
        finished=cells - len(left),
        seconds=_whole(by_cell.values(), sum),
        longest=_whole(by_cell.values(), max),
        memory=memory_at(known, largest),
        disk=_whole((disk.at(work) if disk else None for work in left.values()), sum),
        factor=time.factor if time else None,
        beyond=largest / time.largest if time else None,
        by_cell=by_cell,
    )


def _whole(values: Iterable[float | None], join: Callable[[list[float]], float]) -> float | None:
    """The sum or the largest, None where one is not known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return None if len(known) < len(found) else join([0.0, *known])


def _size(value: Any) -> float:
    if isinstance(value, bool):
        return 1.0
    if isinstance(value, list):
        return sum(_size(each) for each in value) if value else 1.0
    return float(value) if isinstance(value, int) else 1.0
