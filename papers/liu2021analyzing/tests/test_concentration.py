import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.experiments.record import Record
from attlas.training.trajectory import Trajectory
from liu2021analyzing.experiments import concentration
from liu2021analyzing.experiments.concentration import BINS, EXPERIMENT, PAPER_NORM, SHOWN, VARIANTS
from liu2021analyzing.library.measures.summary import MEASURES

pytestmark = pytest.mark.thorough  # the records take long


@pytest.fixture(scope="module")
def cell():
    (found,) = EXPERIMENT.cells("smoke")
    return found


@pytest.fixture(scope="module")
def record(cell):
    with jax.enable_x64(False):
        arrays, layout = EXPERIMENT.computed(cell)
    return Record("concentration", cell, arrays, {}, "", layout)


@pytest.fixture(scope="module")
def arrays(record):
    return record.arrays


@pytest.fixture
def data(record):
    """Two members that are the same."""
    one = EXPERIMENT.dataset([record])
    found = xr.concat([one, one.assign_coords(member=[1])], "member", data_vars="minimal")
    return found.assign_attrs(one.attrs)


def _measure(arrays, name):
    return arrays["mean"][..., MEASURES.index(name)]


def test_rows_are_counted_once(arrays):
    assert arrays["rows"].sum() == 500
    assert np.all(arrays["histogram"].sum(axis=(1, 3)) == 500)
    assert arrays["histogram"].shape[-1] == BINS.size - 1


def test_uniform_rows_are_the_least_concentrated_and_known(arrays):
    counts = arrays["rows_by_length"]
    p = np.arange(counts.shape[1])
    assert counts[:, :2].sum() == 0
    seen = counts > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.floor(np.sqrt(p))
        known = np.stack([np.sqrt(root) / p, np.sqrt(root / p), root / p], axis=1)
    uniform = arrays["by_length"][-1]
    # Sums of at most 13 float64 terms, and of up to 500 rows.
    expected = np.broadcast_to(known, uniform.shape)[seen]
    assert np.allclose(uniform[seen], expected, rtol=1000 * np.finfo(float).eps)
    for name in SHOWN:
        found = _measure(arrays, name)
        assert np.all(found[:-1] > found[-1:])
    assert np.all(arrays["s0"][:-1] <= arrays["s0"][-1:])


def test_colder_rows_are_more_concentrated(arrays):
    trained, alone = VARIANTS.index("trained"), VARIANTS.index("trained, rows x 5")
    for name in (*SHOWN, "largest weight"):
        assert np.all(_measure(arrays, name)[alone] > _measure(arrays, name)[trained]), name
    assert np.all(arrays["s0"][alone] <= arrays["s0"][trained])
    assert np.all(_measure(arrays, "entropy")[alone] < _measure(arrays, "entropy")[trained])


def test_norms_force_weights_and_levels_are_ordered(arrays):
    share, least = arrays["high"].T
    assert np.all((share >= 0) & (share <= 1))
    # Squares of float32 norms.
    assert np.all(least >= PAPER_NORM**2 * (1 - 64 * np.finfo("f4").eps))
    assert np.all(np.diff(arrays["s0"], axis=-1) >= 0)
    assert np.all(np.diff(arrays["unreached"], axis=-1) >= 0)
    assert np.all(np.isnan(arrays["validation"][3:]))
    assert arrays["loss"][-1, 1] == pytest.approx(arrays["validation"][1, 0], rel=1e-5)


def test_table_and_figures_show_every_variant(data):
    shown = EXPERIMENT.table(data)
    assert shown["weights"].tolist() == [name for name in VARIANTS for _ in range(4)]
    # Both members count, and the kinds make up the whole.
    rows = shown["rows"].to_numpy().reshape(len(VARIANTS), 4)
    assert np.all(rows[:, 0] == 1000)
    assert np.all(rows[:, 1:].sum(axis=1) == 1000)
    whole = shown["raw l2"].to_numpy().reshape(len(VARIANTS), 4)
    parts = (whole[:, 1:] * rows[:, 1:]).sum(axis=1) / rows[:, 0]
    assert np.allclose(parts, whole[:, 0])
    assert shown["paper, top sqrt(p)"].dropna().tolist() == [PAPER_NORM]
    figures = EXPERIMENT.drawn(data)
    assert len(figures) == 4
    assert not any("?" in figure.caption for figure in figures)
    assert "stand-in" in figures[0].caption
    plt.close("all")


def test_training_that_diverges_is_said(cell, monkeypatch):
    nothing = np.zeros(0)
    broken = Trajectory(nothing, None, None, result=np.asarray(Result.NOT_FINITE))
    monkeypatch.setattr(concentration, "train_translator", lambda *_, **__: broken)
    with jax.enable_x64(False), pytest.raises(UserError, match="lower the factor"):
        EXPERIMENT.computed(cell)


def test_quick_takes_the_corpora_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTLAS_DATA", str(tmp_path))
    (stand_in,) = EXPERIMENT.cells("quick")
    assert (stand_in.settings["task"], stand_in.data_hash) == ("stand-in", "")
    (tmp_path / "pt_en").mkdir()
    for corpus in ("flores200_devtest", "ntrex128", "python_docs_prose", "tatoeba", "tico19_test"):
        (tmp_path / "pt_en" / f"{corpus}_por-eng.tsv.gz").touch()
    (real,) = EXPERIMENT.cells("quick")
    assert real.settings["task"] == "pt_en"
    assert real.data_hash
    assert EXPERIMENT.cells("paper")[0].settings["rows"] == 100_000
