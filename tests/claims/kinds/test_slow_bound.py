"""Bounds that are powers of the logarithm: told from others, and decided by one constant."""

import numpy as np
import pytest
from sequence_evidence import evidence

from attlas.claims.kinds.slow_bound import logarithmic_bound
from attlas.claims.kinds.trend import Rate
from attlas.claims.verdict import Outcome

RULE = Rate(doubled=True)


@pytest.mark.parametrize("rule", [Rate(), RULE])
def test_a_bound_of_the_logarithm_needs_one_constant_for_all_scales(rule):
    t = 2.0 ** np.arange(4, 14)
    log = np.log(t)

    def decided(*laws):
        rows = [laws[k % len(laws)] + 0 * t for k in range(64)]
        left = np.stack(rows)
        return rule.decide(evidence(left, 1 / log, t), 64, 1e-3).outcome

    slow = 0.3 / log * (1 - 2 / log)
    assert decided(0.9 / log, slow, np.full(10, 0.01)) is Outcome.SUPPORTED
    # A side that is level, or comes like a smaller power, does not comply by its own constant.
    for false in (np.full(10, 0.1), log**-0.5, log**-0.9, np.log(log) / log):
        assert decided(false) is not Outcome.SUPPORTED
        assert decided(0.9 * false, false) is not Outcome.SUPPORTED
    # A power of the scale is compared as it is.
    rows = np.stack([0.9 / t, 1e-3 / np.sqrt(t)] * 32)
    assert rule.decide(evidence(rows, 1 / t, t), 64, 1e-3).outcome is Outcome.VIOLATED


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_a_power_of_the_logarithm_is_recognised_with_its_shift(power, shift):
    t = 2.0 ** np.arange(4, 16)
    found, last = logarithmic_bound(7.0 * (np.log(t) + shift) ** -power, t)
    np.testing.assert_allclose(found, power, rtol=0.05)
    np.testing.assert_allclose(last, np.log(t[-1]) + shift, rtol=0.05)


@pytest.mark.parametrize(
    "law",
    [lambda t: t**-0.1, lambda t: 1 / t, np.log, lambda t: np.log(t) / t, lambda t: 1 + 0 * t,
     lambda t: np.exp(-t / 1000), lambda t: np.log(t) ** -5.0],
)  # fmt: skip
def test_other_bounds_are_none(law):
    t = 2.0 ** np.arange(4, 16)
    assert np.isnan(logarithmic_bound(law(t), t)[0])
