"""An answer follows each control of its experiment: an arm without what is tested, by its label."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
import xarray as xr
from perturbed_records import published, recorded

CONTROL = re.compile(
    r"\b(?:ablat\w+|baseline|control|equal|exact sample|gradient descent|merged|no attention"
    r"|random start|shuffled|sum pooling|uniform)\b"
)
"""Labels of arms that lack what the experiment tests, or that are the best possible."""
EXPERIMENTS = {name: e for name, e in recorded().items() if e.answer is not None}
SLOW = {"sample_complexity"}
FACTORS = (1e-3, 1e3)
WITH_CONTROLS = {"noisy_grid", "reviews", "luong_reviews", "patches", "landscape", "inconsistency"}


def controls(data: xr.Dataset) -> Iterator[tuple[str, str]]:
    """The axes of arms with the labels that name a control."""
    for name, axis in data.coords.items():
        if axis.dims == (name,) and axis.dtype.kind == "U":
            yield from ((str(name), str(label)) for label in axis.values if CONTROL.search(label))


def changed(data: xr.Dataset, axis: str, label: str) -> Iterator[xr.Dataset]:
    """The record with the measured values of one arm multiplied, or those of another arm."""
    measured = {
        name: values
        for name, values in data.data_vars.items()
        if axis in values.dims and values.dtype.kind == "f"
    }
    for factor in FACTORS:
        yield data.assign({
            name: values.where(values[axis] != label, factor * values).transpose(*values.dims)
            for name, values in measured.items()
        })  # fmt: skip
    for another in (text for text in data[axis].values if text != label):
        yield data.assign({
            name: values.where(values[axis] != label, values.sel({axis: another}, drop=True))
            .transpose(*values.dims)
            for name, values in measured.items()
        })  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # logarithms and means of what is not there
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.thorough] if n in SLOW else []) for n in EXPERIMENTS],
)
def test_an_answer_looks_at_its_controls(name):
    data = published(EXPERIMENTS[name])
    assert data is not None
    arms = list(controls(data))
    assert arms or name not in WITH_CONTROLS
    said = EXPERIMENTS[name].answered(data)
    for axis, label in arms:
        with np.errstate(all="ignore"):
            others = {EXPERIMENTS[name].answered(each) for each in changed(data, axis, label)}
        assert others != {said}, f"the answer of {name} does not look at '{label}'"
