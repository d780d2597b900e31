"""Where an experiment is defined, what it asks, and the shape of what it shows."""

import inspect
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

from attlas.core.errors import UserError
from attlas.experiments.cell import Cell, Scale
from attlas.experiments.experiment import CaptionedFigure, Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.record import Layout, Record


def make(**changes) -> Experiment:
    fields = {
        "title": "A toy",
        "question": "Does it run?",
        "grid": Grid(each={"x": [1, 2]}, fixed={"rate": 0.5, "steps": lambda s: 10 * s.x}),
        "run": lambda s, key: xr.Dataset({"y": s.x**2}),
        "table": lambda data: pd.DataFrame({"x": data.x, "y": data.y}),
        "figures": [lambda data: CaptionedFigure("Squares", "They rise.", Figure())],
    }
    return Experiment(**{**fields, **changes})


def records(experiment: Experiment) -> list[Record]:
    """What the cells of the smallest scale give, without a store."""
    found = []
    for cell in experiment.cells("smoke"):
        arrays, layout = experiment.computed(cell)
        found.append(Record(experiment.name, cell, arrays, {}, cell.label, layout))
    return found


def test_an_experiment_knows_the_module_and_line_that_define_it():
    frame = inspect.currentframe()
    assert frame is not None
    line = frame.f_lineno + 1
    made = Experiment(title="", question="", grid=Grid(), run=dict, table=(), figures=())
    assert made.module == __name__
    assert made.source == (__file__, line)
    assert made.name == __name__.rpartition(".")[2]
    other = replace(made, name="other", revision=2)
    assert (other.module, other.source) == (made.module, made.source)
    assert (other.name, other.revision, other.paper) == ("other", 2, made.paper)


def test_the_question_is_the_first_paragraph_of_a_docstring():
    assert make(question=__doc__).question.startswith("Where an experiment is defined, what")
    assert make(question="Is it\n    so?\n\n    Theorem 1 says so.").question == "Is it so?"
    assert make(question=None).question == ""


@pytest.mark.parametrize("name", ["verdicts", "witnesses", "a/b", ".."])
def test_a_name_that_cannot_be_a_folder_of_its_own_is_refused(name):
    with pytest.raises(ValueError, match="is reserved or has other signs"):
        make(name=name)


def test_cells_are_those_of_the_grid_and_of_a_changed_one():
    toy = make(name="toy")
    assert tuple(Scale) == ("smoke", "quick", "small", "paper")
    assert toy.cells(Scale.QUICK) == toy.grid.cells("quick")
    (cell,) = toy.changed({"x": "3"}).cells("quick")
    assert cell.settings == {"x": 3, "rate": 0.5, "steps": 30}
    with pytest.raises(UserError, match="toy has no setting 'y'"):
        toy.changed({"y": 1})


def test_the_data_set_tells_all_settings():
    data = make(name="toy").dataset(records(make(name="toy")))
    assert data.y.sel(x=2) == 4
    assert data.attrs == {"rate": 0.5, "experiment": "toy"}
    assert data.steps.dims == ("x",)
    assert data.steps.values.tolist() == [10, 20]


def test_tables_stand_below_each_other_and_figures_have_captions():
    whole = make(table=[lambda d: pd.DataFrame({"n": [d.sizes["x"]]}), make().table])
    shown = whole.shown_table(records(whole))
    assert shown.n.dropna().tolist() == [2]
    assert shown.y.dropna().tolist() == [1, 4]
    assert make().shown_table(records(make())).to_dict("list") == {"x": [1, 2], "y": [1, 4]}
    (figure,) = make().shown_figures(records(make()))
    assert (figure.title, figure.caption) == ("Squares", "They rise.")


def test_settings_follow_an_axis_unless_they_are_lists():
    made = make(grid=Grid(each={"classes": [[0, 1]], "p": [1.5, 2.0]}))
    cells = [
        Cell({"classes": classes, "p": p, "reach": 2 * p})
        for classes, p in (([0, 1], 1.5), ([0, 1, 2], 2.0))
    ]
    layout = Layout({"y": ()})
    data = made.dataset([Record("toy", cell, {"y": np.ones(())}, {}, "", layout) for cell in cells])
    assert data.p.values.tolist() == [1.5, 2.0]
    assert data.reach.values.tolist() == [3.0, 4.0]
    assert "classes" not in data.coords


def answering(values, text="{% if rises %}Yes{% else %}No{% endif %}: by {{ gain }} at $x = 2$."):
    toy = make(name="toy", answer=lambda data: values, answer_text=text)
    return toy, toy.dataset(records(toy))


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ({"rises": True, "gain": "3.0", "unused": 1}, "Yes: by 3.0 at $x = 2$."),
        ({"rises": False, "gain": "-3.0"}, "No: by -3.0 at $x = 2$."),
        ({"rises": True, "gain": f"{np.nan:.1f}"}, ""),
    ],
    ids=["yes", "no", "missing"],
)
def test_an_answer_says_what_the_data_say(values, answer):
    toy, data = answering(values)
    assert toy.answered(data) == answer
    assert toy.answered_with_values(data) == (answer, values)


def test_an_answer_whose_values_differ_from_its_template_is_an_error():
    toy, data = answering({"rises": True})
    with pytest.raises(ValueError, match="differ in the names gain"):
        toy.answered(data)


def test_no_prose_is_no_answer():
    assert make().answered(make().dataset(records(make()))) == ""
