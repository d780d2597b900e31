"""Every experiment runs at smoke scale; records make a table, figures, an answer, a data set."""

import re
from pathlib import Path

import matplotlib.figure
import matplotlib.pyplot as plt
import pytest
from answer_length import assert_few_words

from attlas.display.statements import prose
from attlas.experiments.cell import Scale
from attlas.experiments.experiment import Experiment
from attlas.experiments.find import find_experiments
from attlas.experiments.record import Record, record_key
from attlas.experiments.short_caption import split_caption
from attlas.experiments.worker import Computed, Task, compute
from attlas.site.findings import FILE

EXPERIMENTS = [
    pytest.param(experiment, id=experiment.name, marks=pytest.mark.xdist_group(experiment.name))
    for experiment in find_experiments()
]

BRIEF = {"attention", "factored", "linear_regions", "rademacher_length", "smallest_width"}
"""One of each paper, the quickest; the others take up to a minute, and are thorough."""


def records_of(experiment: Experiment) -> tuple[Record, ...]:
    """The smoke cells, run as a worker runs them."""
    records = []
    for cell in experiment.cells(Scale.SMOKE):
        done = compute(Task(experiment.module, experiment.name, cell.json))
        assert isinstance(done, Computed), done
        key = record_key(experiment.name, experiment.revision, cell)
        records.append(Record(experiment.name, cell, done.arrays, done.metadata, key, done.layout))
    return tuple(records)


def assert_shown(experiment: Experiment, records: tuple[Record, ...]) -> None:
    """Records make a table with named columns, and figures with a caption that ends."""
    table = experiment.shown_table(records)
    assert len(table) > 0
    assert all(isinstance(name, str) for name in table.columns)
    panels = experiment.shown_figures(records)
    assert panels
    for panel in panels:
        assert isinstance(panel.figure, matplotlib.figure.Figure)
        assert panel.figure.axes
        assert panel.title
        assert panel.caption.endswith(".")
        assert split_caption(panel.caption)[0], panel.caption  # its first sentence is short
        panel.figure.draw_without_rendering()
        plt.close(panel.figure)


def assert_answered(experiment: Experiment, records: tuple[Record, ...]) -> None:
    """All cells of a grid answer the question in one sentence, two at most."""
    answer, values = experiment.answered_with_values(experiment.dataset(records))
    assert answer.endswith(".")
    prose = (Path(experiment.source[0]).parents[1] / FILE).read_text("utf-8")
    named = re.findall(rf'value\("{experiment.name}", "(\w+)"\)', prose)
    assert set(named) <= values.keys()  # a finding that names another would never be shown
    assert len(re.findall(r"\.(?= [A-Z])", answer)) <= 2
    assert_few_words(answer)
    assert "{" not in re.sub(r"\$[^$]*\$", "", answer)


def smoke_parameters():
    """Every experiment; all but the brief ones are thorough."""
    for each in EXPERIMENTS:
        (experiment,) = each.values
        marks = [] if experiment.name in BRIEF else [pytest.mark.thorough]
        yield pytest.param(experiment, marks=[*each.marks, *marks], id=experiment.name)


@pytest.mark.parametrize("experiment", list(smoke_parameters()))
def test_smoke_scale_runs_and_is_shown(experiment):
    records = records_of(experiment)
    first, *further = records
    for record in records:
        for name, array in record.arrays.items():
            assert len(record.layout.dims[name]) == array.ndim, name
    assert_shown(experiment, records)
    assert_answered(experiment, records)
    if further:
        assert_shown(experiment, (first,))  # an interrupted run is shown as well
    assert set(experiment.dataset(records).data_vars) >= set(first.dataset.data_vars)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_cells_of_every_scale_differ_from_one_another(experiment):
    for scale in Scale:
        keys = [record_key(experiment.name, 1, cell) for cell in experiment.cells(scale)]
        assert len(set(keys)) == len(keys) > 0


def test_the_mathematics_of_every_note_is_typeset():
    told = {e.name: str(prose(e.note)) for e in find_experiments() if e.note}
    assert [name for name, text in told.items() if "untypeset" in text or "$" in text] == []
