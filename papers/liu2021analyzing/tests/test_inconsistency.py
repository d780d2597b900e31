"""Settings are compared with the plain student, in pairs."""

import numpy as np
import pytest
import xarray as xr

from attlas.experiments.record import Layout, Record
from attlas.experiments.settings import Settings
from liu2021analyzing.experiments.inconsistency import (
    ATTENTION,
    EXPERIMENT,
    by_level,
    changes,
    levels,
    limit_of,
    ratio_text,
)

SWEPT = {"d_q": 2, "queries": [1, 2], "temperatures": [0.2], "l1": [0.1], "l2": [0.1]}


def test_the_plain_student_comes_first_and_once():
    assert levels(Settings(SWEPT)) == [
        ("plain", 2), ("d_q", 1), ("temperature", 0.2), ("l1", 0.1), ("l2", 0.1),
    ]  # fmt: skip


def advice():
    """Records of one sweep, in which a single query dimension triples the error."""
    cell = next(c for c in EXPERIMENT.cells("quick") if c.settings["varied"] == "advice")
    found = levels(Settings(cell.settings))
    sweep, level = (np.array(each) for each in zip(*found, strict=True))
    labels = [name if name == "plain" else f"{name} = {at:g}" for name, at in found]
    plain = np.array([1.0, 5.0, 0.2, 1.0, 2.0, 3.0])
    errors = np.ones((len(found), 1)) * plain
    errors[2:] *= np.array([1.0, 1.2, 0.8, 1.0, 1.1, 0.9])
    errors[1] *= 3
    arrays = {"swept": errors, "setting": np.array(labels), "sweep": sweep, "level": level}
    dims = {name: ("setting", "member")[: array.ndim] for name, array in arrays.items()}
    layout = Layout(dims, ("setting", "sweep", "level"))
    return Record("inconsistency", cell, arrays, {}, "k", layout)


def test_changes_are_ratios_in_pairs():
    data = EXPERIMENT.dataset([advice()])
    assert ratio_text(changes(data).sel(setting="d_q = 1")) == "3.00 [3.00, 3.00]"
    shown = by_level(data).sel(sweep="d_q")
    assert shown["at"].values.tolist() == ["1", "2", "4", "8"]
    assert shown.plain.values.tolist() == [0, 1, 0, 0]
    np.testing.assert_allclose(shown.change.mean("member")[:2], [3.0, 1.0])


def test_captions_name_what_is_clearly_larger():
    record = advice()
    caption = EXPERIMENT.shown_figures([record])[1].caption
    assert "nothing clearly lowers" in caption
    assert "$d_q$ = 1 clearly raises it" in caption
    table = EXPERIMENT.shown_table([record])
    assert table["test error / the plain student's"].dropna().iloc[0] == "3.00 [3.00, 3.00]"


def test_limits_are_means_over_members():
    axes = ("student", "varied", "member")
    data = xr.Dataset(
        {"limit": (axes, np.array([0.4, 0.5, 0.6]).reshape(1, 1, 3))},
        {"student": [ATTENTION], "varied": ["samples"]},
    )
    middle, low, high = (float(limit_of(ATTENTION, end)(data)) for end in range(3))
    assert middle == pytest.approx(0.5)
    assert low + high == pytest.approx(1.0)
    assert low < 0.4 < 0.6 < high
