"""The prior of whole numbers is one: its weights sum to at most one, and it adapts to size."""

import itertools
import math
from fractions import Fraction

import numpy as np

from attlas_bounds.library.bounds.whole_number_prior import SPREADS, whole_number_bits


def test_the_weights_of_all_lists_sum_to_less_than_one_and_not_to_nothing():
    # One number: all up to 4000; more is left out than 17 laws with scales up to 2^16 have there.
    total = sum(
        (1 if q == 0 else 2) * Fraction(1, 2 ** whole_number_bits(np.array([q])))
        for q in range(4000)
    )
    assert Fraction(1, 16) < total < 1
    pairs = itertools.product(range(-40, 41), repeat=2)
    assert sum(Fraction(1, 2 ** whole_number_bits(np.array(pair))) for pair in pairs) < 1


def test_it_is_the_mixture_that_it_says():
    q = np.array([3, 0, -7, 120])
    terms = []
    for spread in SPREADS:
        r = math.exp(-1 / spread)
        terms.append(math.prod((1 - r) / (1 + r) * r ** abs(int(one)) for one in q))
    exact = -math.log2(sum(terms) / len(SPREADS))
    assert exact <= whole_number_bits(q) <= exact + 2


def test_it_costs_a_few_bits_more_than_the_law_that_was_drawn_from():
    rng = np.random.default_rng(0)
    r = math.exp(-1 / 24)
    q = rng.geometric(1 - r, 1000) - rng.geometric(1 - r, 1000)
    entropy_bits = -sum(math.log2((1 - r) / (1 + r)) + abs(int(one)) * math.log2(r) for one in q)
    # 24 lies between two of the scales: off by a third at most, 1 - ln(4/3) - 3/4 nats a number
    assert entropy_bits <= whole_number_bits(q) <= 1.03 * entropy_bits + math.log2(17) + 2


def test_small_numbers_and_order_do_not_matter():
    assert whole_number_bits(np.zeros((2, 3), int)) < whole_number_bits(np.full((2, 3), 2))
    assert whole_number_bits(np.array([1, -4])) == whole_number_bits(np.array([[4], [1]]))
    assert whole_number_bits(np.array([2**50])) > 2**33
