import inspect

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from attlas.runs.experiment import Cell, Experiment, Panel, Scale
from attlas.runs.grid import Grid
from attlas.runs.record import Layout, Record


def make(name="toy", **changes) -> Experiment:
    fields = {
        "name": name,
        "paper": "mine",
        "title": "A toy",
        "question": "Does it run?",
        "revision": 1,
        "cells": lambda scale: (Cell({"x": 1}),),
        "run": lambda cell: {},
        "table": lambda records: pd.DataFrame(),
        "figures": lambda records: (),
    }
    return Experiment(**{**fields, **changes})


def test_an_experiment_knows_the_module_and_line_that_define_it():
    frame = inspect.currentframe()
    assert frame is not None
    line = frame.f_lineno + 1
    made = Experiment("A toy", "", dict, pd.DataFrame, lambda r: (), name="toy")
    assert made.module == __name__
    assert made.source == (__file__, line)


@pytest.mark.parametrize("name", ["verdicts", "witnesses", "a/b", ".."])
def test_a_name_that_cannot_be_a_folder_of_its_own_is_refused(name):
    with pytest.raises(ValueError, match="not a word of its own"):
        make(name)


def test_a_panel_holds_a_figure():
    figure = Figure()
    assert Panel("title", "caption", figure).figure is figure
    assert tuple(Scale) == ("smoke", "quick", "paper")


def test_settings_follow_an_axis_unless_they_are_lists():
    made = make(grid=Grid(each={"classes": [[0, 1]], "p": [1.5, 2.0]}))
    records = [
        Record("toy", Cell({"classes": classes, "p": p, "reach": 2 * p}), {"y": np.ones(())}, {},
               "", Layout({"y": ()}))
        for classes, p in (([0, 1], 1.5), ([0, 1, 2], 2.0))
    ]  # fmt: skip
    data = made.dataset(records)
    assert data.p.values.tolist() == [1.5, 2.0]
    assert data.reach.values.tolist() == [3.0, 4.0]
    assert "classes" not in data.coords
