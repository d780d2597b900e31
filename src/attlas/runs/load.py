"""Load what an experiment gave: as one labelled data set, or record by record."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from attlas.core.errors import UserError
from attlas.runs.cell import Scale, scale_named
from attlas.runs.experiment import Experiment
from attlas.runs.find import find_named
from attlas.runs.record import Record, record_key
from attlas.runs.store import Store

CELL = "cell"


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
    found = experiment if isinstance(experiment, Experiment) else _one_named(experiment)
    found = found.changed(settings or {})
    scales = (Scale.PAPER, Scale.QUICK, Scale.SMOKE) if scale is None else (scale_named(scale),)
    by_scale = [
        (load_records(found, scale=s, results=results), len(found.cells(s))) for s in scales
    ]
    records, _ = max(by_scale, key=lambda one: len(one[0]) / one[1])
    if not records:
        told = "".join(f" --set {name}={_text(value)}" for name, value in (settings or {}).items())
        raise UserError(f"{found.name} has no records there: attlas run {found.name}{told}")
    return found.dataset(records) if found.grid else to_xarray(records, found)


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
    """  # noqa: DOC502 (raised one call below)
    found = experiment if isinstance(experiment, Experiment) else _one_named(experiment)
    store = Store(results)
    records = {
        record.key: record
        for record in store.records(found.name)
        if record.metadata["revision"] == found.revision
    }
    for note in store.notes:
        warnings.warn(note, DamagedRecord, stacklevel=2)
    if scale is None:
        return tuple(records.values())
    cells = found.cells(scale_named(scale))
    keys = (record_key(found.name, found.revision, cell) for cell in cells)
    return tuple(records[key] for key in dict.fromkeys(keys) if key in records)


def _one_named(name: str) -> Experiment:
    found, *others = find_named([name])
    if others:
        names = ", ".join(experiment.name for experiment in (found, *others))
        raise UserError(f"'{name}' stands for {1 + len(others)} experiments: load one of {names}")
    return found


def to_pandas(records: Sequence[Record]) -> pd.DataFrame:
    """One row for each cell: settings, seed, dtype, and every result that is one number.

    Args:
        records: of one experiment.

    Returns:
        Table, indexed by the records' keys.

    Examples:
        >>> from attlas.runs.cell import Cell
        >>> record = Record("toy", Cell({"p": 2}), {"loss": np.array(0.5)}, {}, "k")
        >>> to_pandas([record]).loc["k"].to_dict()
        {'p': 2, 'seed': 0, 'dtype': 'float64', 'loss': 0.5}
    """
    rows = []
    for record in records:
        scalars = {n: a.item() for n, a in record.arrays.items() if np.size(a) == 1}
        rows.append({**_coordinates(record), **scalars})
    return pd.DataFrame(rows, index=pd.Index([r.key for r in records], name="key"))


def to_xarray(records: Sequence[Record], experiment: Experiment) -> xr.Dataset:
    """All arrays of the records, along a dimension `cell` whose coordinates are the settings.

    Axes are named by `Experiment.dims`. An array that is its own axis and equal in all cells
    becomes a coordinate. Numbers whose shapes differ between cells are padded with NaN at the
    end. A full grid unfolds by `dataset.set_index(cell=["p", "seed"]).unstack("cell")`.

    Args:
        records: of one experiment, at least one.
        experiment: names the axes.

    Returns:
        Labelled arrays.

    Raises:
        UserError: if there are no records, or text of different shapes.
    """
    if not records:
        raise UserError(f"experiment '{experiment.name}' has no records: run it first")
    coordinates: dict[str, Any] = {}
    variables: dict[str, Any] = {}
    for name in sorted({name for record in records for name in record.arrays}):
        axes = experiment.dims.get(name)
        arrays = [record.arrays.get(name) for record in records]
        depth = max(np.ndim(a) for a in arrays if a is not None)
        axes = tuple(axes) if axes is not None else tuple(f"{name}_{i}" for i in range(depth))
        if axes == (name,) and _all_equal(arrays):
            coordinates[name] = arrays[0]
        else:
            variables[name] = ((CELL, *axes), _stack(name, arrays, depth))
    table = pd.DataFrame([_coordinates(record) for record in records])
    for name in table.columns:
        label = f"setting_{name}" if name in variables or name in coordinates else str(name)
        coordinates[label] = (CELL, table[name].to_numpy())
    coordinates["key"] = (CELL, np.array([record.key for record in records]))
    return xr.Dataset(variables, coordinates, attrs={"experiment": experiment.name})


def _coordinates(record: Record) -> dict[str, Any]:
    """Settings, seed and dtype; lists and mappings as text, which can label an axis."""
    plain = {
        name: str(value) if isinstance(value, list | dict) else value
        for name, value in record.cell.settings.items()
    }
    return {**plain, "seed": record.cell.seed, "dtype": record.cell.dtype}


def _all_equal(arrays: Sequence[np.ndarray | None]) -> bool:
    first = arrays[0]
    return first is not None and all(a is not None and np.array_equal(first, a) for a in arrays)


def _stack(name: str, arrays: Sequence[np.ndarray | None], depth: int) -> np.ndarray:
    """Stack arrays, padded with NaN at the end where shapes differ or a cell lacks one."""
    present = [a for a in arrays if a is not None]
    shapes = {a.shape for a in present}
    if len(present) == len(arrays) and len(shapes) == 1:
        return np.stack(present)
    if any(a.ndim != depth or a.dtype.kind not in "biuf" for a in present):
        raise UserError(
            f"array '{name}' has shapes {sorted(shapes)}, which do not stack: load fewer cells"
        )
    largest = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
    whole = np.full((len(arrays), *largest), np.nan)
    for index, array in enumerate(arrays):
        if array is not None:
            whole[(index, *(slice(size) for size in array.shape))] = array
    return whole
