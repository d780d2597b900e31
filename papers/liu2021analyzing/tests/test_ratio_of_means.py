"""Ratios of means: pairs, one run, and how often the interval holds the truth."""

import numpy as np
import pytest

from liu2021analyzing.library.measures.ratio_of_means import ratio_of_means


def test_pairs_that_differ_by_a_factor_have_no_spread():
    base = np.array([1.0, 2.0, 4.0])
    found = ratio_of_means(3 * base, base)
    assert found.value == pytest.approx(3)
    assert found.high - found.low < 1e-12
    loose = ratio_of_means(base, np.ones(3))
    assert loose.low < 7 / 3 < loose.high
    assert loose.low * loose.high == pytest.approx(loose.value**2)


def test_one_run_has_no_interval():
    value, low, high = ratio_of_means(np.array([6.0]), np.array([3.0]))
    assert value == 2.0
    assert np.isnan([low, high]).all()


@pytest.mark.thorough
def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    shared = rng.gamma(10.0, size=(2000, 20))
    top, bottom = 2 * shared * rng.gamma(50.0, size=(2, 2000, 20)) / 50
    found = [ratio_of_means(a, b) for a, b in zip(top, bottom, strict=True)]
    held = np.mean([each.low < 2 < each.high for each in found])
    # E of both factors is 1, so the ratio of expectations is that of 2 shared to 2 shared: 1.
    assert held < 0.01
    held = np.mean([each.low < 1 < each.high for each in found])
    # 2000 trials of probability .95 have a deviation of .005; the linearisation costs some.
    assert 0.93 < held < 0.97
