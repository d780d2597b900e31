"""A cache for a part of a cell, so that a resumed cell does not compute it again."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from attlas.core.checkpoint import new_stage, without_checkpoints
from attlas.experiments.record import Layout

if TYPE_CHECKING:  # imports a third of a worker's start
    import xarray

_LAYOUT = "layout"


def _as_array(leaf: Any) -> Any:
    return np.array(leaf.encode()) if isinstance(leaf, str) else leaf


def cached_part(compute: "Callable[..., xarray.Dataset]", *arguments: Any) -> "xarray.Dataset":
    """The result of a function, cached beside the cell's checkpoints: for loops without training.

    To be used within `Experiment.run` instead of a plain call. A stored result is used again only
    for the same function with equal numbers, arrays and texts as arguments, in the same place of
    the same cell. Trainings within the part write no checkpoints.

    Args:
        compute: returns a data set without attributes.

    Raises:
        ValueError: if the data set has attributes.

    Examples:
        >>> import xarray as xr
        >>> cached_part(lambda n: xr.Dataset({"y": ("x", np.arange(n))}), 3).y.values.tolist()
        [0, 1, 2]
    """
    # The digest of a stage ignores texts, so that they become arrays.
    named = getattr(compute, "__qualname__", ""), arguments
    stage = new_stage(jax.tree.map(_as_array, named))
    if stage is None:
        return compute(*arguments)
    from attlas.experiments.join import Part, plain_text  # imports xarray

    arrays = stage.restored()
    if arrays is None:
        with without_checkpoints():
            dataset = plain_text(compute(*arguments))
        if dataset.attrs:
            raise ValueError(
                f"a cached part has attributes {sorted(dataset.attrs)}: "
                "set them on the cell's data set instead"
            )
        layout = Layout.of(dataset)
        layout_text = json.dumps([layout.dims, layout.coordinates])
        arrays = {str(name): variable.values for name, variable in dataset.variables.items()}
        arrays = {f"array.{name}": array for name, array in arrays.items()} | {
            _LAYOUT: np.array(layout_text)
        }
        final = arrays
        stage.offer(1, lambda: final, is_last=True)
    dims, coordinates = json.loads(str(arrays[_LAYOUT]))
    variables = {name: (tuple(axes), arrays[f"array.{name}"]) for name, axes in dims.items()}
    return Part(variables, frozenset(coordinates)).dataset
