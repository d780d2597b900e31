import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.experiments.settings import Settings
from liu2021analyzing.experiments.common_instance import EXPERIMENT, GRID, ranked, run
from liu2021analyzing.library.audit.audit_dataset import audit_arrays
from liu2021analyzing.library.audit.ranked_bounds import ranked_dataset

pytestmark = pytest.mark.thorough  # the records take long


@pytest.fixture(scope="module")
def data():
    (cell,) = GRID.cells("smoke")
    s = Settings(cell.settings, seed=cell.seed, dtype=cell.dtype)
    found = run(s, jax.random.key(cell.seed))
    return found.expand_dims(n=[s.n]).assign_attrs(cell.settings)


def test_every_step_is_certified_and_lowers_the_risk(data):
    assert data.certified.all()
    assert (data.risk.sel(set="training").diff("step") <= 0).all()
    # the step is the inverse of a bound on the curvature
    assert (data.rate * data.land_curvature <= 1).all()


def test_every_bound_that_holds_is_above_the_gap(data):
    last = data.ramp.isel(step=-1)
    gap = last.sel(set="fresh") - last.sel(set="training")
    assert (data.gap >= gap).all()
    assert (data.gap.sel(bound="log m") <= data.gap.sel(bound="log T")).all()
    # a search finds margins, the ceiling bounds them
    assert (data.margin_best <= data.margin_ceiling).all()
    assert (data.selection.isel(step=-1) <= data.svm_margin * (1 + 1e-6)).all()


def test_table_and_figures_show_all_papers(data):
    shown = EXPERIMENT.table(data)
    assert len(set(shown["paper"])) == 6
    assert np.all((shown["least"] <= shown["largest"]) | shown["median"].isna())
    captions = [figure.caption for figure in EXPERIMENT.drawn(data)]
    assert not any("?" in caption for caption in captions)
    last = data.ramp.isel(step=-1).squeeze("n")
    gap = float((last.sel(set="fresh") - last.sel(set="training")).median())
    assert f"at $n = 12$ the true gap of the ramp risk is {gap:.2f}" in captions[1]
    plt.close("all")


def test_every_bound_has_a_row_whether_its_conditions_hold_or_fail(data):
    rows = ranked_dataset(audit_arrays(data.isel(n=-1)))
    values = rows.gaps.transpose("bound", ...).values
    for applies in (True, False):
        drawn = ranked("gaps", applies)(data).transpose("bound", ...).values
        expected = np.where(rows.applies.values[:, None, None] == applies, values, np.nan)
        np.testing.assert_array_equal(drawn, expected)
