"""Local complexity: its fixed point, the deviation by hand, its rate, what is refused."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.covering.dudley import dudley_chain
from attlas.core.errors import UserError
from attlas_bounds.library.bounds import local_margin_bound as module
from attlas_bounds.library.bounds.linear_attention import LinearAttention, measure_margins
from attlas_bounds.library.bounds.local_margin_bound import (
    local_complexity,
    local_deviation,
    local_margin_bound,
    localised_risk,
)
from attlas_bounds.library.bounds.margin_bounds import GRID, cover_coefficient, cover_margin_bound


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


@pytest.mark.parametrize(
    ("coefficient", "risk", "m"), [(2.0, 0.3, 1e4), (0.7, 0.02, 1e6), (50.0, 1.0, 3.0)]
)
def test_the_complexity_is_the_last_of_three_chains(coefficient, risk, m):
    psi = 1.0

    def cover(epsilon):
        epsilon = np.asarray(epsilon)
        return coefficient / 0.81 / epsilon**2 + np.log(np.ceil(5 / epsilon))

    with jax.enable_x64(True):
        for _ in range(3):
            psi = min(psi, float(dudley_chain(cover, m, math.sqrt(risk + 2 * psi))))
    assert float(local_complexity(coefficient, risk, m)) == pytest.approx(psi, rel=1e-12)
    assert (psi == 1) == (m == 3)


@pytest.mark.parametrize("m", [40.0, 1e4, 1e13])
def test_where_a_margin_is_left_out_no_radius_decides(m):
    with jax.enable_x64(True):
        for r in module.RISKS:
            assert 2 * float(local_complexity(module._VACUOUS * m, r, m)) >= r


def test_risk_is_not_divided_by_what_is_zero_but_for_rounding():
    near, apart = (0.2 * (1 - part * 2**-30) for part in (0.75, 1.5))
    assert float(localised_risk(0.0, near, 0.2)) == 1.0
    assert float(localised_risk(0.0, apart, 0.2)) == apart
    assert float(localised_risk(0.5, 0.1, 0.15)) == 1.0


@pytest.mark.parametrize("m", [1e9, 1e12])
def test_the_bound_is_the_least_over_margins_and_radii(m):
    rng = np.random.default_rng(4)
    a, M = rng.normal(size=(2, 3)), 0.2 * rng.normal(size=(2, 3, 3))
    X, x = rng.uniform(-0.5, 0.5, (50, 4, 3)), np.array([0.3, -0.4, 0.2])
    f = measure_margins(LinearAttention(a, M), X, x, np.ones(50)).margins
    own = measure_margins(LinearAttention(a, M), X, x, np.sign(f) * np.where(f > 0.9, -1, 1))
    bound = local_margin_bound(own, 0.9, 0.03)
    norm = float(np.abs(own.query_keys).sum())
    gamma = cover_coefficient(0.9, float(min(g for g in GRID if g >= norm)), 2, 3)
    x = math.log(81 * 13 * 6 / 0.03)
    margins = [2.0**k for k in range(-10, 3)]
    pairs = [(g, 4.0**-k) for g in margins for k in range(6)]
    psis = jax.vmap(lambda D, r: local_complexity(D, r, m))(
        jnp.array([gamma / g**2 for g, _ in pairs]), jnp.array([r for _, r in pairs])
    )
    found = []
    for (g, r), psi in zip(pairs, np.asarray(psis), strict=True):
        losses = [min(1, max(0, 1 - f / np.abs(a).sum() / g)) for f in own.margins]
        empirical = sum(losses) / 50
        V = 2 * psi + math.sqrt(2 * x * r * (1 + 4 * psi) / m) + r * x / (3 * m)
        found.append(1.0 if r <= V else min(1, max(empirical + V, r / (r - V) * empirical)))
    assert 0.05 < min(found) < 0.9
    assert bound.at(m) == pytest.approx(min(found), rel=1e-10)
    assert bound.complexity == pytest.approx(math.log(81 * 13 * 6), rel=1e-14)
    large = own._replace(query_keys=1e5 * own.query_keys)
    assert local_margin_bound(large, 0.9, 0.03).at(1e300) == 1.0


def test_what_roundings_add(monkeypatch):
    own = sample()
    monkeypatch.setattr(module, "_SAFE", 1.01)
    # once in the length of tokens, whose square is a factor of the entropy, and once at the end
    bound = local_margin_bound(own, 1.0, 0.05).at(1e13)
    assert local_margin_bound(own, 1.0, 0.05).at(1.0) == 1.0
    monkeypatch.setattr(module, "_SAFE", 1.0)
    assert bound == pytest.approx(1.01 * local_margin_bound(own, 1.01, 0.05).at(1e13), rel=1e-12)


def test_deviation_and_risk_by_hand():
    V = float(local_deviation(0.02, 0.25, 100.0, 2.0))
    by_hand = 0.04 + math.sqrt(4 * (0.25 + 0.02) / 100) + 0.5 / 300
    assert math.isclose(V, by_hand, rel_tol=1e-13)
    V = float(local_deviation(0.03, 0.35, 170.0, 2.6))
    by_hand = 0.06 + math.sqrt(5.2 * 0.35 * 1.12 / 170) + 0.91 / 510
    assert math.isclose(V, by_hand, rel_tol=1e-13)
    assert math.isclose(float(localised_risk(0.3, 0.1, 0.2)), 0.6, rel_tol=1e-13)
    assert math.isclose(float(localised_risk(0.3, 0.02, 0.7)), 0.32, rel_tol=1e-13)
    assert math.isclose(float(localised_risk(0.0, 0.1, 0.2)), 0.1, rel_tol=1e-13)
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
