"""Labelled tables."""

import numpy as np
import pytest

from attlas.audit.quantity import EvidenceLevel, Quantity, labelled
from attlas.core.errors import UserError

GAIN = Quantity("gain", "Gain", "$g$", "large", EvidenceLevel.PROVED, "gain_null")
LOW = Quantity("gain_low", "Low gain", "", "", EvidenceLevel.MEASURED)


def test_intervals_and_references_name_what_they_are_of():
    names = ("gain", "gain_low", "gain_high", "gain_null")
    values = {name: np.full((1, 2), place) for place, name in enumerate(names)}
    found = labelled([GAIN], values, ("layer", "head"))
    assert found.gain.attrs["standing"] == "proved"
    assert found.gain.attrs["null"] == "gain_null"
    assert [found[name].attrs for name in names[1:]] == [{"of": "gain"}] * 3
    assert found.gain_high.values.tolist() == [[2, 2]]
    assert found["head"].values.tolist() == [0, 1]
    both = labelled([GAIN, LOW], {name: values[name] for name in names[:2]}, ("layer", "head"))
    assert both.gain_low.attrs["title"] == "Low gain"


def test_values_and_quantities_belong_together():
    with pytest.raises(UserError, match="quantities without values: gain"):
        labelled([GAIN], {}, ("layer", "head"))
    with pytest.raises(UserError, match="values without a quantity: loss"):
        labelled([GAIN], {"gain": np.ones((1, 1)), "loss": np.ones((1, 1))}, ("layer", "head"))
