"""Region formulas: the paper's numbers, the maxima, and where the printed bound fails."""

import math

import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.bounds.liu2021_regions import (
    liu2021_central_regions_maximum,
    liu2021_regions,
    liu2021_regions_break_even,
)


def test_the_printed_bound_is_not_monotone_in_the_support():
    logs = [math.log10(liu2021_regions(200, s0, "printed")) for s0 in (50, 73, 100)]
    assert [round(value, 1) for value in logs] == [30.1, 22.0, 30.1]


@pytest.mark.parametrize("n1", [1, 3, 10, 40])
def test_with_biases_bound_construction_and_maximum_are_ordered_and_the_maximum_grows(n1):
    maxima = [liu2021_regions(n1, s0) for s0 in range(1, n1 + 1)]
    assert maxima == sorted(maxima)
    assert maxima[-1] == 2**n1
    for s0 in range(1, n1 + 1):
        printed, built, most = (
            liu2021_regions(n1, s0, name) for name in ("printed", "corrected", "sharp")
        )
        assert printed < built <= most


def test_without_biases_the_printed_bound_fails():
    wrong = [
        (n1, s0)
        for s0 in (1, 2, 3)
        for n1 in range(s0 + 1, 13)
        if liu2021_regions(n1, s0, "printed") > liu2021_central_regions_maximum(n1, s0)
    ]
    assert wrong[0] == (3, 1)
    assert (10, 2) in wrong
    assert liu2021_central_regions_maximum(3, 1) == 2
    assert liu2021_central_regions_maximum(10, 2) == 20


def test_the_central_maximum_is_that_of_one_dimension_less_twice():
    for n1, s0 in ((4, 2), (9, 4), (30, 3)):
        assert liu2021_central_regions_maximum(n1, s0) == 2 * liu2021_regions(n1 - 1, s0 - 1)


def test_at_the_break_even_width_the_printed_bounds_are_equal():
    p, s0 = 100, 10
    n1 = liu2021_regions_break_even(p, s0)
    assert s0 * math.log(n1 / s0) == pytest.approx(p * math.log(n1 / p))
    assert n1 < p ** (p / (p - s0))


@pytest.mark.parametrize(
    "call", [lambda: liu2021_regions(0, 1), lambda: liu2021_regions_break_even(3, 3)]
)
def test_sizes_out_of_range_are_refused(call):
    with pytest.raises(UserError, match=r"at least one|choose s0"):
        call()
