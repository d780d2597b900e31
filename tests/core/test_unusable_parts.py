from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import xarray as xr

from attlas.core.unusable_parts import unusable_part


@dataclass
class Settings:
    content: Any = None


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (np.array([1.0, np.nan]), "x has an entry that is not finite"),
        (np.array([1e200]), "x has an entry beyond 1e+150"),
        (np.array(["a"]), "x has entries of the type <U1, not real numbers"),
        (np.zeros((2, 0)), "x is empty"),
        ([1.0, float("inf")], "x[1] is inf"),
        ({"a": {"b": 10**400}}, "x['a']['b'] is beyond the largest float"),
        (Settings(object()), "x.content is an object of the class object"),
        (xr.Dataset({"y": ("k", np.array([1j]))}), "x['y'] has entries of the type complex128"),
        ([np.ones(2), {"a": 0}, "text", None, True, Settings(3)], ""),
    ],
)
def test_what_is_out_of_the_ordinary_is_named(value, line):
    said = unusable_part({"n": 2, "x": value}, ValueError())
    assert said.startswith(line)
    assert bool(said) is bool(line)


def test_zeros_explain_divisions_and_empty_lists_lookups():
    assert unusable_part({"x": np.zeros(2)}, ZeroDivisionError()) == "x has an entry 0"
    assert unusable_part({"x": np.zeros(2)}, IndexError()) == ""
    assert unusable_part({"x": []}, IndexError()) == "x is empty"
    assert unusable_part({"x": []}, TypeError()) == ""
