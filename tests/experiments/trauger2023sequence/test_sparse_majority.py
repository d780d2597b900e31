"""What is read off the records: crossings, the paper's statistics, and what a scale leaves out."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.experiments.trauger2023sequence.sparse_majority import (
    EXPERIMENT,
    GRID,
    GUESS,
    _crossing,
)
from attlas.runs.cell import Scale
from attlas.runs.record import Record
from attlas.tasks.sparse_majority.trauger2023_bounds import ROWS


def test_crossing_of_a_power_law_is_exact_and_the_last_one_counts():
    x = np.arange(5.0)
    height = np.array([3.5 - x, x - 9.0, 0 * x + 1, [1.0, -1.0, 1.0, -1.0, -1.0]])
    np.testing.assert_allclose(_crossing(x, height), [3.5, 0.0, np.nan, 2.5])


def record(T: int, scale: Scale) -> Record:
    """Five runs with a loss gap of .1 to .5; every bound is 1e6 m^(-1/2), printed ones negative."""
    runs, m = 5, np.concatenate([[300.0], GRID])
    bound = np.broadcast_to(1e6 / np.sqrt(m), (runs, len(ROWS), len(m))).copy()
    bound[:, -3:] = -1.0
    gaps = 0.1 * np.arange(1, runs + 1)
    selected = np.stack([0 * gaps + 0.2, 0 * gaps + 1, 0.2 + gaps, 1 - gaps, 1000 + gaps], axis=1)
    arrays = {
        "m": m,
        "bound": bound,
        "loss_range": np.full(runs, 50.0),
        "epoch": np.array([1, 2]),
        "validation_loss": np.full((runs, 2), GUESS),
        "selected": selected,
        "epochs_trained": np.arange(runs),
        "stopped": np.arange(runs) < 2,
    }
    cell = EXPERIMENT.cells(scale)[0]
    return Record("sparse_majority", type(cell)({**cell.settings, "T": T}), arrays, {}, f"{T}")


@pytest.mark.parametrize("scale", [Scale.QUICK, Scale.PAPER])
def test_table_and_captions_say_what_the_records_hold(scale):
    records = [record(T, scale) for T in (20, 200)]
    row = EXPERIMENT.table(records).to_dict("records")[0]
    assert row["stopped at training accuracy 1"] == "2 of 5"
    assert row["loss gap"] == "0.3 (0.1 to 0.5)"
    needed = 2 * np.log10(1e6 / GUESS)
    assert row["log10 m needed, log T"].startswith(f"{needed:.3g}")
    assert row["corrected: 1,1 / 1,inf / 2,1"] == " / ".join([f"{needed:.3g}"] * 3)
    panels = EXPERIMENT.figures(records)
    assert "4 of 10 reached training accuracy 1" in panels[0].caption
    assert "every bound at m = 300 is vacuous" in panels[1].caption
    assert "10 of 10 are negative" in panels[1].caption
    for panel in (panels[0], panels[2]):
        assert ("NOT the released training" in panel.caption) == (scale is Scale.QUICK)
    for panel in panels:
        plt.close(panel.figure)


def test_the_paper_scale_is_the_released_program():
    cells = EXPERIMENT.cells(Scale.PAPER)
    assert sorted(cell.settings["T"] for cell in cells) == list(range(20, 201, 20))
    released = {"optimizer": "sgd", "rate": 0.01, "epochs": 200_000, "train": 300, "runs": 5}
    for cell in cells:
        assert released.items() <= cell.settings.items()
