"""Exponents and agreement read from records of known power laws."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.experiments.julistiono2024optimizing.rates import EXPERIMENT, printed_rate
from attlas.runs.cell import Scale
from attlas.runs.record import Record

POINTS = 60


def power_law(p: float, exponent: float, unit: float = 2.0) -> Record:
    """Norm = unit log k and D = norm^exponent, for the flow, its fine clock and plain steps."""
    arrays = {
        "solved": np.array([True, True, False]),
        "svm_norm": np.full(3, unit),
        "cone_width": np.array([(unit * 50.0) ** exponent] * 2 + [np.nan]),
    }
    for kind, last in (("plain", 13.8), ("flow", 1000.0), ("fine", 200.0)):
        log_k = np.geomspace(1.0, last, POINTS)
        arrays[f"{kind}_log_k"] = np.tile(log_k, (3, 1))
        arrays[f"{kind}_norm"] = unit * arrays[f"{kind}_log_k"]
        D = arrays[f"{kind}_norm"] ** exponent * np.array([1.0, 2.0, np.nan])[:, None]
        arrays[f"{kind}_divergence"] = D
    (cell,) = EXPERIMENT.cells(Scale.SMOKE)
    cell = type(cell)({**cell.settings, "p": p})
    return Record("rates", cell, arrays, {}, f"{p}")


@pytest.mark.parametrize(("p", "exponent"), [(1.5, -1.0), (2.0, -2.0), (3.0, -2.0)])
def test_table_finds_the_exponent_of_a_power_law(p, exponent):
    (row,) = EXPERIMENT.table([power_law(p, exponent)]).to_dict("records")
    shown = f"{exponent:.3f}"
    assert row["flow, log k 100 to 700: exponent"].startswith(shown)
    assert row["plain, log k 5 to 13: exponent"].startswith(shown)
    assert row["seeds"] == 2
    assert row["SVMs unsolved"] == 1
    # Linear interpolation of an affine law is exact: what remains are roundings of the sums.
    assert row["d norm / d log k, over norm of SVM"] == pytest.approx(1.0, rel=1e-12)
    assert row["fine flow against plain steps at the last one: norm"] < 1e-12
    assert row["fine clock: change of log k"] < 1e-10
    # The unsolved problem is not known to be in the cone; the others enter at log k = 50 or later.
    assert row["in the cone of (8) from log k (infinite: never)"] >= 50


def test_printed_exponents_are_those_of_the_printed_rates():
    (row,) = EXPERIMENT.table([power_law(1.5, -1.0)]).to_dict("records")
    assert row["flow: printed"] == pytest.approx(-0.5, rel=1e-12)
    # The power law beats the printed one by the root of the range of log k.
    assert row["D / printed rate falls by"] == pytest.approx(7**0.5, rel=1e-9)
    x = np.array([np.e**2])
    np.testing.assert_allclose(printed_rate(x, 2.0), 4 / x)
    np.testing.assert_allclose(printed_rate(x, 3.0), 2 / x)


@pytest.mark.parametrize(("exponent", "said"), [(-2.0, "falls faster"), (-0.1, "not always fall")])
def test_caption_says_what_the_records_show(exponent, said):
    panels = EXPERIMENT.figures([power_law(p, exponent) for p in (1.5, 2.0, 3.0)])
    assert said in panels[1].caption
    assert f"{exponent:.2f} instead of -0.50 at p = 1.5" in panels[1].caption
    for panel in panels:
        plt.close(panel.figure)
