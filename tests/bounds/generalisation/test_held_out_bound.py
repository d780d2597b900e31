"""The bound of a held-out set, its account of delta and its coverage."""

import math

import numpy as np
import pytest

from attlas.bounds.generalisation.binomial_tail import binomial_upper_limit
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.core.errors import UserError


def test_it_is_the_exact_limit_and_fails_as_often_as_it_says():
    n, delta = 30, 0.2
    limits = np.array([held_out_bound(k, n, delta).bound for k in range(n + 1)])
    assert limits[4] == binomial_upper_limit(4, n, delta)
    law = np.array(
        [
            [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
            for p in np.linspace(0.01, 0.99, 99)
        ]
    )
    misses = (law * (limits[None] < np.linspace(0.01, 0.99, 99)[:, None])).sum(1)
    assert 0.9 * delta < misses.max() <= delta


def test_it_says_what_it_rests_on():
    bound = held_out_bound(10, 100, 0.05)
    assert sum(share for _, share in bound.shares) == bound.delta
    assert [c.checked for c in bound.conditions] == [False, False, True]
    assert bound.gap == bound.bound - 0.1
    assert not bound.vacuous
    assert held_out_bound(10, 100, 0.05, trivial=0.1).vacuous


def test_samples_until_it_beats_guessing():
    bound = held_out_bound(2, 10, 0.05, trivial=0.5)
    needed = bound.samples_until_nonvacuous
    assert bound.at(needed) < 0.5 <= bound.at(needed - 1)
    assert held_out_bound(6, 10, 0.05, trivial=0.5).samples_until_nonvacuous == math.inf


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((1, 0, 0.1), "n = 0 examples"),
        ((1, 9, 1.0), "delta = 1.0"),
        ((1, 9, 0.1, 2), "trivial = 2"),
    ],
)
def test_bad_input_is_one_line(arguments, said):
    with pytest.raises(UserError, match=said):
        held_out_bound(*arguments)
