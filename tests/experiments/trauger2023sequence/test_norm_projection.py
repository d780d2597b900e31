import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.experiments.trauger2023sequence.norm_projection import (
    EXPERIMENT,
    FAMILIES,
    MARGINS,
    THRESHOLDS,
    _certify,
    cells,
    figures,
    run,
    table,
)
from attlas.runs.cell import Scale
from attlas.runs.record import Record


@pytest.fixture(scope="module")
def record():
    cell = cells(Scale.SMOKE)[0]
    return Record(EXPERIMENT.name, cell, run(cell), {}, "")


def test_ramp_risk_is_above_the_error_and_grows_with_the_margin(record):
    ramp, accuracy = record.arrays["ramp"], record.arrays["accuracy"]
    assert np.all(np.diff(ramp, axis=-1) >= -1e-6)  # float32 means of hundreds of numbers
    assert np.all(ramp[..., 0] >= 1 - accuracy - 1e-6)


def test_complexity_falls_with_samples_and_order_of_versions_holds(record):
    R = record.arrays["complexity"][:, :-1]
    assert np.all(np.diff(R, axis=1) <= 1e-12)
    at = {name: k for k, name in enumerate(FAMILIES)}
    for larger, smaller in (
        ("Theorem 4.1 corrected", "Theorem 4.1 sharp"),
        ("Theorem 4.1 sharp", "Theorem 4.1, fixed [CLS]"),
        ("log T", "Theorem 4.1 sharp"),
        ("parameters", "parameters, fixed [CLS]"),
    ):
        assert np.all(R[1:, :, at[larger]] >= R[1:, :, at[smaller]]), (larger, smaller)


def test_samples_needed_are_where_the_bound_crosses(record):
    found = _certify(record)
    family = FAMILIES.index("parameters, fixed [CLS]")
    needed = [found.needed(1, family, threshold) for threshold in THRESHOLDS]
    assert needed == sorted(needed)
    for size, threshold in zip(needed, THRESHOLDS, strict=True):
        if np.isfinite(size):
            error = found.error[1, :-1, family]
            assert np.all(error[found.samples[:-1] > size] < threshold)
    assert found.needed(0, 0, -1.0) == np.inf


def test_a_model_that_is_always_right_is_certified_where_the_bound_allows(record):
    arrays = dict(record.arrays)
    arrays["ramp"] = np.zeros_like(arrays["ramp"])
    arrays["accuracy"] = np.ones_like(arrays["accuracy"])
    perfect = Record(EXPERIMENT.name, record.cell, arrays, {}, "")
    found = _certify(perfect)
    assert np.all(MARGINS[found.margin] == MARGINS[-1])
    shown = table([perfect])
    assert shown["radius"].tolist() == perfect.arrays["radius"].tolist()
    for name in FAMILIES:
        assert not shown[f"m for error < 1, .5, .1: {name}"].str.startswith("never").any()
    assert np.all(shown["gap"] == 0)
    panels = figures([perfect])
    assert all(panel.caption.count("?") == 1 for panel in panels)
    plt.close("all")
