"""The bound that counts bits: valid for the worst of all files, and not by half."""

import math

import numpy as np

from attlas.bounds.generalisation.occam import occam_gap, occam_samples


def test_the_gap_holds_for_the_worst_of_all_files():
    """Two bits, four models: exact tails of binomials against the union bound."""
    m, delta = 60, 0.1
    gap = occam_gap(1, 2, m, delta)
    losses = np.arange(m + 1) / m
    tails = [
        math.fsum(
            math.comb(m, k) * p**k * (1 - p) ** (m - k) for k in range(m + 1) if p - losses[k] > gap
        )
        for p in np.linspace(0.05, 0.95, 19)
    ]
    assert 4 * max(tails) <= delta
    # without the union over the four it would fail: half the gap is exceeded too often
    half = [sum(math.comb(m, k) * 0.5**m for k in range(m + 1) if 0.5 - losses[k] > gap / 2)]
    assert 4 * max(half) > delta


def test_the_gap_is_one_at_its_samples():
    np.testing.assert_allclose(occam_gap(7, 16, occam_samples(7, 16, 0.05), 0.05), 1, rtol=1e-15)
