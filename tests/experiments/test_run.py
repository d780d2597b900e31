import numpy as np
import pytest
import xarray as xr

from attlas.core.errors import UserError
from attlas.experiments.load import load
from attlas.experiments.progress import Progress
from attlas.experiments.run import run


class Counted(Progress):
    def __init__(self):
        self.done = []

    def finished(self, label, seconds):
        self.done.append(label)


def test_it_computes_what_load_reads(squares, serial, tmp_path):
    found = run("squares", scale="smoke", results=tmp_path)
    np.testing.assert_array_equal(found["square"], [0, 1, 4])
    xr.testing.assert_identical(found, load(squares, scale="smoke", results=tmp_path))


def test_it_resumes_unless_fresh(squares, serial, tmp_path):
    counted = Counted()
    for fresh in (False, False, True):
        run(squares, scale="smoke", results=tmp_path, fresh=fresh, progress=counted)
    assert len(counted.done) == 6


def test_settings_are_changed(squares, serial, tmp_path):
    found = run(squares, scale="smoke", settings={"x": [3]}, results=tmp_path)
    assert found["square"].item() == 9


def test_a_cell_that_fails_is_an_error_and_the_others_are_there(
    squares, serial, tmp_path, monkeypatch
):
    monkeypatch.setenv("SQUARES_REFUSE", "no@1")
    with pytest.raises(UserError, match=r"^squares: cell .* failed \(no\): change the settings"):
        run(squares, scale="smoke", results=tmp_path)
    np.testing.assert_array_equal(
        load(squares, scale="smoke", results=tmp_path)["square"].dropna("x"), [0, 4]
    )


def test_a_paper_is_not_one_experiment():
    with pytest.raises(UserError, match=r"^'all' stands for \d+ experiments: name one of"):
        run("all")
