"""Load the results of an experiment as one labelled data set or as records."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from attlas.core.errors import UserError
from attlas.experiments.cell import Cell, Scale, scale_named
from attlas.experiments.experiment import Experiment
from attlas.experiments.find import one_named
from attlas.experiments.record import Record, record_key
from attlas.experiments.store import Store


class DamagedRecord(UserWarning):
    """A record on disk was truncated or altered and is skipped."""


def load(
    experiment: str | Experiment,
    *,
    scale: Scale | str | None = None,
    settings: Mapping[str, Any] | None = None,
    results: Path | str | None = None,
) -> xr.Dataset:
    """The results of a grid's cells as one data set with the grid as coordinates.

    Args:
        scale: the grid; by default the most complete one, and of equally complete ones the largest.
        settings: other values of some settings, as `attlas run --set` takes them.
        results: results folder; the default one when None.

    Returns:
        Labelled arrays; cells not yet computed are NaN.

    Raises:
        UserError: if the experiment, the scale or a setting is unknown, the name stands for
            several experiments, no cell has been run, or a record has another schema.
    """
    selected = experiment if isinstance(experiment, Experiment) else one_named(experiment)
    selected = selected.changed(settings or {})
    scales = selected.grid.largest_first if scale is None else (scale_named(scale),)
    there = _current(selected, results)
    best = ScaleRecords()
    for grid_scale in scales:
        best = max(best, of_scale(selected, grid_scale, there), key=lambda layout: layout.share)
        if best.share == 1.0:  # no scale is more complete; the keys of a large grid take seconds
            break
    if not best.records:
        options = "".join(
            f" --set {name}={_text(value)}" for name, value in (settings or {}).items()
        )
        raise UserError(
            f"{selected.name} has no records yet: run `attlas run {selected.name}{options}`"
        )
    return selected.dataset(*best)


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def load_records(
    experiment: str | Experiment,
    *,
    scale: Scale | str | None = None,
    results: Path | str | None = None,
) -> tuple[Record, ...]:
    """The records of an experiment's current revision, cell by cell.

    Args:
        scale: only the cells of this grid, in its order; by default all records.
        results: results folder; the default one when None.

    Raises:
        UserError: if the experiment or the scale is unknown, the name stands for several
            experiments, or a record has another schema.
    """
    named_experiment = experiment if isinstance(experiment, Experiment) else one_named(experiment)
    records = _current(named_experiment, results)
    return (
        tuple(records.values())
        if scale is None
        else of_scale(named_experiment, scale, records).records
    )


def _current(experiment: Experiment, results: Path | str | None) -> dict[str, Record]:
    """The records of the current revision by key, with a warning for each damaged one."""
    store = Store(results)
    records = {
        record.key: record
        for record in store.records(experiment.name)
        if record.metadata["revision"] == experiment.revision
    }
    for note in store.notes:
        warnings.warn(note, DamagedRecord, stacklevel=3)
    return records


class ScaleRecords(NamedTuple):
    """The records of a scale, and all cells of the layout of its grid that they belong to."""

    records: tuple[Record, ...] = ()
    cells: tuple[Cell, ...] = ()

    @property
    def share(self) -> float:
        """The share of the cells that have a record."""
        return len(self.records) / max(1, len(self.cells))

    @property
    def complete(self) -> bool:
        """Whether every cell has a record."""
        return len(self.records) == len(self.cells)


def of_scale(
    experiment: Experiment, scale: Scale | str, records: Mapping[str, Record]
) -> ScaleRecords:
    """The records of a scale in its most complete layout (`Grid.layouts`)."""
    best = ScaleRecords()
    for cells in experiment.grid.layouts(scale_named(scale)):
        by_key = {record_key(experiment.name, experiment.revision, c): c for c in cells}
        present = tuple(records[key] for key in by_key if key in records)
        layout = ScaleRecords(present, tuple(by_key.values()))
        if not best.cells or layout.share > best.share:
            best = layout
        if layout.complete:
            break
    return best
