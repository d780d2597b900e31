r"""What the cells of a grid will cost, from the records of cells that have run.

Seconds, memory and bytes of a cell are each c + k w, where w is the product of its whole-number
settings (members, steps, samples, widths; a list counts as its sum) and c, k >= 0 are fitted to the
records of the same experiment by least squares of the relative error. c is what compiling and
starting cost, k w what computing does. How far the fit misses the cells that it knows is part of
the answer: an extrapolation by orders of magnitude is no measurement.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from attlas.runs.cell import Cell, Scale, scale_named
from attlas.runs.experiment import Experiment
from attlas.runs.record import Record, record_key
from attlas.runs.store import Store


@dataclass(frozen=True)
class Line:
    """c + k w, fitted to measured cells.

    Attributes:
        fixed: c.
        slope: k.
        factor: largest ratio, either way, between a measured cell and the line; at least 1.
        largest: the largest w that was measured.
    """

    fixed: float
    slope: float
    factor: float
    largest: float

    def at(self, work: float) -> float:
        """The value at w = work.

        Args:
            work: w of a cell.

        Returns:
            c + k w.
        """
        return self.fixed + self.slope * work


@dataclass(frozen=True)
class Estimate:
    """What is left to compute of an experiment at a scale.

    Attributes:
        experiment: its name.
        cells: of the grid.
        finished: those that have a record.
        seconds: that the others take in one process; None where no cell was ever measured.
        longest: seconds of the longest of them.
        memory: bytes that a process needs at most; None where no record knows it.
        disk: bytes that the records will take.
        factor: by which the seconds of a measured cell differ from the fit, at most.
        beyond: how many times more work the largest cell has than the largest measured one.
        by_cell: seconds of each cell that is left, by its key.
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


def work_of(cell: Cell) -> float:
    """The product of the whole-number settings of a cell.

    Args:
        cell: any.

    Returns:
        w; settings that are zero or negative, such as an index, are left out.

    Examples:
        >>> work_of(Cell({"members": 4, "steps": 100, "rate": 0.5, "sizes": [2, 3]}))
        2000.0
    """
    sizes = (_size(value) for value in cell.settings.values())
    return float(math.prod(size for size in sizes if size > 0))


def fitted(works: Sequence[float], values: Sequence[float]) -> Line | None:
    """The line c + k w of least relative error, with c, k >= 0.

    Args:
        works: w of measured cells.
        values: what was measured, positive.

    Returns:
        The line, without a fixed part where all cells have the same w; None where nothing was
        measured.

    Examples:
        >>> line = fitted([1.0, 10.0, 100.0], [3.0, 12.0, 102.0])
        >>> round(line.fixed, 6), round(line.slope, 6), round(line.factor, 6)
        (2.0, 1.0, 1.0)
    """
    w, y = np.asarray(works, float), np.asarray(values, float)
    w, y = w[y > 0], y[y > 0]
    if not len(y):
        return None
    columns = np.stack([np.ones_like(w), w], axis=1) if np.ptp(w) else w[:, None]
    found, _ = nnls(columns / y[:, None], np.ones_like(y))
    ratio = columns @ found / y
    fixed, slope = (float(found[0]), float(found[1])) if len(found) == 2 else (0.0, float(found[0]))
    factor = float(np.max(np.maximum(ratio, 1 / np.maximum(ratio, 1e-300))))
    return Line(fixed, slope, factor, float(w.max()))


def estimate(experiment: Experiment, scale: Scale | str, store: Store) -> Estimate:
    """What is left of an experiment, measured by its own records of any scale.

    Args:
        experiment: which.
        scale: whose grid.
        store: results folder.

    Returns:
        The estimate.

    Raises:
        UserError: if the scale is unknown.
    """  # noqa: DOC502 (raised one call below)
    cells = {
        record_key(experiment.name, experiment.revision, cell): cell
        for cell in experiment.cells(scale_named(scale))
    }
    records = store.records(experiment.name)
    there = {record.key for record in records}
    left = {key: work_of(cell) for key, cell in cells.items() if key not in there}
    works = [work_of(record.cell) for record in records]
    time = fitted(works, [float(record.metadata["seconds"]) for record in records])
    memory = _of_known(works, records, "peak_memory")
    disk = fitted(works, [float(sum(a.nbytes for a in r.arrays.values())) for r in records])
    largest = max(left.values(), default=0.0)
    by_cell = {key: None if time is None else time.at(work) for key, work in left.items()}
    seconds = [each for each in by_cell.values() if each is not None]
    return Estimate(
        experiment=experiment.name,
        cells=len(cells),
        finished=len(cells) - len(left),
        seconds=sum(seconds) if time or not left else None,
        longest=max(seconds, default=0.0) if time or not left else None,
        memory=memory.at(largest) if memory else None,
        disk=sum(disk.at(work) for work in left.values()) if disk else None,
        factor=time.factor if time else None,
        beyond=largest / time.largest if time else None,
        by_cell=by_cell,
    )


def _of_known(works: Sequence[float], records: Sequence[Record], name: str) -> Line | None:
    """The line of what only some records know."""
    known = [k for k, record in enumerate(records) if record.metadata.get(name)]
    return fitted([works[k] for k in known], [float(records[k].metadata[name]) for k in known])


def _size(value: Any) -> float:
    if isinstance(value, bool):
        return 1.0
    if isinstance(value, list):
        return sum(_size(each) for each in value) if value else 1.0
    return float(value) if isinstance(value, int) else 1.0
