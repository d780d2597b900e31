"""The first float at which a statement holds, from any guess, at both ends and inside."""

import math
from fractions import Fraction

import pytest

from attlas.bounds.generalisation.outward_rounding import first_float

POINTS = (Fraction(1, 3), Fraction(1, 2), Fraction(1, 10**300), 1 - Fraction(1, 2**60))


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("guess", [0.0, 1.0, 0.5, 1e-310, 0.3333])
def test_the_float_beside_a_rational_is_found_from_both_sides(point, guess):
    up = first_float(lambda x: Fraction(x) >= point, guess)
    down = first_float(lambda x: Fraction(x) <= point, guess, downward=True)
    assert Fraction(down) <= point <= Fraction(up)
    assert up == (down if Fraction(down) == point else math.nextafter(down, 1.0))


def test_a_statement_that_never_holds_gives_the_end_without_being_asked_there():
    asked = []

    def never(x):
        asked.append(x)
        return False

    assert first_float(never, 0.7) == 1.0
    assert first_float(never, 0.7, downward=True) == 0.0
    assert asked
    assert not {1.5, -0.5} & set(asked)
    assert all(0 <= x <= 1 for x in asked)


def test_a_statement_that_always_holds_gives_the_other_end():
    assert first_float(lambda x: True, 0.7) == 0.0
    assert first_float(lambda x: True, 0.7, downward=True) == 1.0
