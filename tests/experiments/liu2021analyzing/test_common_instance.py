import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.audit.head_audit import COMPARED
from attlas.audit.head_rows import head_rows, theorem_2_applies
from attlas.audit.ranked_bounds import ranked_bounds
from attlas.experiments.liu2021analyzing.common_instance import EXPERIMENT, cells, run
from attlas.runs.cell import Scale
from attlas.runs.record import Record

KEYS = {"truth", "julistiono2024", "deora2023", "gu2024", "trauger2023", "liu2021"}


@pytest.fixture(scope="module")
def record():
    cell = cells(Scale.SMOKE)[0]
    return Record(EXPERIMENT.name, cell, run(cell), {}, "")


def test_every_step_is_certified_and_lowers_the_risk(record):
    a = record.arrays
    assert np.all(a["certified"])
    assert np.all(np.diff(a["risk"][..., 0], axis=1) <= 0)
    # the step is the inverse of a bound on the curvature
    assert np.all(a["rate"] * a["land_curvature"] <= 1)


def test_every_bound_that_holds_is_above_the_gap(record):
    a = record.arrays
    gap = (a["ramp"][:, -1, 1] - a["ramp"][:, -1, 0])[:, None]
    assert np.all(a["gap"] >= gap)
    assert np.all(a["gap"][:, [COMPARED.index("log m")]] <= a["gap"][:, [COMPARED.index("log T")]])
    # a search finds margins, the ceiling bounds them
    assert np.all(a["margin_best"] <= a["margin_ceiling"])
    assert np.all(a["selection"][:, -1] <= a["svm_margin"] * (1 + 1e-6))


def test_theorem_2_needs_its_heads_and_its_step(record):
    a = dict(record.arrays)
    assert theorem_2_applies(a).shape == a["bound_gap_sharp"].shape
    a["bound_step_sharp"] = np.zeros_like(a["bound_step_sharp"])
    assert not theorem_2_applies(a).any()


def test_all_papers_have_rows_margins_bounds_and_demands(record):
    rows = head_rows(record.arrays, 12, 0.5)
    assert {row.paper for row in rows} == KEYS
    assert all(row.says for row in rows)
    ladders = ranked_bounds(record.arrays)
    assert {row.paper for each in ladders for row in each} == KEYS
    assert sum(row.paper == "truth" for row in ladders.gaps) == 3
    shown = EXPERIMENT.table([record])
    assert len(shown) == len(rows)
    assert np.all((shown["least"] <= shown["largest"]) | shown["median"].isna())
    panels = EXPERIMENT.figures([record])
    assert len(panels) == 2
    plt.close("all")
