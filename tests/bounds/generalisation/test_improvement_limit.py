"""Paired differences: both signs, and how often they fail."""

import math

import numpy as np
import pytest

from attlas.bounds.generalisation.betting_limit import betting_upper_limit
from attlas.bounds.generalisation.improvement_limit import examples_to_decide, improvement_limit
from attlas.core.errors import UserError


def test_pairs_say_more_than_two_certificates():
    rng = np.random.default_rng(0)
    hard = rng.random(2000) < 0.3
    better = hard * 1.0
    worse = np.where(rng.random(2000) < 0.03, 1.0, better)
    low = improvement_limit(worse, better, 0.05)
    assert 0 < low < (worse - better).mean()
    apart = 1 - betting_upper_limit(1 - worse, 0.025) - betting_upper_limit(better, 0.025)
    assert apart < 0  # what is difficult for both does not cancel there


def test_it_seldom_claims_an_improvement_that_is_not_there():
    rng = np.random.default_rng(1)
    losses = rng.random((400, 2, 100)) < 0.2
    claimed = sum(improvement_limit(X * 1.0, Y * 1.0, 0.2) > 0 for X, Y in losses)
    assert 0 < claimed < 0.2 * 400


def test_about_as_many_examples_decide_as_it_says():
    rng = np.random.default_rng(2)
    base = rng.random(200_000) < 0.1
    better = base & (rng.random(base.size) < 0.8)
    needed = examples_to_decide(base[:1000] * 1.0, better[:1000] * 1.0, 0.05)
    few, many = int(needed / 3), int(3 * needed)
    assert improvement_limit(base[:few] * 1.0, better[:few] * 1.0, 0.05) < 0
    assert improvement_limit(base[:many] * 1.0, better[:many] * 1.0, 0.05) > 0
    assert examples_to_decide([0.0, 1.0], [1.0, 0.0], 0.05) == math.inf


@pytest.mark.parametrize(
    ("pair", "said"), [(([0.0], [0.0, 1.0]), "others"), (([0.0], [2.0]), "others from 2 to 2")]
)
def test_bad_input_is_one_line(pair, said):
    with pytest.raises(UserError, match=said):
        improvement_limit(*pair, 0.05)
