"""Tokenized mixture: every condition of Assumption 3, where it is tight, and refusals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.tokenized_mixture import (
    check_assumption_3,
    draw_mixture,
    make_tokenized_mixture,
    relevant_count,
    require_assumption_3,
    sample_mixture,
)

KEY = jax.random.key(0)
# The box of the patterns lies inside the ball: 2 Z_mu^2 + Z_nu^2 / M < S^2 Z^2.
NOISE = {"Z_mu": 0.3, "Z_nu": 0.4, "Z": 0.8}
MIXTURE = make_tokenized_mixture(KEY, d=7, M=3, S=1.5, zeta=0.4, **NOISE)
ROUNDING = 1e-13  # inner products of 7 terms below 3: a few hundred units of rounding


def mark(chosen):
    return chosen[:, :, None].astype(float)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["none", "uniform", "corners", "adversarial"])
@pytest.mark.parametrize("sample", [sample_mixture, draw_mixture])
def test_samples_satisfy_assumption_3(sample, kind):
    samples = sample(KEY, MIXTURE, 20, 5, kind)

    left = check_assumption_3(MIXTURE, samples)
    require_assumption_3(MIXTURE, samples)
    assert min(left.values()) > -ROUNDING
    assert set(np.unique(samples.y)) == {-1.0, 1.0}
    assert {0, 1, 2} == set(np.unique(samples.pattern))
    # Positions differ between samples.
    assert len(np.unique(samples.relevant, axis=0)) > 1


@pytest.mark.parametrize("kind", ["corners", "adversarial"])
def test_corners_reach_every_bound(kind):
    left = check_assumption_3(MIXTURE, sample_mixture(KEY, MIXTURE, 20, 5, kind))

    tight = ("noise_mu", "noise_nu", "noise_norm", "token_norm")
    assert max(abs(left[name]) for name in tight) < ROUNDING


def test_adversarial_noise_reaches_the_margin_of_the_oracle():
    samples = sample_mixture(KEY, MIXTURE, 20, 5, "adversarial")
    oracle = MIXTURE.patterns[0] - MIXTURE.patterns[1]

    margins = samples.y * jnp.einsum("ntd,d->n", samples.X, oracle)

    # T (zeta S^2 - 2 (1 - zeta) Z_mu), the least value Assumption 3 allows.
    expected = 5 * (0.4 * 1.5**2 - 2 * 0.6 * 0.3)
    np.testing.assert_allclose(margins, expected, rtol=1e-13)


def test_uniform_noise_fills_the_ball_and_is_centred():
    samples = sample_mixture(KEY, MIXTURE, 4000, 5, "uniform")
    z = (samples.X - MIXTURE.irrelevant[samples.pattern])[~samples.relevant]
    along = np.asarray(z @ MIXTURE.patterns[0])

    # Uniform on [-Z_mu, Z_mu]: variance Z_mu^2 / 3; five standard errors of 12000 draws.
    assert abs(along.mean()) < 5 * 0.3 / np.sqrt(3 * along.size)
    assert abs(np.mean(along**2) - 0.03) < 5 * 0.09 / np.sqrt(along.size)
    assert np.linalg.norm(z, axis=1).max() > 0.99 * 0.8
    assert abs(float(samples.y.mean())) < 5 / np.sqrt(4000)


def test_a_box_beyond_the_ball_is_drawn_in():
    mixture = make_tokenized_mixture(KEY, d=3, M=1, S=1.0, Z_mu=5.0, Z_nu=5.0, Z=0.5)
    samples = sample_mixture(KEY, mixture, 10, 2, "corners")

    left = check_assumption_3(mixture, samples)
    assert abs(left["noise_norm"]) < ROUNDING
    assert left["noise_mu"] > 0


def test_single_precision_stays_within_its_rounding():
    mixture = jax.tree.map(lambda a: a.astype(jnp.float32), MIXTURE)
    samples = sample_mixture(KEY, mixture, 20, 5, "corners")

    require_assumption_3(mixture, samples)
    assert samples.X.dtype == samples.y.dtype == jnp.float32


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("labels", lambda s: eqx.tree_at(lambda t: t.y, s, 9 * s.y)),
        ("relevant_tokens", lambda s: eqx.tree_at(lambda t: t.X, s, s.X + mark(s.relevant))),
        ("noise_norm", lambda s: eqx.tree_at(lambda t: t.X, s, s.X + mark(~s.relevant))),
        ("sparsity", lambda s: eqx.tree_at(lambda t: t.relevant, s, s.relevant & False)),
    ],
)
def test_a_broken_condition_is_seen(name, change):
    samples = sample_mixture(KEY, MIXTURE, 5, 5, "none")

    broken = change(samples)
    assert check_assumption_3(MIXTURE, broken)[name] < -0.1
    with pytest.raises(UserError, match="Assumption 3 fails"):
        require_assumption_3(MIXTURE, broken)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"d": 4, "M": 3}, "do not fit into d = 4"),
        ({"d": 4, "M": 0}, "at least one irrelevant"),
        ({"d": 4, "M": 1, "S": 0.0}, "S = 0.0"),
        ({"d": 4, "M": 1, "zeta": 1.0}, "zeta = 1.0"),
        ({"d": 4, "M": 1, "Z_mu": -1.0}, "Z_mu = -1.0"),
        ({"d": 4, "M": 1, "Z": float("nan")}, "Z = nan"),
    ],
)
def test_bad_mixtures_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        make_tokenized_mixture(KEY, **settings)


def test_bad_draws_are_refused():
    with pytest.raises(UserError, match="not an integer from 1"):
        relevant_count(MIXTURE, 4)
    with pytest.raises(UserError, match="at least one sample"):
        sample_mixture(KEY, MIXTURE, 0, 5)
    with pytest.raises(UserError, match="'loud' is unknown"):
        draw_mixture.__wrapped__(KEY, MIXTURE, 1, 5, "loud")


def test_the_bound_of_the_tokens_counts_the_noise_along_a_pattern_twice():
    # The worst token is nu_1 + z with <z, nu_1> = Z_nu / M: its square is S^2 + 2 Z_nu / M + Z^2.
    nu, z = np.array([1.5, 0.0]), np.array([0.4 / 3 / 1.5, 0.0])
    z[1] = np.sqrt(0.8**2 - z[0] ** 2)
    np.testing.assert_allclose(MIXTURE.R, np.linalg.norm(nu + z), rtol=1e-13)
