"""A record: the results of one cell of an experiment, under a key that hashes its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.core.errors import refuse_unreadable
from attlas.experiments.cell import Cell
from attlas.experiments.packed import SCHEMA, content_digest

if TYPE_CHECKING:
    import xarray

    from attlas.experiments.join import Part


@refuse_unreadable
def record_key(experiment: str, revision: int, cell: Cell) -> str:
    r"""The key sha256(schema, experiment, revision, settings, seed, dtype, data hash).

    Its 64 hexadecimal digits are the stem of the cell's files.

    Examples:
        >>> one = record_key("direction", 1, Cell({"p": 2, "n": 6}))
        >>> one == record_key("direction", 1, Cell({"n": 6, "p": 2}))
        True
        >>> one == record_key("direction", 2, Cell({"p": 2, "n": 6}))
        False
    """
    content = [
        SCHEMA,
        experiment,
        revision,
        cell.settings,
        cell.seed,
        cell.dtype,
        cell.data_hash,
    ]
    return content_digest(content)


@dataclass(frozen=True)
class Layout:
    """The axes and coordinates that make arrays a labelled data set.

    Attributes:
        dims: names of the axes of each array.
        coordinates: names of the arrays that label axes.
    """

    dims: Mapping[str, tuple[str, ...]]
    coordinates: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: "xarray.Dataset") -> "Layout":
        """The layout of a data set.

        Examples:
            >>> import xarray as xr
            >>> Layout.of(xr.Dataset({"y": ("x", [1.0])}, {"x": [2]})).coordinates
            ('x',)
        """
        dims = {str(n): tuple(map(str, v.dims)) for n, v in dataset.variables.items()}
        return cls(dims, tuple(map(str, dataset.coords)))

    def misfit(self, shapes: Mapping[str, Sequence[int]]) -> str:
        """Why arrays of these shapes do not fit the layout; empty if they do.

        Examples:
            >>> Layout({"y": ("x",)}).misfit({"y": (2, 3)})
            "array 'y' of shape (2, 3) has axes x"
            >>> Layout({"y": ("x",)}).misfit({"y": (2,)})
            ''
        """
        differing = self.dims.keys() ^ shapes.keys() | set(self.coordinates) - self.dims.keys()
        if differing:
            return f"its layout and its arrays differ in {', '.join(sorted(differing))}"
        sizes: dict[str, int] = {}
        for name, dims in self.dims.items():
            shape = tuple(shapes[name])
            if len(dims) != len(shape):
                return f"array '{name}' of shape {shape} has axes {', '.join(dims) or 'none'}"
            for dim, size in zip(dims, shape, strict=True):
                if sizes.setdefault(dim, size) != size:
                    return f"axis '{dim}' has {sizes[dim]} entries, and {size} in '{name}'"
        return ""


@dataclass(frozen=True, eq=False, repr=False)
class Record:
    """The results of one cell.

    `metadata` has code hash, versions, commit or None, device, flags, seconds, time and revision.
    """

    experiment: str
    cell: Cell
    arrays: Mapping[str, np.ndarray]
    metadata: Mapping[str, Any]
    key: str
    layout: Layout

    @property
    def whence(self) -> str:
        """Day, commit, machine and device of the computation."""
        metadata = self.metadata
        commit = str(metadata.get("commit") or "not known")[:12]
        machine = [str(metadata[name]) for name in ("platform", "device") if metadata.get(name)]
        return ", ".join([str(metadata.get("finished", ""))[:10], f"commit {commit}", *machine])

    @property
    def dataset(self) -> "xarray.Dataset":
        """The arrays with their axes and labels."""
        return self.part.dataset

    @property
    def part(self) -> "Part":
        """The arrays in the form in which they are joined with other cells."""
        from attlas.experiments.join import Part  # importing xarray takes half of a worker's start

        variables = {name: (self.layout.dims[name], array) for name, array in self.arrays.items()}
        return Part(variables, frozenset(self.layout.coordinates))

    def __repr__(self) -> str:
        from attlas.display.tables import described

        arrays = ", ".join(f"{name}={described(a)}" for name, a in self.arrays.items())
        return f"Record({self.experiment}, {self.cell.label}; {arrays}; key {self.key[:12]})"

    def _repr_html_(self) -> str:
        from attlas.display.tables import arrays_table

        return arrays_table(self.arrays, f"{self.experiment}: {self.cell.label}")
