import pytest

from attlas.core.errors import UserError
from attlas.experiments.find import find_experiments, find_named
from attlas.experiments.worker import Computed, Failed, Task, compute, import_refusal


def test_experiments_are_found_by_name_paper_and_all(squares):
    assert squares in find_experiments()
    assert find_named(["squares"]) == (squares,)
    assert [each.name for each in find_named(["toys"])] == ["descent", "squares"]
    assert find_named(["squares", "all", "toys"])[0] is squares
    assert len(find_named(["all"])) == len(find_experiments())


def test_an_unknown_name_is_answered_with_the_nearest(squares):
    with pytest.raises(UserError, match="unknown experiment 'sqares': did you mean squares"):
        find_named(["sqares"])
    with pytest.raises(UserError, match="unknown experiment '': see `attlas list experiments`"):
        find_named([""])


def test_a_package_that_cannot_be_imported_is_named(monkeypatch):
    monkeypatch.setenv("ATTLAS_EXPERIMENTS", "no_such_package")
    with pytest.raises(UserError, match="names 'no_such_package'"):
        find_experiments()


FILE = """
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
import numpy as np
import xarray as xr

EXPERIMENT = Experiment(
    title="One number", question="Which?", grid=Grid(smoke={"x": 3.0}),
    run=lambda s, key: xr.Dataset({"y": np.asarray(s.x**2)}), table=(), figures=(),
)
"""


def test_an_experiment_of_a_file_is_found_and_its_cells_run_by_its_home(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)  # puts the path of imports back
    file = tmp_path / "one_number.py"
    file.write_text(FILE)
    (experiment,) = find_named([str(file)])
    assert (experiment.name, experiment.paper) == ("one_number", "one_number")
    assert experiment.home == str(file)
    (cell,) = experiment.cells("smoke")
    outcome = compute(Task(experiment.home, experiment.name, cell.json))
    assert isinstance(outcome, Computed)
    assert outcome.arrays["y"] == 9.0
    assert outcome.metadata["source"]["file"] == "one_number.py"
    assert experiment.changed({"x": ["4.0"]}).home == str(file)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTLAS_EXPERIMENTS", "one_number.py")
    assert find_named(["one_number"]) == (experiment,)


def test_a_place_without_an_experiment_is_one_line(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "no_experiment.py").write_text("x = 1\n")
    with pytest.raises(UserError, match=r"no_experiment.py defines no experiment: write"):
        find_named([str(tmp_path / "no_experiment.py")])
    task = Task(str(tmp_path / "gone.py"), "x", "{}")
    missing = compute(task)
    assert isinstance(missing, Failed)
    assert "there is no file or folder" in missing.message
    assert "gone.py (there is no file" in import_refusal([task.module])
