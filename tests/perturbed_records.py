"""Records whose measured values were reversed, mirrored, sorted or rescaled, to see sentences turn.

A conclusion that no such change turns does not rest on the record.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import xarray as xr
from jinja2 import nodes

import attlas as at
from attlas.experiments.experiment import Experiment
from attlas.experiments.find import find_experiments
from attlas.experiments.join import MISSING_CELLS
from attlas.experiments.load import load_records

Change = Callable[[xr.Dataset], xr.Dataset]
FACTORS = (1e-3, 0.3, 3.0, 1e3)
SPREADS = (0.01, 10.0)
LARGE = 1e6
OF_THE_RUN = {
    "loop", "stand_in", "mnist", "real", "digits", "members", "seeds", "students", "n", "sizes",
    "starts", "limit", "exponents", "compared", "epochs", "optimizer", "validate_every", "control",
    "trend", "finite",
}  # fmt: skip
"""Names in conditions that say which data, cells or finite numbers there are, not their values."""


WITHOUT_RECORD = {"text"}
"""Experiments of which no complete record is published; of all others there is one."""


def recorded() -> dict[str, Experiment]:
    """The experiments of which a complete record is published, by name."""
    return {e.name: e for e in find_experiments() if e.name not in WITHOUT_RECORD}


def published(experiment: Experiment) -> xr.Dataset | None:
    """The published record of the most complete scale, None where a cell of it is missing."""
    if not load_records(experiment, results="published"):
        return None
    data = at.load(experiment, results="published")
    return None if MISSING_CELLS in data.attrs else data


def condition_names(condition: nodes.Node) -> set[str]:
    """The names in a condition of a template."""
    parts = (condition, *condition.find_all(nodes.Name))
    return {part.name for part in parts if isinstance(part, nodes.Name)}


def perturbations(data: xr.Dataset) -> Iterator[tuple[str, Change]]:
    """Names and changes of a record: coordinates, names and the places of gaps stay.

    Values are mirrored within their range, reversed or sorted along each axis, reversed along all,
    and multiplied; whole numbers, truth values and labels of an axis are reversed and sorted only.
    """
    axes = [str(name) for name, size in data.sizes.items() if size > 1]
    yield "mirrored", partial(_everywhere, change=_mirrored)
    for factor in FACTORS:
        yield f"times {factor:g}", partial(_everywhere, change=partial(np.multiply, factor))
    for axis in axes:
        yield f"reversed along {axis}", partial(_along, axis=axis, change=_reversed)
        yield f"rising along {axis}", partial(_along, axis=axis, change=_rising)
        yield f"falling along {axis}", partial(_along, axis=axis, change=_falling)
    yield "reversed along all axes", partial(_reversed_along_all, axes=axes)


def further_perturbations(data: xr.Dataset) -> Iterator[tuple[str, Change]]:
    """More of them: levelled, tilted, spread, of one name doubled, and all equal.

    A tilt multiplies by a factor that changes along an axis; a spread multiplies deviations from
    the mean along one, in logarithms where all values are positive.
    """
    axes = [str(name) for name, size in data.sizes.items() if size > 1]
    for axis in axes:
        yield f"level along {axis}", partial(_along, axis=axis, change=_level)
        for name, end in (("up", 2.0), ("down", 0.5)):
            yield f"tilted {name} along {axis}", partial(_tilted, axis=axis, end=end)
        for factor in SPREADS:
            spread = partial(_spread, axis=axis, factor=factor)
            yield f"spread along {axis} times {factor:g}", spread
    for axis in (name for name in axes if data[name].dtype.kind == "U"):
        for label in data[axis].values:
            yield f"twice for {label}", partial(_twice, axis=axis, label=label)
    yield "all equal", partial(_everywhere, change=np.ones_like)


def one_at_a_time(data: xr.Dataset) -> Iterator[tuple[str, Change]]:
    """Names and changes of a record that multiply one measured variable and leave the others."""
    for name in _scaled(data):
        yield f"{name} times {LARGE:g}", partial(_one_times, name=name, factor=LARGE)


def negated(data: xr.Dataset) -> Iterator[tuple[str, Change]]:
    """Names and changes of a record that negate one measured variable, or centre it at 0.

    Of a variable that is positive by definition a caller may raise `UserError` then.
    """
    for name in _scaled(data):
        yield f"{name} negated", partial(_one_times, name=name, factor=-1.0)
        yield f"{name} centred", partial(_one_centred, name=name)


def _one_times(data: xr.Dataset, name: str, factor: float) -> xr.Dataset:
    return data.assign({name: data[name] * factor})


def _one_centred(data: xr.Dataset, name: str) -> xr.Dataset:
    return data.assign({name: data[name] - data[name].median()})


def _measured(data: xr.Dataset) -> list[str]:
    return [str(name) for name in data.data_vars if data.variables[name].dtype.kind in "fiub"]


def _of_labels(data: xr.Dataset, name: str) -> bool:
    """Whether a variable holds labels of an axis, such as the best of a grid."""
    values = data.variables[name].values
    values = values[np.isfinite(values)]
    return any(np.isin(values, axis.values).all() for axis in data.coords.values())


def _everywhere(data: xr.Dataset, change: Callable[[np.ndarray], np.ndarray]) -> xr.Dataset:
    return _replaced(
        data,
        {
            name: change(data.variables[name].values).astype(data.variables[name].dtype)
            for name in _scaled(data)
        },
    )


def _along(
    data: xr.Dataset, axis: str, change: Callable[[np.ndarray, int], np.ndarray]
) -> xr.Dataset:
    variables = {name: data.variables[name] for name in _measured(data)}
    return _replaced(
        data,
        {
            name: change(variable.values, variable.get_axis_num(axis))
            for name, variable in variables.items()
            if axis in variable.dims
        },
    )


def _replaced(data: xr.Dataset, arrays: dict[str, np.ndarray]) -> xr.Dataset:
    """Arrays in the place of those of the same names; their axes and labels stay."""
    return data.assign({name: data.variables[name].copy(data=a) for name, a in arrays.items()})


def _scaled(data: xr.Dataset) -> list[str]:
    """The measured variables that may be multiplied: numbers that are not labels of an axis."""
    if _SCALED[0] is not data:
        names = [
            n for n in _measured(data) if data[n].dtype.kind == "f" and not _of_labels(data, n)
        ]
        _SCALED[:] = [data, names]
    return _SCALED[1]


_SCALED: list = [None, []]
"""The record that was changed last and its variables that may be multiplied."""


def _tilted(data: xr.Dataset, axis: str, end: float) -> xr.Dataset:
    return _times(data, axis, np.geomspace(1.0, end, data.sizes[axis]))


def _twice(data: xr.Dataset, axis: str, label: str) -> xr.Dataset:
    return _times(data, axis, np.where(data[axis].values == label, 2.0, 1.0))


def _times(data: xr.Dataset, axis: str, by_place: np.ndarray) -> xr.Dataset:
    factors = xr.Variable(axis, by_place)
    variables = {name: data.variables[name] for name in _scaled(data)}
    return _replaced(
        data,
        {
            name: (variable * factors).transpose(*variable.dims).values
            for name, variable in variables.items()
            if axis in variable.dims
        },
    )


def _spread(data: xr.Dataset, axis: str, factor: float) -> xr.Dataset:
    variables = {name: data.variables[name] for name in _scaled(data)}
    return _replaced(
        data,
        {
            name: _farther(variable, axis, factor)
            for name, variable in variables.items()
            if axis in variable.dims
        },
    )


def _farther(values: xr.Variable, axis: str, factor: float) -> np.ndarray:
    is_positive = bool((values.fillna(1.0) > 0).all())
    scaled = np.log(values) if is_positive else values
    mean = scaled.mean(axis)
    changed = (mean + factor * (scaled - mean)).transpose(*values.dims).values
    return np.exp(changed) if is_positive else changed


def _reversed_along_all(data: xr.Dataset, axes: list[str]) -> xr.Dataset:
    for axis in axes:
        data = _along(data, axis, _reversed)
    return data


def _mirrored(values: np.ndarray) -> np.ndarray:
    finite = values[np.isfinite(values)]
    return finite.max() + finite.min() - values if finite.size else values


def _reversed(values: np.ndarray, axis: int) -> np.ndarray:
    if _has_no_gap(values):
        return np.flip(values, axis)
    return np.apply_along_axis(_between_gaps, axis, values, lambda there: there[::-1])


def _rising(values: np.ndarray, axis: int) -> np.ndarray:
    if _has_no_gap(values):
        return np.sort(values, axis)
    return np.apply_along_axis(_between_gaps, axis, values, np.sort)


def _falling(values: np.ndarray, axis: int) -> np.ndarray:
    if _has_no_gap(values):
        return np.flip(np.sort(values, axis), axis)
    return np.apply_along_axis(_between_gaps, axis, values, lambda there: np.sort(there)[::-1])


def _level(values: np.ndarray, axis: int) -> np.ndarray:
    if _has_no_gap(values):
        return np.repeat(values.take([0], axis), values.shape[axis], axis)
    return np.apply_along_axis(_between_gaps, axis, values, lambda there: there[:1])


def _has_no_gap(values: np.ndarray) -> bool:
    return values.dtype.kind != "f" or not np.isnan(values).any()


def _between_gaps(line: np.ndarray, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    there = ~np.isnan(line) if line.dtype.kind == "f" else np.ones(line.shape, bool)
    changed = line.copy()
    changed[there] = change(line[there])
    return changed
