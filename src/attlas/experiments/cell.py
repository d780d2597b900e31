"""A cell: one point of an experiment's grid, and the scales of a grid."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from attlas.core.errors import UserError
from attlas.experiments.packed import canonical_json

DTYPES = ("float64", "float32")


class Scale(StrEnum):
    """How large a grid is: seconds or minutes per experiment, or the sizes of the paper.

    `SMALL` is what two cores compute in about an hour, where the paper's own sizes take far longer;
    elsewhere it is `PAPER`, which is that much for a paper without sizes.
    """

    SMOKE = "smoke"
    QUICK = "quick"
    SMALL = "small"
    PAPER = "paper"


LONG = (Scale.PAPER, Scale.SMALL)
"""Scales whose cells take long, so that they keep checkpoints."""


def scale_named(name: str) -> Scale:
    """Parse the name of a scale.

    Raises:
        UserError: if it is unknown.

    Examples:
        >>> scale_named("huge")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: unknown scale 'huge': choose smoke, quick, small, paper
    """
    if name not in tuple(Scale):
        raise UserError(f"unknown scale '{name}': choose {', '.join(Scale)}")
    return Scale(name)


@dataclass(frozen=True)
class Cell:
    """One point of an experiment's grid; equal cells give equal records.

    Settings are brought to plain JSON at once (tuples become lists), so that a cell read
    back from a record equals the cell that was run.

    Attributes:
        settings: plain JSON by name.
        seed: seed of the cell's one key.
        dtype: "float64" or "float32"; the worker switches precision accordingly.
        data_hash: hash of the parsed content of a real data set, empty for generated data.

    Examples:
        >>> Cell({"p": 1.75, "sizes": (6, 8)}, seed=3).settings["sizes"]
        [6, 8]
        >>> Cell({"p": float("inf")})
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: settings {'p': inf} are not plain JSON (...
    """

    settings: Mapping[str, Any]
    seed: int = 0
    dtype: str = "float64"
    data_hash: str = ""

    def __post_init__(self):
        if self.dtype not in DTYPES:
            raise UserError(f"dtype '{self.dtype}' of a cell is not one of {', '.join(DTYPES)}")
        if not isinstance(self.settings, Mapping):
            what = type(self.settings).__name__
            raise UserError(f"settings of a cell are a {what}: give a mapping, of values by name")
        object.__setattr__(self, "settings", _plain(self.settings))

    @property
    def json(self) -> str:
        """The canonical JSON text of the cell, in which it travels to workers."""
        return canonical_json(
            {
                "settings": self.settings,
                "seed": self.seed,
                "dtype": self.dtype,
                "data_hash": self.data_hash,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Cell":
        """The cell of a canonical JSON text.

        Examples:
            >>> Cell.from_json(Cell({"p": 2}).json) == Cell({"p": 2})
            True
        """
        return cls(**json.loads(text))

    @property
    def label(self) -> str:
        """The settings in one short line, for progress and warnings.

        Examples:
            >>> Cell({"p": 2, "rate": 0.1}, seed=7).label
            'p=2 rate=0.1 seed=7'
        """
        named = [f"{name}={value}" for name, value in self.settings.items()]
        return " ".join([*named, f"seed={self.seed}"])


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they are read back from their canonical text."""
    # Plain values need no round trip through text: a grid may have very many cells.
    if all(type(name) is str and _is_plain(value) for name, value in settings.items()):
        return dict(sorted(settings.items()))
    return json.loads(canonical_json(dict(settings)))


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return kind is int or kind is str or kind is bool or (kind is float and math.isfinite(value))
