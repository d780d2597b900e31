r"""Estimate the cost of the cells of a grid from the records of cells that have run.

Seconds and bytes of a cell are each c w^b, where w is the product of its whole-number settings
(members, steps, samples, widths; a list counts as its sum) and 0 <= b <= 1 is fitted to the
logarithms of the values in the records of the same experiment. If the grid defines its work
(`Grid.work`, operations up to a factor), seconds are a + c w instead, where a is compilation time.
Memory is m + c w^b: m is what a process holds before its first cell (Python, JAX, attlas), and the
power fits what cells took in addition. A power of a product is a crude model: it holds as long as
the settings of a larger scale grow in the proportions of the smaller ones. Therefore an estimate
reports the largest ratio between a measured cell and the fit, and there is no estimate for work far
beyond the measured one.

If the user's records cannot predict every cell, the published records count as measured cells too;
the estimate names their machines. Only cells of one kind of device are fitted together: times on a
GPU do not predict those on a CPU.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from attlas.core.errors import refuse_unreadable
from attlas.experiments.cell import Cell, Scale, scale_named
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Work
from attlas.experiments.record import Record, record_key
from attlas.experiments.settings import Settings
from attlas.experiments.store import Store

CPU = "cpu: cpu"
NEAR = 30.0
"""By how much work may exceed the largest measured one if all measured cells have the same."""


@dataclass(frozen=True)
class Power:
    """a + c w^b, fitted to measured cells.

    Attributes:
        factor: largest ratio, either way, between a measured cell and the fit; at least 1.
        largest: the largest w that was measured.
        span: the largest over the smallest w that were measured.
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
        """A + c w^b at w = work; None if w exceeds `largest` by more than `NEAR span^2`.

        A steep line has no such bound.
        """
        if not self.steep and work > self.largest * NEAR * self.span**2:
            return None
        return self.constant + self.scale * work**self.exponent


class Measured(NamedTuple):
    """The measured cost of a cell.

    Attributes:
        memory: peak bytes of its process, 0 if unknown.
        size: bytes of its arrays.
        before: bytes that its process held at the start, 0 if unknown.
    """

    work: float
    seconds: float
    memory: float
    size: float
    before: float = 0.0
    device: str = CPU


@dataclass(frozen=True)
class Estimate:
    """The unfinished cells of an experiment at a scale, and their cost.

    Attributes:
        finished: cells that have a record.
        seconds: seconds for the other cells in one process; None without a measured cell that is
            large enough.
        longest: seconds of the slowest cell.
        memory: peak bytes of a process.
        disk: bytes of the records.
        factor: largest ratio, either way, between a measured cell and the fit.
        beyond: work of the largest cell over that of the largest measured one.
        by_cell: seconds of each unfinished cell, by its key.
        published_on: machines of the published records that the fit needed.
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


@refuse_unreadable
def work_of(cell: Cell, work: Work | None = None) -> float:
    """The work w of a cell: the product of its positive whole-number settings, or its grid's.

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
    """Fit c w^b by least squares of the logarithms, 0 <= b <= 1.

    Returns:
        The fit, with b = 1 if all cells have the same w; None without a positive value.

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
    """Fit a + c w by least squares of relative errors, a and c not negative.

    If times do not grow with w, they do not determine c: the line then passes through zero and the
    slowest of the largest cells, which overstates rather than understates.

    Returns:
        The line, through zero if all cells have the same w; None without a positive value.

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
    """The cost of a cell according to its record."""
    return Measured(
        work_of(record.cell, work),
        float(record.metadata["seconds"]),
        float(record.metadata.get("peak_memory", 0)),
        float(sum(array.nbytes for array in record.arrays.values())),
        float(record.metadata.get("memory_before", 0)),
        record.metadata["device"],
    )


@refuse_unreadable
def memory_at(measured_cells: Sequence[Measured], work: float) -> float | None:
    """Peak bytes m + c w^b of a process that computes a cell of the given work.

    m is the least memory of a process before a cell, or, if no record has it, the least peak.

    Returns:
        None if no memory was measured, or no cell that is large enough.

    Examples:
        >>> cells = [Measured(w, 1.0, 200.0 + w, 0.0, 200.0) for w in (1.0, 10.0)]
        >>> round(memory_at(cells, 100.0), 6)
        300.0
    """
    cells = [cell for cell in measured_cells if cell.memory > 0]
    if not cells:
        return None
    base = min([cell.before for cell in cells if cell.before] or [cell.memory for cell in cells])
    extra = [max(0.0, cell.memory - (cell.before or base)) for cell in cells]
    power = fitted([cell.work for cell in cells], extra)
    if power is None:  # no cell needed more than the constant so far
        return base if work <= NEAR * max(cell.work for cell in cells) else None
    growth = power.at(work)
    return None if growth is None else base + growth


def estimate(
    experiment: Experiment,
    scale: Scale | str,
    store: Store,
    already_read: Mapping[str, Measured] | None = None,
    published: Store | None = None,
    device: str | None = None,
) -> Estimate:
    """Estimate the unfinished cells of an experiment from its records of any scale.

    Args:
        already_read: costs from records that were read before, by key; they are not read again.
        published: further records to fit to, if the results folder cannot predict every cell; they
            do not count as finished.
        device: the device that will compute, as `environment` names it. By default the one of all
            the user's records; a CPU if they have several.

    Raises:
        UserError: if the scale is unknown.
    """
    cells = {
        record_key(experiment.name, experiment.revision, cell): cell
        for cell in experiment.cells(scale_named(scale))
    }
    there = dict(already_read or {})
    work = experiment.grid.work
    # Records of an earlier revision may lack a setting that the work depends on.
    needed = set().union(*(cell.settings for cell in cells.values())) if work else set()

    def measured_of(records: Iterable[Record]) -> dict[str, Measured]:
        return {r.key: measured(r, work) for r in records if needed <= r.cell.settings.keys()}

    there |= measured_of(store.records(experiment.name, there))
    left = {key: work_of(cell, work) for key, cell in cells.items() if key not in there}
    fit = proportional if work else fitted
    computing_device = _device(there.values()) if device is None else device
    alike = [cell for cell in there.values() if cell.device == computing_device]
    own_estimate = _estimate_from(experiment.name, len(cells), left, alike, fit)
    if published is None or own_estimate.seconds is not None:
        return own_estimate
    others = [
        record
        for record in published.records(experiment.name, there)
        if record.metadata["device"] == computing_device
    ]
    if not others:
        return own_estimate
    all_cells = [*alike, *measured_of(others).values()]
    machines = tuple(sorted({machine_of(record) for record in others}))
    return replace(
        _estimate_from(experiment.name, len(cells), left, all_cells, fit), published_on=machines
    )


def _device(cells: Iterable[Measured]) -> str:
    devices = {cell.device for cell in cells}
    return devices.pop() if len(devices) == 1 else CPU


def machine_of(record: Record) -> str:
    """The machine that computed a record."""
    return ", ".join(str(record.metadata[name]) for name in ("platform", "device"))


def _estimate_from(
    name: str,
    cells: int,
    left: Mapping[str, float],
    measured_cells: Sequence[Measured],
    fit: Callable[[list[float], list[float]], Power | None],
) -> Estimate:
    """The estimate for unfinished cells, given by their work, from measured cells."""
    works = [cell.work for cell in measured_cells]
    time = fit(works, [cell.seconds for cell in measured_cells])
    disk = fitted(works, [cell.size for cell in measured_cells])
    largest = max(left.values(), default=0.0)
    by_cell = {key: time.at(work) if time else None for key, work in left.items()}
    return Estimate(
        experiment=name,
        cells=cells,
        finished=cells - len(left),
        seconds=_combined(by_cell.values(), sum),
        longest=_combined(by_cell.values(), max),
        memory=memory_at(measured_cells, largest),
        disk=_combined((disk.at(work) if disk else None for work in left.values()), sum),
        factor=time.factor if time else None,
        beyond=largest / time.largest if time else None,
        by_cell=by_cell,
    )


def _combined(values: Iterable[float | None], join: Callable[[list[float]], float]) -> float | None:
    """The sum or the largest of the values; None if one is unknown."""
    all_values = list(values)
    finite = [value for value in all_values if value is not None]
    return None if len(finite) < len(all_values) else join([0.0, *finite])


def _size(value: Any) -> float:
    if isinstance(value, bool):
        return 1.0
    if isinstance(value, list):
        return sum(_size(item) for item in value) if value else 1.0
    return float(value) if isinstance(value, int) else 1.0
