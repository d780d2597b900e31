"""Load what an experiment gave: as one labelled data set, or record by record."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from attlas.core.errors import UserError
from attlas.experiments.cell import Scale, scale_named
from attlas.experiments.experiment import Experiment
from attlas.experiments.find import one_named
from attlas.experiments.record import Record, record_key
from attlas.experiments.store import Store


class DamagedRecord(UserWarning):
    """A record on disk was truncated or altered, and is left out."""


def load(
    experiment: str | Experiment,
    *,
    scale: Scale | str | None = None,
    settings: Mapping[str, Any] | None = None,
    results: Path | str | None = None,
) -> xr.Dataset:
    """What the cells of a grid gave, as one data set with the grid as coordinates.

    Args:
        experiment: its name, or the experiment.
        scale: which grid; when None the most complete one, the larger of equals.
        settings: other values of some settings, as `attlas run --set` takes them.
        results: results folder; the default one when None.

    Returns:
        Labelled arrays; what has not been computed is NaN.

    Raises:
        UserError: if the experiment, the scale or a setting is unknown, the name stands for
            several experiments, no cell has been run, or a record has another schema.
    """
    found = experiment if isinstance(experiment, Experiment) else one_named(experiment)
    found = found.changed(settings or {})
    scales = (Scale.PAPER, Scale.QUICK, Scale.SMOKE) if scale is None else (scale_named(scale),)
    there = _current(found, results)
    records, share = (), 0.0
    for each in scales:
        done, cells = of_scale(found, each, there)
        if len(done) / cells > share:
            records, share = done, len(done) / cells
        if share == 1.0:  # the keys of a large grid take seconds: none is more complete
            break
    if not records:
        told = "".join(f" --set {name}={_text(value)}" for name, value in (settings or {}).items())
        raise UserError(f"{found.name} has no records there: attlas run {found.name}{told}")
    return found.dataset(records)


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
        experiment: its name, or the experiment.
        scale: only the cells of this grid, in its order; all that are there when None.
        results: results folder; the default one when None.

    Returns:
        Records; cells that have not been run are not among them.

    Raises:
        UserError: if the experiment or the scale is unknown, the name stands for several
            experiments, or a record has another schema.
    """
    found = experiment if isinstance(experiment, Experiment) else one_named(experiment)
    records = _current(found, results)
    return tuple(records.values()) if scale is None else of_scale(found, scale, records)[0]


def _current(experiment: Experiment, results: Path | str | None) -> dict[str, Record]:
    """The records of the current revision by key; damaged ones are warned of."""
    store = Store(results)
    records = {
        record.key: record
        for record in store.records(experiment.name)
        if record.metadata["revision"] == experiment.revision
    }
    for note in store.notes:
        warnings.warn(note, DamagedRecord, stacklevel=3)
    return records


def of_scale(
    experiment: Experiment, scale: Scale | str, records: Mapping[str, Record]
) -> tuple[tuple[Record, ...], int]:
    """The records of a scale in the layout of which there are most, see `Grid.layouts`.

    Args:
        experiment: whose they are.
        scale: which.
        records: by key.

    Returns:
        Those of its cells, in their order, and the number of its cells.
    """
    best: tuple[tuple[Record, ...], int] = (), 1
    for number, cells in enumerate(experiment.grid.layouts(scale_named(scale))):
        keys = dict.fromkeys(record_key(experiment.name, experiment.revision, c) for c in cells)
        found = tuple(records[key] for key in keys if key in records), len(keys)
        if not number or len(found[0]) / found[1] > len(best[0]) / best[1]:
            best = found
        if len(found[0]) == len(keys):
            break
    return best
