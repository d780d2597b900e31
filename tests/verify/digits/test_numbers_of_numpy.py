"""Single numbers: exact conversion, both orders of operands, nothing that rounds."""

import math
import operator

import numpy as np
import pytest

from attlas.verify.digits.numbers_of_numpy import Number
from attlas.verify.digits.precision import Precision, Unconfirmed

SIXTY = Precision(60)


def number(value: float) -> Number:
    return Number(SIXTY, SIXTY.real(value))


@pytest.mark.parametrize("operate", ["add", "sub", "mul", "truediv", "pow", "mod", "floordiv"])
@pytest.mark.parametrize("other", [0.75, 3, np.float64(0.3), np.int64(2)])
def test_numbers_of_python_and_numpy_stand_on_either_side(operate, other):
    function = getattr(operator, operate)
    pairs = [(function(number(2.5), other), function(2.5, float(other)))]
    if operate not in ("mod", "floordiv"):
        pairs.append((function(other, number(2.5)), function(float(other), 2.5)))
    for value, expected in pairs:
        assert isinstance(value, Number)
        assert float(value.value) == pytest.approx(expected, rel=1e-15)


def test_an_array_of_floats_multiplies_entry_by_entry():
    product = np.array([1.0, 2.0]) * number(1 / 3)
    assert [entry.value for entry in product] == [SIXTY.real(1 / 3), 2 * SIXTY.real(1 / 3)]


@pytest.mark.parametrize("rounds", [float, int, complex, math.sqrt, np.float64, range])
def test_no_conversion_rounds_silently(rounds):
    with pytest.raises(Unconfirmed):
        rounds(number(2.0))


def test_comparisons_see_what_floats_do_not():
    assert number(1.0) + 2.0**-100 > 1.0
    assert number(1.0) + 2.0**-100 - 1.0 == 2.0**-100
    assert not number(0.0)
