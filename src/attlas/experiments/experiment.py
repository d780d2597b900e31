"""An experiment: a grid, the function that computes one cell, and the display of the results."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import jax
import numpy as np

from attlas.experiments.cell import Cell, Scale
from attlas.experiments.grid import Grid
from attlas.experiments.prose import has_gaps, read_prose, without_gaps, written
from attlas.experiments.reading import reading_of
from attlas.experiments.record import Layout, Record
from attlas.experiments.settings import Settings
from attlas.projects.project import paper_of, project_of

if TYPE_CHECKING:  # they cost a worker half of its start, and workers draw nothing
    import matplotlib.figure
    import pandas
    import xarray

    from attlas.experiments.join import Part
    from attlas.transformers.attlas_model import StoredForm

RESERVED = ("verdicts", "witnesses", "models")
_CONSTRUCTORS = (__name__, "jaxtyping", "beartype")


@dataclass(frozen=True, eq=False)
class CaptionedFigure:
    """One figure of an experiment with the caption that answers the experiment's question.

    Attributes:
        caption: text with mathematics between dollar signs.
        values: values of the caption's template in the experiment's prose, until the caption is
            written.
        reading: what a reader must know who sees nothing else: the data, the model, the runs, and
            what a mark, a line or a band is.
    """

    title: str
    caption: str
    figure: "matplotlib.figure.Figure"
    values: Mapping[str, Any] | None = None
    reading: str = ""


Run = Callable[[Settings, jax.Array], "xarray.Dataset"]
"""Computes one cell from its settings and the key of its seed. Trained models to be saved go into
the data set's attribute `models`, by name, in their `stored_form`."""
Tabulate = Callable[["xarray.Dataset"], "pandas.DataFrame"]
"""Makes a table of the whole data set, as `attlas.experiments.panels.table.Table` does."""


@runtime_checkable
class Beginning(Protocol):
    """A table that can compute its first rows only, such as a `Table` of the panels."""

    def beginning(self, data: "xarray.Dataset", most: int | None) -> "pandas.DataFrame":
        """The first rows; all of them when None."""
        ...


Draw = Callable[["xarray.Dataset"], CaptionedFigure]
"""Draws one figure of the whole data set, as `attlas.experiments.panels.plot.Plot` does."""
Answer = Callable[["xarray.Dataset"], Mapping[str, Any]]
"""Computes the values of the answer's template from the whole data set."""


@dataclass(frozen=True, eq=False, init=False)
class Experiment:
    r"""A grid of cells, and the display of their results.

    `run` is called in a worker process, under float64 or float32 as the cell says; it is a
    pure function of the settings and of a key made from the cell's seed. The worker must be able
    to import the module that defines the experiment. Trainings by `attlas.training` resume from
    checkpoints after a kill; other long loops do if they use `attlas.experiments.part_cache`.

    Attributes:
        question: the question it answers, on one line: the first paragraph of the text passed in,
            usually the module's docstring.
        grid: settings at three scales.
        run: computes one cell, a data set with named axes.
        table: one or several tables of the whole data set, with the paper's numbers beside ours.
        figures: functions that draw one figure each from the whole data set.
        note: remark for the reader, such as deviations from the paper.
        captions: templates by title of the figure. By default captions, note and answer come from
            the Markdown file beside the module, see `attlas.experiments.prose`.
        readings: templates of what one must know to read a figure, by its title; that of all has
            the title "". By default they come from the same file.
        answer: computes the values of the answer's template.
        answer_text: template of the sentence that answers the question.
        part: the setting that says which part of the experiment a cell belongs to; cells of
            different parts give different arrays.
        revision: to be raised when `run` changes its results: older records are then ignored.
        name: unique name, also of the folder of its records; by default the module's.
        paper: key in `references.bib`; by default the package's name.
        module: dotted name of the defining module; set automatically.
        source: file and line; set automatically.
        home: file or module by which workers find a user's experiment; set on loading.
    """

    title: str
    question: str
    grid: Grid
    run: Run
    table: Tabulate | Sequence[Tabulate]
    figures: Sequence[Draw]
    note: str
    captions: Mapping[str, str]
    readings: Mapping[str, str]
    answer: Answer | None
    answer_text: str
    part: str
    revision: int
    name: str
    paper: str
    module: str
    source: tuple[str, int]
    home: str

    def __init__(
        self,
        *,
        title: str,
        question: str | None,
        grid: Grid,
        run: Run,
        table: Tabulate | Sequence[Tabulate],
        figures: Sequence[Draw],
        note: str = "",
        captions: Mapping[str, str] | None = None,
        readings: Mapping[str, str] | None = None,
        answer: Answer | None = None,
        answer_text: str = "",
        part: str = "",
        revision: int = 1,
        name: str = "",
        paper: str = "",
        module: str = "",
        source: tuple[str, int] | None = None,
        home: str = "",
    ):
        # Tests wrap the constructor in shape checks: look past them.
        caller = sys._getframe(1)
        while caller.f_back and caller.f_globals["__name__"].startswith(_CONSTRUCTORS):
            caller = caller.f_back
        module = module or caller.f_globals["__name__"]
        package, _, module_name = module.rpartition(".")
        name = name or module_name
        if not name.replace("_", "").replace("-", "").isalnum() or name in RESERVED:
            raise ValueError(
                f"experiment name '{name}' is reserved or has other signs than letters, digits, - _"
            )
        if captions is None:
            prose = read_prose(Path(caller.f_code.co_filename).with_suffix(".md"))
            note, answer_text = note or prose.note, answer_text or prose.answer
            captions, readings = prose.captions, readings or prose.readings
        vars(self).update(  # frozen: no attribute can be set
            title=title,
            question=" ".join((question or "").strip().split("\n\n")[0].split()),
            grid=grid,
            run=run,
            table=table,
            figures=figures,
            note=note,
            captions=captions,
            readings=readings or {},
            answer=answer,
            answer_text=answer_text,
            part=part,
            revision=revision,
            name=name,
            paper=paper or paper_of_module(package, caller.f_code.co_filename),
            module=module,
            source=source or (caller.f_code.co_filename, caller.f_lineno),
            home=home,
        )

    def cells(self, scale: Scale | str) -> tuple[Cell, ...]:
        """The cells of a scale, see `Grid.cells`."""
        return self.grid.cells(scale)

    def changed(self, values: Mapping[str, Any]) -> "Experiment":
        """The experiment of the same name with other values of some settings, hence other records.

        Raises:
            UserError: if a setting is unknown, or a value is not of its type.
        """
        return replace(self, grid=self.grid.changed(values, self.name))

    def computed(self, cell: Cell) -> tuple[dict[str, np.ndarray], Layout]:
        """Compute one cell: arrays by name, and their axes."""
        return self.computed_with_models(cell)[:2]

    def computed_with_models(
        self, cell: Cell
    ) -> "tuple[dict[str, np.ndarray], Layout, dict[str, StoredForm]]":
        """Compute one cell: arrays by name, their axes, and trained models by name."""
        settings = Settings(cell.settings, seed=cell.seed, dtype=cell.dtype)
        from attlas.experiments.join import plain_text  # an import of xarray

        dataset = plain_text(self.run(settings, jax.random.key(cell.seed)))
        arrays = {str(n): v.values for n, v in dataset.variables.items()}
        return arrays, Layout.of(dataset), dataset.attrs.get("models", {})

    def dataset(self, records: Sequence[Record], cells: Sequence[Cell] = ()) -> "xarray.Dataset":
        """The records as one data set, whose coordinates are the grid's axes and members.

        Settings that all cells share become attributes. Other settings, except lists, become
        coordinates along the axis on which they depend. Cells not yet computed are NaN.

        Args:
            records: records of one grid, at least one.
            cells: of the grid, where some have no record: their labels are there as well.
        """
        from attlas.experiments.join import MISSING_CELLS, join_parts

        parts = [self._labelled(record) for record in records]
        settings = [cell.settings for cell in cells or [record.cell for record in records]]
        shared = _shared(settings)
        if len(cells) > len(records):
            parts.insert(0, _labels(self.grid.axes, settings, parts[0]))
            shared[MISSING_CELLS] = len(cells) - len(records)
        joined = join_parts(parts)
        axes = [name for name in self.grid.axes if name in joined.dims]
        varying = {n: v for s in settings for n, v in s.items() if n not in shared}
        for name in (n for n, value in varying.items() if not isinstance(value, list)):
            followed = _followed(name, settings, axes)
            if followed and name not in (*joined.variables, *axes, "members"):
                axis, values = followed
                labels = joined[axis].values.tolist()
                joined = joined.assign_coords({name: (axis, [values[label] for label in labels])})
        return joined.assign_attrs({**shared, "experiment": self.name})

    def shown_table(self, records: Sequence[Record]) -> "pandas.DataFrame":
        """The table of the records of a grid, at least one."""
        return self.tabulated(self.dataset(records))

    def tabulated(self, data: "xarray.Dataset", most: int | None = None) -> "pandas.DataFrame":
        """The table of a data set that `attlas.experiments.load.load` returns.

        Args:
            most: maximal number of rows from each table that can stop early; all when None.
        """
        import pandas as pd

        tables = self.table if isinstance(self.table, Sequence) else (self.table,)
        frames = (
            tabulate.beginning(data, most) if isinstance(tabulate, Beginning) else tabulate(data)
            for tabulate in tables
        )
        return pd.concat(frames, ignore_index=True)

    def shown_figures(self, records: Sequence[Record]) -> tuple[CaptionedFigure, ...]:
        """The figures of the records of a grid, at least one."""
        return self.drawn(self.dataset(records))

    def drawn(self, data: "xarray.Dataset") -> tuple[CaptionedFigure, ...]:
        """The figures of a data set that `attlas.experiments.load.load` returns."""
        return tuple(self.captioned(draw, data) for draw in self.figures)

    def captioned(self, draw: Draw, data: "xarray.Dataset") -> CaptionedFigure:
        """One figure of a data set, with its caption written out.

        Raises:
            ValueError: if the prose of the experiment has no section of the figure's title.
        """
        figure = draw(data)
        caption = figure.caption
        if figure.values is not None:
            if figure.title not in self.captions:
                raise ValueError(f"the prose of '{self.name}' has no section '## {figure.title}'")
            caption = written(self.captions[figure.title], figure.values)
        reading = reading_of(self.readings, figure, data, self.paper)
        return replace(figure, caption=without_gaps(caption), values=None, reading=reading)

    def answered(self, data: "xarray.Dataset") -> str:
        """The answer to the question, in one or two sentences with $mathematics$.

        Empty if the prose has no section '## Answer', or the data lack a cell of their grid or a
        number that it needs.
        """
        return self.answered_with_values(data)[0]

    def answered_with_values(self, data: "xarray.Dataset") -> tuple[str, Mapping[str, Any]]:
        """The answer to the question as in `answered`, and the values of its template by name."""
        from attlas.experiments.join import MISSING_CELLS

        if not self.answer_text or data.attrs.get(MISSING_CELLS):
            return "", {}
        # Functions of captions serve too: an answer uses only some of their values.
        values = self.answer(data) if self.answer else {}
        text = written(self.answer_text, values, all_used=False)
        return "" if has_gaps(text) else text, values

    def _labelled(self, record: Record) -> "Part":
        """One record with the axes of its grid."""
        part, s = record.part, record.cell.settings
        if "members" in s and "member" not in part.sizes:
            part = part.labelled("member", [record.cell.seed])
        elif "members" in s and "member" not in part.coordinates:
            numbers = record.cell.seed + np.arange(part.sizes["member"])
            part = part.labelled("member", numbers)
        # The results already have an axis of lists, or one that they name themselves.
        sizes = part.sizes
        missing_axes = [n for n in self.grid.axes if n not in sizes and not isinstance(s[n], list)]
        for name in reversed(missing_axes):
            part = part.labelled(name, [s[name]])
        return part


def paper_of_module(package: str, filename: str) -> str:
    """The paper of an experiment: the project of a user's file, else the package, else the file.

    Examples:
        >>> paper_of_module("papers.doe2026", "/never/made.py")
        'doe2026'
    """
    project = project_of(Path(filename))
    if project is not None and project.key:
        return project.key
    return package.rpartition(".")[2] or paper_of(filename)


def _labels(axes: Sequence[str], settings: Sequence[Mapping[str, Any]], labelled: "Part") -> "Part":
    """The labels that the cells of a grid give to its axes, without results."""
    from attlas.experiments.join import Part

    names = [
        name
        for name in axes
        if name in labelled.coordinates and not any(isinstance(s[name], list) for s in settings)
    ]
    labels = {name: np.asarray(list(dict.fromkeys(s[name] for s in settings))) for name in names}
    return Part({name: ((name,), values) for name, values in labels.items()}, frozenset(names))


def _shared(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings that have one value in all cells."""
    first, *others = settings
    return {
        name: value
        for name, value in first.items()
        if all(name in s and s[name] == value for s in others)
    }


def _followed(
    name: str, settings: Sequence[Mapping[str, Any]], axes: Sequence[str]
) -> tuple[str, dict[Any, Any]] | None:
    """The axis that determines a setting, with the setting's value at each label."""
    for axis in axes:
        values: dict[Any, Any] = {}
        if all(values.setdefault(s[axis], s.get(name)) == s.get(name) for s in settings):
            return axis, values
    return None
