"""Local complexity: its fixed point, the deviation by hand, its rate, what is refused."""

import math

import jax
import numpy as np
import pytest

from attlas.bounds.covering.dudley import dudley_chain
from attlas.core.errors import UserError
from attlas_bounds.library.bounds.linear_attention import LinearAttention, measure_margins
from attlas_bounds.library.bounds.local_margin_bound import (
    local_complexity,
    local_deviation,
    local_margin_bound,
    localised_risk,
)
from attlas_bounds.library.bounds.margin_bounds import cover_margin_bound


def sample(n=200, margin=1.0, wrong=0):
    own = LinearAttention([1.0, 0.0], np.array([[0.0, 0.0], [0.0, 2.0]]))
    y = np.where(np.arange(n) < wrong, -1.0, 1.0)
    X = np.broadcast_to(np.array([[margin, 0.0]]), (n, 1, 2))
    return measure_margins(own, X, [0.0, 1.0], y)


def test_the_complexity_is_above_its_own_chain_and_falls_with_the_risk():
    with jax.enable_x64(True):
        found = [float(local_complexity(2.0, r, 1e10)) for r in (1.0, 0.1, 0.01)]
        assert found == sorted(found, reverse=True)

        def cover(epsilon):
            return 2.0 / (0.9 * epsilon) ** 2 + np.log(np.ceil(5 / np.asarray(epsilon)))

        # further rounds would end at the fixed point
        again = float(dudley_chain(cover, 1e10, math.sqrt(0.1 + 2 * found[1])))
    assert again <= found[1] <= 1.1 * again


def test_deviation_and_risk_by_hand():
    V = float(local_deviation(0.02, 0.25, 100.0, 2.0))
    by_hand = 0.04 + math.sqrt(4 * (0.25 + 0.02) / 100) + 0.5 / 300
    assert math.isclose(V, by_hand, rel_tol=1e-6)
    assert math.isclose(float(localised_risk(0.3, 0.1, 0.2)), 0.6, rel_tol=1e-6)
    assert math.isclose(float(localised_risk(0.0, 0.1, 0.2)), 0.1, rel_tol=1e-6)
    assert float(localised_risk(0.0, 0.2, 0.2)) == 1.0


def test_it_falls_like_the_root_of_m_and_one_cover_like_m():
    own = sample()
    local, cover = (bound(own, 1.0, 0.05) for bound in (local_margin_bound, cover_margin_bound))
    for bound, m, least, most in ((local, 1e10, 20, 150), (cover, 1e6, 900, 1100)):
        assert least < bound.at(m) / bound.at(1000 * m) < most
        assert bound.at(m) < 1
    assert cover.at(1e10) < local.at(1e10) / 10


def test_errors_are_counted_and_small_samples_are_vacuous():
    own = local_margin_bound(sample(wrong=20), 1.0, 0.05)
    assert own.empirical == 0.1
    assert own.vacuous
    assert 0.1 < own.at(1e13) < 0.3


def test_long_tokens_are_refused():
    with pytest.raises(UserError, match=r"B_x = 0\.5, but a token has norm 1: raise B_x"):
        local_margin_bound(sample(), 0.5, 0.05)
