"""An experiment: a grid, what one of its cells computes, and how the results are shown."""

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
        title: of the figure.
        caption: text with mathematics between dollar signs.
        figure: the drawing.
        values: of the caption's template in the experiment's prose, where the caption is not
            written yet.
    """

    title: str
    caption: str
    figure: "matplotlib.figure.Figure"
    values: Mapping[str, Any] | None = None


Run = Callable[[Settings, jax.Array], "xarray.Dataset"]
"""Computes one cell from its settings and the key of its seed. Models that it trained and that are
worth keeping stand in the data set's attribute `models`, by name, as `stored_form` gives them."""
Tabulate = Callable[["xarray.Dataset"], "pandas.DataFrame"]
"""Makes a table of the whole data set, as `attlas.experiments.panels.table.Table` does."""


@runtime_checkable
class Beginning(Protocol):
    """A table that can make its first rows alone, as a `Table` of the panels can."""

    def beginning(self, data: "xarray.Dataset", most: int | None) -> "pandas.DataFrame":
        """The first rows; all of them when None."""
        ...


Draw = Callable[["xarray.Dataset"], CaptionedFigure]
"""Draws one figure of the whole data set, as `attlas.experiments.panels.plot.Plot` does."""
Answer = Callable[["xarray.Dataset"], Mapping[str, Any]]
"""Computes the values of the answer's template from the whole data set."""


@dataclass(frozen=True, eq=False, init=False)
class Experiment:
    r"""A grid of cells, and how what they gave is shown.

    `run` is called in a worker process, under float64 or float32 as the cell says; it is a
    pure function of the settings, and of a key made of the cell's seed. The module that defines
    the experiment is importable there. Its trainings by `attlas.training` resume from checkpoints
    when a run was killed; a long loop of another kind does if it calls
    `attlas.experiments.part_cache`.

    Attributes:
        title: a few words.
        question: what the experiment answers, on one line: the first paragraph of what is given,
            the module's docstring.
        grid: its settings at three scales.
        run: results of one cell, a data set with named axes.
        table: the numbers beside the paper's: a table of the whole data set, or several, one
            below the other.
        figures: each draws one figure of the whole data set.
        note: remark for the reader: deviations from the paper.
        captions: templates by the title of their figure. They, the note and the answer come from
            the Markdown file beside the module unless given, see `attlas.experiments.prose`.
        answer: computes the values of the answer.
        answer_text: template of the sentence that answers the question.
        part: the setting that says which part of the experiment a cell is, if it has parts: cells
            of different parts give different arrays.
        revision: raise it when `run` changes its results: old records are then not used.
        name: unique, the module's name unless given; also the folder of its records.
        paper: key in `references.bib`, the package's name unless given.
        module: dotted name of the defining module, filled in.
        source: file and line, filled in.
        home: of a user's own: the file or module by which workers find it, filled in where it is
            loaded.
    """

    title: str
    question: str
    grid: Grid
    run: Run
    table: Tabulate | Sequence[Tabulate]
    figures: Sequence[Draw]
    note: str
    captions: Mapping[str, str]
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
        package, _, own = module.rpartition(".")
        name = name or own
        if not name.replace("_", "").replace("-", "").isalnum() or name in RESERVED:
            raise ValueError(f"experiment name '{name}' is not a word of its own")
        if captions is None:
            own_note, captions, own_answer = read_prose(
                Path(caller.f_code.co_filename).with_suffix(".md")
            )
            note, answer_text = note or own_note, answer_text or own_answer
        vars(self).update(  # frozen: no attribute can be set
            title=title,
            question=" ".join((question or "").strip().split("\n\n")[0].split()),
            grid=grid,
            run=run,
            table=table,
            figures=figures,
            note=note,
            captions=captions,
            answer=answer,
            answer_text=answer_text,
            part=part,
            revision=revision,
            name=name,
            paper=paper or _paper(package, caller.f_code.co_filename),
            module=module,
            source=source or (caller.f_code.co_filename, caller.f_lineno),
            home=home,
        )

    def cells(self, scale: Scale | str) -> tuple[Cell, ...]:
        """The cells of a scale.

        Args:
            scale: which.

        Returns:
            Cells, see `Grid.cells`.
        """
        return self.grid.cells(scale)

    def changed(self, values: Mapping[str, Any]) -> "Experiment":
        """The experiment with other values of some settings.

        Args:
            values: see `Grid.changed`.

        Returns:
            Another experiment of the same name; its records have keys of their own.

        Raises:
            UserError: if a setting is unknown, or a value is not of its type.
        """
        return replace(self, grid=self.grid.changed(values, self.name))

    def computed(self, cell: Cell) -> tuple[dict[str, np.ndarray], Layout]:
        """What one cell gives.

        Args:
            cell: of the grid.

        Returns:
            Arrays by name, and their axes.
        """
        return self.computed_with_models(cell)[:2]

    def computed_with_models(
        self, cell: Cell
    ) -> "tuple[dict[str, np.ndarray], Layout, dict[str, StoredForm]]":
        """What one cell gives, with the models that it trained.

        Args:
            cell: of the grid.

        Returns:
            Arrays by name, their axes, and models by name.
        """
        settings = Settings(cell.settings, seed=cell.seed, dtype=cell.dtype)
        from attlas.experiments.join import plain_text  # an import of xarray

        found = plain_text(self.run(settings, jax.random.key(cell.seed)))
        arrays = {str(n): v.values for n, v in found.variables.items()}
        return arrays, Layout.of(found), found.attrs.get("models", {})

    def dataset(self, records: Sequence[Record]) -> "xarray.Dataset":
        """The records as one data set, its coordinates the grid's axes and members.

        Settings that all cells share are its attributes; others that a cell has, lists apart, are
        coordinates along the axes that they follow.

        Args:
            records: of cells of one grid, at least one.

        Returns:
            Labelled arrays; what has not been computed is NaN.
        """
        from attlas.experiments.join import join_parts

        shared = _shared(records)
        whole = join_parts([self._labelled(record) for record in records])
        axes = [name for name in self.grid.axes if name in whole.dims]
        rest = {n: v for r in records for n, v in r.cell.settings.items() if n not in shared}
        for name in (n for n, value in rest.items() if not isinstance(value, list)):
            followed = _followed(name, [r.cell.settings for r in records], axes)
            if followed and name not in (*whole.variables, *axes, "members"):
                axis, values = followed
                labels = whole[axis].values.tolist()
                whole = whole.assign_coords({name: (axis, [values[label] for label in labels])})
        return whole.assign_attrs({**shared, "experiment": self.name})

    def shown_table(self, records: Sequence[Record]) -> "pandas.DataFrame":
        """The table of some records.

        Args:
            records: of cells of one grid, at least one.

        Returns:
            The table.
        """
        return self.tabulated(self.dataset(records))

    def tabulated(self, data: "xarray.Dataset", most: int | None = None) -> "pandas.DataFrame":
        """The table of a data set, as `attlas.experiments.load.load` gives it.

        Args:
            data: all cells with their axes.
            most: rows that are made of each part that can make fewer; all of them when None.

        Returns:
            The table.
        """
        import pandas as pd

        tables = self.table if isinstance(self.table, Sequence) else (self.table,)
        made = (
            each.beginning(data, most) if isinstance(each, Beginning) else each(data)
            for each in tables
        )
        return pd.concat(made, ignore_index=True)

    def shown_figures(self, records: Sequence[Record]) -> tuple[CaptionedFigure, ...]:
        """The figures of some records.

        Args:
            records: of cells of one grid, at least one.

        Returns:
            Figures with captions.
        """
        return self.drawn(self.dataset(records))

    def drawn(self, data: "xarray.Dataset") -> tuple[CaptionedFigure, ...]:
        """The figures of a data set, as `attlas.experiments.load.load` gives it.

        Args:
            data: all cells with their axes.

        Returns:
            Figures with captions.
        """
        return tuple(self._captioned(each(data)) for each in self.figures)

    def answered(self, data: "xarray.Dataset") -> str:
        """The answer to the question, in one sentence or two.

        Args:
            data: all cells with their axes, as `attlas.experiments.load.load` gives it.

        Returns:
            Text with mathematics between dollar signs; empty where the prose has no section
            '## Answer' or the data lack a number that it needs.
        """
        return self.answered_with_values(data)[0]

    def answered_with_values(self, data: "xarray.Dataset") -> tuple[str, Mapping[str, Any]]:
        """The answer to the question, and the values that its template may name.

        Args:
            data: all cells with their axes.

        Returns:
            The answer as `answered` gives it, and values by name.
        """
        if not self.answer_text:
            return "", {}
        # The functions of the captions may serve: an answer is shorter than they are.
        values = self.answer(data) if self.answer else {}
        text = written(self.answer_text, values, all_used=False)
        return "" if has_gaps(text) else text, values

    def _captioned(self, shown: CaptionedFigure) -> CaptionedFigure:
        """The figure with its caption written out."""
        caption = shown.caption
        if shown.values is not None:
            if shown.title not in self.captions:
                raise ValueError(f"the prose of '{self.name}' has no section '## {shown.title}'")
            caption = written(self.captions[shown.title], shown.values)
        return replace(shown, caption=without_gaps(caption), values=None)

    def _labelled(self, record: Record) -> "Part":
        """One record on the axes of its grid."""
        part, s = record.part, record.cell.settings
        if "members" in s and "member" not in part.sizes:
            part = part.labelled("member", [record.cell.seed])
        elif "members" in s and "member" not in part.coordinates:
            numbers = record.cell.seed + np.arange(part.sizes["member"])
            part = part.labelled("member", numbers)
        # An axis of lists, or one that the results name themselves, is there already.
        sizes = part.sizes
        own = [n for n in self.grid.axes if n not in sizes and not isinstance(s[n], list)]
        for name in reversed(own):
            part = part.labelled(name, [s[name]])
        return part


def _paper(package: str, filename: str) -> str:
    """The project of a user's file, else the package, else the file."""
    project = project_of(Path(filename))
    if project is not None and project.key:
        return project.key
    return package.rpartition(".")[2] or paper_of(filename)


def _shared(records: Sequence[Record]) -> dict[str, Any]:
    """The settings that all cells have in common."""
    first = records[0].cell.settings
    every = [record.cell.settings for record in records]
    return {
        name: value
        for name, value in first.items()
        if all(name in s and s[name] == value for s in every)
    }


def _followed(
    name: str, settings: Sequence[Mapping[str, Any]], axes: Sequence[str]
) -> tuple[str, dict[Any, Any]] | None:
    """The one axis that a setting follows, with its value at each label."""
    for axis in axes:
        values: dict[Any, Any] = {}
        if all(values.setdefault(s[axis], s.get(name)) == s.get(name) for s in settings):
            return axis, values
    return None
