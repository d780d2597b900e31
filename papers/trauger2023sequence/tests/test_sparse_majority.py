"""What is read off the data set: the paper's statistics, and what a scale leaves out."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from scipy.stats import spearmanr

from trauger2023sequence.experiments.sparse_majority import (
    EXPERIMENT,
    GRID,
    GUESS,
    QUANTITIES,
    SAMPLES,
    trends,
)
from trauger2023sequence.library.measures.growth_factor import (
    factor_of_line,
    line_with_covariance,
)
from trauger2023sequence.library.sparse_majority.bound_dataset import COVERS, VERSIONS


def results(scale: str) -> xr.Dataset:
    """Five runs with loss gaps from 0.1 to 0.5; every bound is 1e6 m^(-1/2), printed ones < 0."""
    runs, m = 5, np.append(300.0, SAMPLES)
    gaps = 0.1 * np.arange(1, runs + 1)
    shown = np.stack([1000 + gaps, gaps, gaps, 1 - gaps])
    data = xr.Dataset(
        {
            "bound": 1e6 / np.sqrt(xr.DataArray(m, {"m": m})),
            "log10_needed": 2 * np.log10(1e6 / GUESS),
            "loss_range": 50.0,
            "shown": (("quantity", "member"), shown),
            "epochs_trained": ("member", np.arange(runs)),
            "stopped": ("member", np.arange(runs) < 2),
            "validation_loss": (("member", "epoch"), np.full((runs, 2), GUESS)),
        },
        {"m": m, "epoch": [1, 2], "quantity": list(QUANTITIES), "member": range(runs)},
    )
    every = xr.DataArray(
        np.ones((2, 6, 3, runs)),
        {"T": [20, 200], "cover": list(COVERS), "version": list(VERSIONS), "member": data.member},
    )
    data["bound"] = (data.bound * every).where(every.version != "printed", -1.0)
    data["log10_needed"] = data.log10_needed * every
    for name in ("shown", "stopped", "epochs_trained", "validation_loss", "loss_range"):
        data[name] = data[name] * every.isel(cover=0, version=0, drop=True)
    settings = GRID.cells(scale)[0].settings
    return data.assign_attrs({name: settings[name] for name in settings if name != "T"})


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_table_and_captions_hold_what_the_data_hold(scale):
    data = results(scale)
    row = EXPERIMENT.table(data).to_dict("records")[0]
    assert row["stopped at training accuracy 1"] == "2 of 5"
    assert row["loss gap"] == "0.3 (0.1 to 0.5)"
    needed = 2 * np.log10(1e6 / GUESS)
    assert row["log10 m needed, log T"].startswith(f"{needed:.3g}")
    assert row["log10 m needed, 1,inf, corrected"].startswith(f"{needed:.3g}")
    assert row["Theorem 4.1 printed, c = 1"] == "-1 (-1 to -1)"
    found = EXPERIMENT.drawn(data)
    assert "4 of 10 reached training accuracy 1" in found[0].caption
    assert "No bound is below the range of the loss with the 300 samples" in found[1].caption
    assert "10 of 10 are negative" in found[1].caption
    for figure in (found[0], found[2]):
        assert ("NOT the released training" in figure.caption) == (scale == "quick")
    assert ("Validated every 20 epochs" in found[0].caption) == (scale == "paper")
    for figure in found:
        plt.close(figure.figure)


def test_the_trend_with_the_length_is_that_of_the_ranks():
    """Weights fall with the length, loss gaps rise but for one of twelve, the other is constant."""
    lengths, runs = np.array([20, 60, 200]), np.zeros((4, 3, 4))
    runs[0] = -lengths[:, None] - 0.1 * np.arange(4)
    runs[1] = lengths[:, None]
    runs[1, 0, 0] = 500
    data = xr.Dataset(
        {"shown": (("quantity", "T", "member"), runs)}, {"quantity": list(QUANTITIES), "T": lengths}
    )
    correlation, p = spearmanr(np.repeat(lengths, 4), runs[1].ravel())
    weights, loss = trends(data).split(", ")
    assert weights.startswith("-0.95 ($p$ = ")  # the root of 128/143: lengths are tied in fours
    assert loss == f"{correlation:.2f} ($p$ = {p:.1g}) for the loss gap"


def test_the_covariance_of_a_line_is_that_of_leaving_one_run_out():
    rng = np.random.default_rng(0)
    x = np.repeat(np.log(np.arange(20.0, 101, 20)), 3)
    y = 0.05 + x * rng.normal(size=x.shape)
    line, covariance = line_with_covariance(x, y, 1)
    np.testing.assert_allclose(line, np.polyfit(x, y, 1))
    moves = [np.polyfit(np.delete(x, i), np.delete(y, i), 1) - line for i in range(len(x))]
    np.testing.assert_allclose(covariance, np.einsum("ij,ik->jk", moves, moves))


LENGTHS = np.broadcast_to(np.arange(20, 201, 20)[:, None], (10, 5))


@pytest.mark.parametrize("growing", [0.0, 0.02], ids=["equal spread", "spread that grows with T"])
def test_the_factor_of_a_line_has_an_interval_that_covers(growing):
    """Fieller's interval holds the true factor as often as it says."""
    x, rng, inside, texts = np.log(LENGTHS / 20), np.random.default_rng(0), 0, 0
    spread = 0.02 if growing == 0 else 0.01 + growing * x
    for _ in range(400):
        text = factor_of_line(LENGTHS, 0.05 + 0.03 * x + spread * rng.normal(size=x.shape))
        if text:
            _, low, high = map(
                float, text.replace("[", "").replace("]", "").replace(",", "").split()
            )
            # One digit is written: half of its unit on either side.
            inside += low - 0.05 <= 1 + 0.03 * np.log(10) / 0.05 <= high + 0.05
            texts += 1
    # Binomial(texts, 0.95), four standard deviations; the test of the bend refuses 5 %.
    assert texts > 0.9 * 400
    deviation = 4 * np.sqrt(0.05 * 0.95 * texts)
    assert abs(inside - 0.95 * texts) < deviation


def test_the_factor_of_a_line_is_withheld_where_it_is_not_known():
    """A bend, a start that may be zero and too few runs leave none."""
    lengths, x = LENGTHS, np.log(LENGTHS / 20)
    noise = 0.001 * np.random.default_rng(0).normal(size=x.shape)
    assert factor_of_line(lengths, 0.05 + 0.03 * x**2 + noise) == ""
    assert factor_of_line(lengths, 0.03 * x - 0.01 + noise) == ""
    assert factor_of_line(lengths[:2, :2], x[:2, :2]) == ""
    # Where runs agree the interval is a point; deviations that cancel at each length bend no line.
    apart = 1e-9 * np.array([1, -1, 1, -1, 0])
    assert factor_of_line(lengths, 0.05 + 0.05 / np.log(10) * x + apart) == "2.0 [2.0, 2.0]"


def test_the_paper_scale_is_the_released_program():
    cells = GRID.cells("paper")
    assert sorted(cell.settings["T"] for cell in cells) == list(range(20, 201, 20))
    released = {"optimizer": "sgd", "rate": 0.01, "epochs": 200_000, "train": 300, "members": 5}
    for cell in cells:
        assert released.items() <= cell.settings.items()
