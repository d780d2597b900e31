"""The bettor: its formula written out, its expectation by enumeration, and its order."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from attlas.bounds.generalisation.betting_limit import SHARES, betting_upper_limit
from attlas.core.errors import UserError


def _capital(losses, m, delta, horizon, share):
    """One bettor, example by example, as the formula reads."""
    capital, largest = 1.0, 0.0
    for i, x in enumerate(losses):
        before = losses[:i]
        means = [(0.5 + sum(losses[: j + 1])) / (j + 2) for j in range(i)]
        spread = 0.25 + sum((x - mean) ** 2 for x, mean in zip(before, means, strict=True))
        variance = spread / (i + 1)
        stake = math.sqrt(2 * math.log(1 / delta) / (horizon(i + 1) * variance))
        capital *= 1 + min(stake, share / (1 - m)) * (m - x)
        largest = max(largest, capital)
    return capital, largest


def _mean_capital(losses, m, delta):
    horizon = lambda i: i * math.log(i + 1)  # noqa: E731
    times = range(1, len(losses) + 1)
    return max(
        np.mean([_capital(losses[:t], m, delta, horizon, share)[0] for share in SHARES])
        for t in times
    )


def test_the_limit_at_any_time_is_where_the_written_out_capital_reaches_its_aim():
    losses = np.random.default_rng(3).beta(1, 6, 12).tolist()
    wanted = optimize.brentq(lambda m: _mean_capital(losses, m, 0.1) - 10, 0.2, 0.95)
    found = betting_upper_limit(losses, 0.1, anytime=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert found >= wanted


@pytest.mark.thorough
@pytest.mark.parametrize("anytime", [False, True])
def test_it_fails_no_more_often_than_it_says_for_every_law_on_three_losses(anytime):
    """All sequences of six losses of 0, 0.4 and 1, at laws that are hard for an upper limit."""
    delta, values = 0.3, np.array([0.0, 0.4, 1.0])
    sequences = [list(s) for s in itertools.product(range(3), repeat=6)]
    limits = np.array([betting_upper_limit(values[s], delta, anytime=anytime) for s in sequences])
    worst = 0.0
    for law in ([0.7, 0.2, 0.1], [0.5, 0.0, 0.5], [0.2, 0.0, 0.8], [0.1, 0.8, 0.1]):
        weights = np.array([math.prod(law[k] for k in s) for s in sequences])
        worst = max(worst, float(weights[limits < values @ law].sum()))
    assert worst <= delta
    assert worst > 0  # else nothing was tested


def test_the_order_of_a_file_does_not_matter_at_a_fixed_number():
    losses = np.sort(np.random.default_rng(1).beta(1, 9, 2000))
    random = np.random.default_rng(2).permutation(losses)
    wanted = betting_upper_limit(random, 0.05)
    np.testing.assert_allclose(betting_upper_limit(losses, 0.05), wanted, rtol=0.01)
    assert betting_upper_limit(losses, 0.05, anytime=True) < losses.mean() < wanted


def test_a_small_variance_is_used():
    still = np.tile([0.09, 0.11], 500)
    assert betting_upper_limit(still, 0.05) < 0.105
    wild = np.tile([0.0] * 9 + [1.0], 100)
    assert betting_upper_limit(wild, 0.05) > 0.115


@pytest.mark.parametrize(
    ("losses", "delta", "said"),
    [([0.5, 1.5], 0.1, "0.5 to 1.5"), ([], 0.1, "losses"), ([0.1], 1.0, "delta = 1.0")],
)
def test_bad_input_is_one_line(losses, delta, said):
    with pytest.raises(UserError, match=said):
        betting_upper_limit(losses, delta)
