"""The least of several certificates pays for all of them, and no other way takes it."""

import math
import operator
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

from attlas.bounds.generalisation.compression_bound import compression_bound
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.bounds.generalisation.token_bound import token_bound
from attlas.bounds.generalisation.union import union
from attlas.core.errors import UserError

ONE, OTHER = partial(held_out_bound, 30, 1000), partial(held_out_bound, 40, 1200)


def test_functions_are_computed_at_their_shares():
    least = union(ONE, OTHER, delta=0.05)
    # Clopper and Pearson (1934) by quantiles of beta laws
    limits = [stats.beta.ppf(1 - 0.025, k + 1, n - k) for k, n in ((30, 1000), (40, 1200))]
    np.testing.assert_allclose(least.bound, min(limits), rtol=1e-12)
    assert (least.delta, least.certificates, least.n) == (0.05, 2, 1000)
    assert least.bound > ONE(0.05).bound
    weighted = union(ONE, OTHER, delta=0.05, weights=[0.1, 0.9])
    np.testing.assert_allclose(
        weighted.bound, min(ONE(0.005).bound, OTHER(0.045).bound), rtol=1e-12
    )
    assert math.isclose(weighted.shares[1][1], 0.045)


def test_shares_never_exceed_delta():
    for count in (1, 3, 7, 10):
        least = union(*[ONE] * count, delta=0.05)
        assert sum(Fraction(share) for _, share in least.shares) <= Fraction(0.05)
        assert len(least.shares) == least.certificates == count


def test_bounds_are_paid_with_the_sum_of_their_deltas():
    least = union(ONE(0.01), OTHER(0.03))
    assert (least.delta, least.bound) == (0.04, min(ONE(0.01).bound, OTHER(0.03).bound))
    nested = union(least, compression_bound(0.5, 100, 8, 0.02))
    assert (nested.certificates, round(nested.delta, 12)) == (3, 0.06)


def test_all_conditions_hold_and_other_sizes_take_the_least_there():
    least = union(ONE(0.01), compression_bound(0.02, 1000, 160, 0.01))
    texts = [condition.text for condition in least.conditions]
    assert len(texts) == len(set(texts)) == 6
    at = ONE(0.01).at, compression_bound(0.02, 1000, 160, 0.01).at
    assert [least.at(m) for m in (100.0, 1e6)] == [min(a(m) for a in at) for m in (100.0, 1e6)]
    assert at[0](100.0) < at[1](100.0)
    assert at[1](1e6) < at[0](1e6)


@pytest.mark.parametrize("order", [operator.lt, operator.le, operator.gt, operator.ge])
def test_bounds_have_no_order(order):
    for other in (OTHER(0.05), 0.5):
        with pytest.raises(TypeError, match="pay for the choice, by union"):
            order(ONE(0.05), other)
        with pytest.raises(TypeError, match="union"):
            order(other, ONE(0.05))


@pytest.mark.parametrize("choose", [min, max, sorted, np.argmin, np.min])
def test_no_function_takes_the_least(choose):
    with pytest.raises(TypeError, match="union"):
        choose([ONE(0.05), OTHER(0.05)])


@pytest.mark.parametrize(
    ("certificates", "more", "message"),
    [
        ((), {}, "union of nothing"),
        ((ONE,), {}, "delta is None"),
        ((ONE,), {"delta": 0.0}, "delta = 0"),
        ((ONE, OTHER(0.01)), {"delta": 0.05}, "neither functions nor delta"),
        ((OTHER(0.01),), {"delta": 0.05}, "neither functions nor delta"),
        ((ONE(0.6), OTHER(0.6)), {}, "sum of the deltas"),
        ((ONE, OTHER), {"delta": 0.05, "weights": [0.5]}, "give 2 positive ones"),
        ((ONE, OTHER), {"delta": 0.05, "weights": [0.5, 0.6]}, "give 2 positive ones"),
        ((ONE, OTHER), {"delta": 0.05, "weights": [0.5, 0.0]}, "give 2 positive ones"),
        ((ONE, lambda level: OTHER(0.05)), {"delta": 0.05}, "certificate 2 of 2"),
        ((lambda level: 0.1,), {"delta": 0.05}, "certificate 1 of 1"),
        ((ONE(0.01), held_out_bound(3, 100, 0.01, trivial=0.5)), {}, "need the same one"),
        ((ONE(0.01), token_bound([0.5] * 9, 50, 8, 0.01)), {}, "need the same one"),
    ],
)
def test_bad_input_is_one_line(certificates, more, message):
    with pytest.raises(UserError, match=message) as error:
        union(*certificates, **more)
    assert "\n" not in str(error.value)
