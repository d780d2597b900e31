"""Mean losses: counted where they are errors, bet on where they are not."""

import numpy as np
import pytest

from attlas.bounds.generalisation.betting_limit import betting_upper_limit
from attlas.bounds.generalisation.error_sequence import error_sequence_limit
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.bounds.generalisation.mean_bound import mean_bound
from attlas.bounds.generalisation.union import union
from attlas.core.errors import UserError

LOSSES = np.random.default_rng(0).beta(1, 9, 400)
ERRORS = np.repeat([0.0, 1.0], [380, 20])


def test_errors_are_counted():
    assert mean_bound(ERRORS, 0.05).bound == held_out_bound(20, 400, 0.05).bound
    assert mean_bound(ERRORS, 0.05, anytime=True).bound == error_sequence_limit(20, 400, 0.05)


def test_losses_are_bet_on_or_have_a_variance():
    assert mean_bound(LOSSES, 0.05).bound == betting_upper_limit(LOSSES, 0.05)
    n, cost = LOSSES.size, np.log(2 / 0.05)
    deviation = LOSSES.std(ddof=1)
    # Theorem 4 of Maurer and Pontil (2009)
    wanted = LOSSES.mean() + deviation * np.sqrt(2 * cost / n) + 7 * cost / (3 * (n - 1))
    found = mean_bound(LOSSES, 0.05, method="bernstein").bound
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert found > wanted


def test_the_least_of_two_methods_is_paid_for():
    least = union(
        lambda level: mean_bound(LOSSES, level),
        lambda level: mean_bound(LOSSES, level, method="bernstein"),
        delta=0.05,
    )
    assert least.bound == mean_bound(LOSSES, np.nextafter(0.025, 0)).bound
    assert least.certificates == 2


def test_at_any_time_it_says_that_the_order_counts():
    texts = [c.text for c in mean_bound(LOSSES, 0.05, anytime=True).conditions]
    assert "the examples stand in the order in which they came" in texts
    assert "the examples are independent draws from the law of the risk" not in texts


@pytest.mark.parametrize(
    ("losses", "options", "said"),
    [
        ([0.1, 1.2], {}, "0.1 to 1.2"),
        ([0.1, 1.2], {"method": "bernstein"}, "0.1 to 1.2"),
        ([0.1], {"method": "bernstein", "anytime": True}, "at one number of examples"),
    ],
)
def test_bad_input_is_one_line(losses, options, said):
    with pytest.raises(UserError, match=said):
        mean_bound(losses, 0.05, **options)
