from typing import NamedTuple

import numpy as np
import pytest
from jaxtyping import Float

from attlas.core.annotations import Beyond, reader
from attlas.core.errors import UserError


def read(annotation, beyond, value, name, shapes):
    """What the reader of an annotation makes of a value."""
    found = reader(annotation, beyond)
    assert found is not None
    return found(value, name, shapes)


class Pair(NamedTuple):
    low: float
    high: Float[np.ndarray, " n"]


def test_words_functions_and_keys_have_no_reader():
    assert reader(str, Beyond.NOTHING) is None
    assert reader(type(len), Beyond.NOTHING) is None


def test_none_passes_only_where_it_is_annotated():
    assert read(float | None, Beyond.NOTHING, None, "x", {}) is None
    with pytest.raises(UserError, match=r"^x has ndarray: give real numbers$"):
        read(float, Beyond.NOTHING, np.array(None), "x", {})


def test_fields_and_entries_are_named():
    shapes = {}
    found = read(Pair, Beyond.NOTHING, Pair(1, [2, 3]), "pair", shapes)
    assert (found.low, found.high.tolist(), shapes) == (1, [2.0, 3.0], {"pair.high": ("n", (2,))})
    with pytest.raises(UserError, match=r"^x\[1\] has dtype <U1"):
        read(tuple[float, float], Beyond.NOTHING, (1.0, "a"), "x", {})
    with pytest.raises(UserError, match=r"^x has 1 entries: give 2$"):
        read(tuple[float, float], Beyond.NOTHING, (1.0,), "x", {})
    assert read(tuple[float, ...], Beyond.NOTHING, [1, 2, 3], "x", {}) == (1.0, 2.0, 3.0)


def test_a_number_alone_is_one_of_python_whatever_it_comes_in():
    found = read(float, Beyond.INFINITE, np.float32(0.5), "x", {})
    assert (type(found), found) == (float, 0.5)
    assert read(int, Beyond.NOTHING, 10**400, "n", {}) == 10**400


def test_numbers_that_are_missing_pass_in_arrays_of_records_alone():
    numbers = Float[np.ndarray, " n"]
    assert np.isnan(read(numbers, Beyond.MISSING, [np.nan], "x", {})).all()
    with pytest.raises(UserError, match=r"^x is NaN"):
        read(numbers, Beyond.NOTHING, [np.nan], "x", {})
    with pytest.raises(UserError, match=r"^level is NaN"):
        read(float, Beyond.MISSING, np.nan, "level", {})
