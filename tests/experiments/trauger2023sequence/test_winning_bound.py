import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas.experiments.trauger2023sequence.winning_bound import (
    CHECKED,
    EXPERIMENT,
    FAMILIES,
    cells,
    figures,
    run,
    table,
)
from attlas.runs.cell import Scale
from attlas.runs.record import Record


@pytest.fixture(scope="module")
def record():
    cell = dataclasses.replace(cells(Scale.SMOKE)[0], seed=1)
    return Record(EXPERIMENT.name, cell, run(cell), {}, "")


def test_brackets_agree_with_those_worked_out_apart(record):
    apart = np.array(list(CHECKED.values()))
    # they were written down to three digits
    np.testing.assert_allclose(record.arrays["bracket"], apart, rtol=5e-3)


def test_a_grid_point_is_the_bound_of_the_library(record):
    B, m = record.arrays["norm"][1], record.arrays["samples"][3]
    C = trauger2023_cover("1,1", float(B), 1.0, 64, 64)
    alone = float(trauger2023_single(1.0, C, 1.0, 64, float(m)))
    found = record.arrays["bound"][0, 1, 3, FAMILIES.index("1,1")]
    assert found == pytest.approx(alone, rel=1e-12)  # one program or many: a few roundings


def test_longer_sequences_never_help_log_t_and_cls_alone_is_smaller(record):
    bound = record.arrays["bound"]
    ordered = bound[..., [FAMILIES.index("log m"), *range(5, len(FAMILIES))]]
    assert np.all(np.diff(ordered, axis=-1) >= 0)
    assert np.all(np.diff(record.arrays["break_even"]) > 0)


def test_a_dense_matrix_has_the_ratio_of_its_kind(record):
    # mean of |g| over its deviation, 64^2 draws: a standard error of 0.012 relative
    total = record.arrays["factors"][1, 0]
    assert total == pytest.approx(np.sqrt(2 * 64 / np.pi), rel=0.05)


def test_table_and_figures_answer(record):
    shown = table([record])
    assert len(shown) == 2 * len(CHECKED)
    assert shown["smallest"].iloc[0] == "all trivial"
    assert shown["smallest"].iloc[2] == "1,1"
    panels = figures([record])
    assert all(panel.caption.count("?") == 1 for panel in panels)
    plt.close("all")
