"""Sides that end at their rounding are decided, and no growth hides below it."""

from dataclasses import replace

import numpy as np
import pytest
from sequence_evidence import evidence

from attlas.claims.kinds.trend import Rate
from attlas.claims.kinds.vanishing import ends_as_zero
from attlas.claims.verdict import Outcome

RULE = Rate(doubled=True)


def test_a_ratio_that_grows_until_it_vanishes_does_not_comply():
    n = 2.0 ** np.arange(11)
    grown = n * np.exp(-n) * (n < 30) + 1e-17 * (-1.0) ** np.log2(n)
    verdict = RULE.decide(evidence(grown, np.exp(-n), n), 64, 1e-3)
    assert verdict.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("rule", [Rate(), RULE])
def test_a_side_of_zero_complies_and_one_of_rounding_alone_says_nothing(rule):
    n = 2.0 ** np.arange(4, 16)
    assert rule.decide(evidence(0 * n, 1 / n, n), 64, 1e-3).outcome is Outcome.SUPPORTED
    noise = 8e-16 * (-1.0) ** np.arange(12)
    rounded = evidence(noise, 1 / n, n)
    rounded = replace(rounded, magnitude=rounded.magnitude + 10.0)
    assert rule.decide(rounded, 64, 1e-3).outcome is Outcome.INCONCLUSIVE
    # Beside instances that are compared, one at its rounding complies.
    left = rounded.left.copy()
    left[1:] = (noise + np.exp(-n / 10))[None]
    mixed = replace(rounded, left=left)
    assert rule.decide(mixed, 64, 1e-3).outcome is Outcome.SUPPORTED
    # Without cancellation a small side is what it is.
    growing = evidence(1e-18 * n, 1.0 + 0 * n, n)
    assert rule.decide(growing, 64, 1e-3).outcome is Outcome.VIOLATED


def test_a_right_side_below_the_rounding_decides_nothing():
    t = np.arange(1.0, 9)[None, None]
    left = np.where(t < 3, 10.0**-t, 1e-16)
    unit = 1e-14 + 0 * t
    assert ends_as_zero(left, 1 / t, left, unit).all()
    assert not ends_as_zero(left, 10.0 ** (-3 * t), left, unit).any()
