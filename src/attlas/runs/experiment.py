"""An experiment: a grid at three scales, what one cell computes, and how it is shown."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from attlas.runs.cell import Cell as Cell
from attlas.runs.cell import Scale as Scale
from attlas.runs.record import Record

if TYPE_CHECKING:  # they cost a worker half of its start, and workers draw nothing
    import matplotlib.figure
    import pandas

RESERVED = ("verdicts", "witnesses")
_CONSTRUCTORS = (__name__, "jaxtyping", "beartype")


@dataclass(frozen=True, eq=False)
class Panel:
    """One figure of an experiment with the caption that answers the experiment's question."""

    title: str
    caption: str
    figure: "matplotlib.figure.Figure"


@dataclass(frozen=True, eq=False)
class Experiment:
    r"""A grid of cells, and how its records are shown.

    `run` is called in a worker process, under float64 or float32 as the cell says; it is a
    pure function of the cell. The module that defines the experiment is importable there.

    Attributes:
        name: unique, the file's name; also the folder of its records.
        paper: key in `references.bib`.
        title: a few words.
        question: what the experiment answers, one sentence.
        revision: raise it when `run` changes its results: old records are then not used.
        cells: the grid of a scale.
        run: results of one cell, arrays of numbers, booleans or text by name.
        table: one table of the records, the paper's numbers beside ours.
        figures: panels of the records.
        dims: names of the axes of each array, for `attlas.runs.load.to_xarray`.
        note: remark for the reader: deviations from the paper.
        module: dotted name of the defining module, filled in.
        source: file and line, filled in.
    """

    name: str
    paper: str
    title: str
    question: str
    revision: int
    cells: Callable[[Scale], tuple[Cell, ...]]
    run: Callable[[Cell], Mapping[str, np.ndarray]]
    table: Callable[[Sequence[Record]], "pandas.DataFrame"]
    figures: Callable[[Sequence[Record]], tuple[Panel, ...]]
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""
    module: str = ""
    source: tuple[str, int] = ("", 0)

    def __post_init__(self):
        if not self.name.replace("_", "").replace("-", "").isalnum() or self.name in RESERVED:
            raise ValueError(f"experiment name '{self.name}' is not a word of its own")
        # The constructor is generated, and tests wrap it in shape checks: look past both.
        caller = sys._getframe(1)
        while caller.f_back and caller.f_globals["__name__"].startswith(_CONSTRUCTORS):
            caller = caller.f_back
        if not self.module:
            object.__setattr__(self, "module", caller.f_globals["__name__"])
        if self.source == ("", 0):
            object.__setattr__(self, "source", (caller.f_code.co_filename, caller.f_lineno))
