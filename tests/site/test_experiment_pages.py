"""Which records of an experiment are shown, and what is said about those that are not."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from attlas.core.errors import UserError
from attlas.experiments.grid import Grid
from attlas.experiments.record import Layout, Record, record_key
from attlas.site.claim_entry import Source
from attlas.site.experiment_pages import MOST_VALUES, experiment_entry

SOURCE = Source("experiments/lines.py", 1, "")


def shown(experiment, records, code="other"):
    return experiment_entry(experiment, records, SOURCE, code)


def record(experiment, cell, **metadata):
    key = record_key(experiment.name, experiment.revision, cell)
    return Record(experiment.name, cell, {}, metadata, key, Layout({}))


@pytest.fixture
def lines(experiments):
    """Two cells at smoke scale, eight at quick scale, fourteen at the paper's."""
    grid = Grid(
        each={"p": list(range(14))},
        fixed={"seed": 7},
        smoke={"p": list(range(2))},
        quick={"p": list(range(8))},
    )
    return replace(experiments[0], grid=grid, figures=[])


def some(lines, scale, count):
    return [record(lines, cell) for cell in lines.cells(scale)[:count]]


def test_the_most_complete_grid_is_shown(lines):
    entry = shown(lines, some(lines, "quick", 8))
    assert (entry.scale, entry.done, entry.total) == ("quick", 8, 8)
    # The same eight cells are part of the paper grid: nothing is hidden.
    assert entry.problems == ()


def test_of_equals_the_larger_grid_is_shown(lines):
    entry = shown(lines, some(lines, "paper", 14))
    assert (entry.scale, entry.done, entry.total) == ("paper", 14, 14)
    assert entry.problems == ()


def test_a_larger_part_that_is_not_shown_is_named(lines):
    grid = Grid(
        each={"p": list(range(9))},
        smoke={"p": [0, 1], "at": "smoke"},
        quick={"at": "quick"},
        paper={"at": "paper"},
    )
    apart = replace(lines, grid=grid)
    entry = shown(apart, [*some(apart, "smoke", 2), *some(apart, "paper", 5)])
    assert (entry.scale, entry.done, entry.total) == ("smoke", 2, 2)
    assert entry.problems == ("Not shown: 5 of 9 cells of the paper grid.",)


@pytest.mark.parametrize(("part", "told"), [("", "1 of 2 cells have no array `y`"), ("p", "")])
def test_an_array_of_another_part_of_the_experiment_is_no_gap(lines, part, told):
    first, second = some(lines, "smoke", 2)
    second = replace(second, arrays={"y": np.ones(2)}, layout=Layout({"y": ("step",)}))
    entry = shown(replace(lines, part=part), [first, second])
    said = [text for text in entry.problems if "shown as gaps" in text]
    assert said == ([f"{told}; they are shown as gaps."] if told else [])


def test_records_of_another_revision_do_not_count(lines):
    entry = shown(lines, some(replace(lines, revision=2), "smoke", 2))
    assert (entry.done, entry.scale, entry.table) == (0, "", None)


def test_settings_list_few_values_and_count_many(lines):
    few = shown(lines, some(lines, "quick", 8)).settings
    assert few["p"] == "0, 1, 2, 3, 4, 5, 6, 7"
    many = shown(lines, some(lines, "paper", 14)).settings
    assert MOST_VALUES < 14
    assert (many["p"], many["seeds"], many["precision"]) == ("14 values", "7", "float64")


def test_consecutive_seeds_are_a_range(lines):
    def seeded(*seeds):
        own = replace(lines, grid=Grid(each={"k": seeds}, fixed={"seed": lambda s: s.k}))
        return shown(own, [record(own, cell) for cell in own.cells("smoke")]).settings["seeds"]

    assert seeded(3, 4, 5) == "3 to 5"
    assert seeded(3, 4) == "3, 4"
    assert seeded(3, 5, 6) == "3, 5, 6"


def test_seconds_and_foreign_code_are_summed(lines):
    first, second = lines.cells("smoke")
    records = [record(lines, first, code="a", seconds=1.5), record(lines, second, code="b")]
    entry = shown(lines, records, code="a")
    assert (entry.other_code, entry.seconds) == (1, 1.5)


def test_what_fails_is_named_and_the_rest_is_shown(lines):
    def broken(data):
        raise KeyError("divergence")

    records = some(lines, "smoke", 2)
    entry = shown(replace(lines, table=broken), records)
    assert entry.table is None
    (problem,) = [text for text in entry.problems if "Could not" in text]
    assert problem == "Could not make the table: KeyError: 'divergence'"
    entry = shown(replace(lines, figures=[broken]), records)
    assert entry.drawings == ()
    assert entry.table is not None


def test_a_grid_that_cannot_be_laid_out_is_named(lines):
    def digits():
        raise UserError("no digits: fetch them")

    own = replace(lines, grid=Grid(each={"p": [1]}, paper=digits))
    entry = shown(own, some(own, "smoke", 1))
    assert entry.done == 1
    assert entry.problems == ("The paper grid could not be laid out: no digits: fetch them",)


def test_figures_are_drawn_and_closed(store, experiments):
    before = plt.get_fignums()
    entry = shown(experiments[0], store.records("lines"))
    (drawing,) = entry.drawings
    assert drawing.title.startswith("Lines ")
    assert "<svg" in drawing.picture
    assert plt.get_fignums() == before


@pytest.mark.parametrize("most", [2, 3])
def test_a_long_table_is_cut_and_says_so(lines, most, monkeypatch):
    monkeypatch.setattr("attlas.site.experiment_pages.MOST_ROWS", most)
    rows = pd.DataFrame({"p": [1, 2, 3]})
    entry = shown(replace(lines, table=lambda data: rows), some(lines, "smoke", 2))
    assert str(entry.table).count("<tr>") == 1 + most
    told = "The table shows its first 2 rows; `attlas.load` returns all."
    assert list(entry.problems) == ([told] if most == 2 else [])
