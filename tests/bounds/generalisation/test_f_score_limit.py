"""The F1 limit: how often it fails, exactly, and what other counts would make of it."""

import math

import numpy as np
import pytest
from scipy import stats

from attlas.bounds.generalisation.f_score_limit import f_score_lower_limit
from attlas.core.errors import UserError

N, DELTA = 30, 0.1
LAWS = [(0.3, 0.1), (0.05, 0.05), (0.6, 0.02), (0.02, 0.3), (0.45, 0.45)]
"""Probabilities of a true positive and of an error."""
COUNTS = np.array([(a, b) for a in range(N + 1) for b in range(N + 1 - a)])


def _missed(limits, hit, wrong):
    """P(limit(TP, errors) > F1) over N independent examples, by the multinomial law."""
    counts = np.column_stack([COUNTS, N - COUNTS.sum(axis=1)])
    chances = stats.multinomial(N, [hit, wrong, 1 - hit - wrong]).pmf(counts)
    return float(chances[limits > 2 * hit / (2 * hit + wrong)].sum())


def test_it_fails_at_most_as_often_as_it_says():
    limits = np.array([f_score_lower_limit(a, b, DELTA) for a, b in COUNTS.tolist()])
    missed = [_missed(limits, *law) for law in LAWS]
    assert 0.3 * DELTA < max(missed) <= DELTA


def test_the_measured_score_and_errors_among_all_examples_fail_more_often():
    a, b = COUNTS.T
    measured = np.where(a, 2 * a / np.maximum(2 * a + b, 1), 0.0)
    assert min(_missed(measured, *law) for law in LAWS) > DELTA
    # As if each example were of the class or predicted to be.
    u = stats.beta.ppf(1 - DELTA, b + 1, np.maximum(N - b, 1))
    assert max(_missed(2 * (1 - u) / (2 - u), *law) for law in LAWS) > 0.5


def test_it_inverts_the_binomial_tail():
    for a, b in ((80, 20), (3, 0), (0, 4), (1, 9)):
        low = f_score_lower_limit(a, b, 0.05)
        q = 2 * (1 - low) / (2 - low)  # of the score, the share of errors
        assert math.isclose(stats.binom.cdf(b, a + b, q), 0.05 if a else 1.0, rel_tol=1e-9)


def test_at_any_time_costs_something():
    assert 0 < f_score_lower_limit(80, 20, 0.05, anytime=True) < f_score_lower_limit(80, 20, 0.05)


@pytest.mark.parametrize("arguments", [(-1, 2, 0.1), (1, 0.5, 0.1), (1, 1, 1.0)])
def test_bad_input_is_one_line(arguments):
    with pytest.raises(UserError):
        f_score_lower_limit(*arguments)
