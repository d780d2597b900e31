"""A part of a cell that is computed once, also where the cell is stopped and goes on later."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.core.checkpoint import new_stage, without_checkpoints
from attlas.experiments.record import Layout

if TYPE_CHECKING:  # imports a third of a worker's start
    import xarray

_LAYOUT = "layout"


def kept_part(compute: "Callable[..., xarray.Dataset]", *given: Any) -> "xarray.Dataset":
    """What a function gives, kept where the states of cells are: for loops that are no training.

    In `attlas.experiments.experiment.Experiment.run`, in place of a call. Trainings within the
    part keep no states of their own.

    Args:
        compute: gives a data set without attributes.
        given: its arguments.

    Returns:
        The data set, computed now or by a process that was stopped.

    Raises:
        ValueError: if the data set has attributes.

    Examples:
        >>> import xarray as xr
        >>> kept_part(lambda n: xr.Dataset({"y": ("x", np.arange(n))}), 3).y.values.tolist()
        [0, 1, 2]
    """
    stage = new_stage((), given)
    if stage is None:
        return compute(*given)
    from attlas.experiments.join import Part, plain_text  # imports xarray

    kept = stage.restored()
    if kept is None:
        with without_checkpoints():
            found = plain_text(compute(*given))
        if found.attrs:
            raise ValueError(f"a part has attributes {sorted(found.attrs)}: give them to the whole")
        layout = Layout.of(found)
        told = json.dumps([layout.dims, layout.coordinates])
        kept = {str(name): variable.values for name, variable in found.variables.items()}
        kept = {f"array.{name}": array for name, array in kept.items()} | {_LAYOUT: np.array(told)}
        ended = kept
        stage.offer(1, lambda: ended, is_last=True)
    dims, coordinates = json.loads(str(kept[_LAYOUT]))
    whole = {name: (tuple(axes), kept[f"array.{name}"]) for name, axes in dims.items()}
    return Part(whole, frozenset(coordinates)).dataset
