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
    assert all(0 < x < 1 for x in asked)


def test_a_statement_that_always_holds_gives_the_other_end():
    assert first_float(lambda x: True, 0.7) == 0.0
    assert first_float(lambda x: True, 0.7, downward=True) == 1.0


@pytest.mark.parametrize("downward", [False, True])
def test_the_last_end_is_not_asked_where_it_is_the_guess(downward):
    asked, end = [], 0.0 if downward else 1.0
    point = first_float(lambda x: bool(asked.append(x)), end, downward=downward)
    assert point == end
    assert end not in asked


@pytest.mark.parametrize("downward", [False, True])
def test_an_end_that_the_search_meets_is_asked_and_returned(downward):
    """Seven floats from the first end: strides of 1, 2 and 4 lead to it."""
    asked, guess = [], 1.0 if downward else 0.0
    end = guess
    for _ in range(7):
        guess = math.nextafter(guess, 0.5)
    assert first_float(lambda x: asked.append(x) or True, guess, downward=downward) == end
    assert asked[0] == guess
    assert asked[-1] == end
    assert len(asked) == 4


@pytest.mark.parametrize("downward", [False, True])
@pytest.mark.parametrize("toward", [False, True])
def test_strides_double_until_the_point_is_passed_and_halve_again(downward, toward):
    """The point lies 20 floats from the guess, before it or after it in the search's direction."""
    sign = (-1 if downward else 1) * (1 if toward else -1)
    floats = {0: 0.3}
    for k in range(1, 40):
        for side in (-1, 1):
            floats[side * k] = math.nextafter(floats[side * (k - 1)], (side + 1) / 2)
    places, asked = {x: k for k, x in floats.items()}, []

    def holds(x):
        asked.append(places[x] * sign)
        return x <= floats[20 * sign] if downward else x >= floats[20 * sign]

    assert first_float(holds, 0.3, downward=downward) == floats[20 * sign]
    assert asked == [0, 1, 3, 7, 15, 31, 23, 19, 21, 20]


@pytest.mark.parametrize(("guess", "first"), [(0.3, 0.3), (-0.5, 0.0), (1e-300, 1e-300)])
def test_the_guess_is_asked_first_and_one_outside_is_moved_to_the_end(guess, first):
    asked = []
    assert first_float(lambda x: asked.append(x) or x >= 0.5, guess) == 0.5
    assert asked[0] == first
    asked.clear()
    assert first_float(lambda x: asked.append(x) or x <= 0.5, 1.7, downward=True) == 0.5
    assert asked[0] == 1.0
