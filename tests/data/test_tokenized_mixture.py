"""Tokenized mixture: every condition of Assumption 3, where it is tight, and refusals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.data.tokenized_mixture import (
    MixtureSamples,
    TokenizedMixture,
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


def noise_of_a_token(mixture, y, box, radius, gaussian, kind):
    """One noise vector from its numbers, component by component."""
    rows = np.concatenate([mixture.patterns, mixture.irrelevant])
    M, norm = len(rows) - 2, np.sqrt(np.sum(rows[0] ** 2))
    z, left = np.zeros(rows.shape[1]), gaussian.copy()
    for k, row in enumerate(rows):
        bound = (mixture.Z_mu if k < 2 else mixture.Z_nu / M) / norm
        signs = {"corners": 1 if box[k] >= 0 else -1, "adversarial": (-y, y, 1)[min(k, 2)]}
        z += bound * signs.get(kind, box[k]) * row / norm
        left -= (gaussian @ row) * row / norm**2
    if np.linalg.norm(z) > mixture.Z:
        return z * mixture.Z / np.linalg.norm(z)
    length = np.sqrt(mixture.Z**2 - z @ z)
    free = rows.shape[1] - len(rows)
    if kind == "uniform" and free:
        # The distance of a uniform point of a ball from its centre.
        length *= radius ** (1 / free)
    return z + length * left / np.linalg.norm(left) if free else z


def samples_by_hand(mixture, draws, count, kind):
    label, order, choice, box, radius, gaussian = map(np.asarray, draws)
    y = np.where(label < 0.5, -1.0, 1.0)
    relevant, pattern = np.zeros(order.shape, bool), np.zeros(order.shape, int)
    X = np.zeros(gaussian.shape)
    for i, t in np.ndindex(order.shape):
        relevant[i, t] = t in sorted(range(order.shape[1]), key=lambda k, i=i: order[i, k])[:count]
        pattern[i, t] = int(np.floor(choice[i, t] * len(mixture.irrelevant)))
        X[i, t] = mixture.irrelevant[pattern[i, t]]
        if kind != "none":
            numbers = box[i, t], radius[i, t], gaussian[i, t]
            X[i, t] += noise_of_a_token(mixture, y[i], *numbers, kind)
        if relevant[i, t]:
            X[i, t] = mixture.patterns[0 if y[i] > 0 else 1]
    return X, y, relevant, pattern


LARGE_BOX = make_tokenized_mixture(KEY, d=7, M=3, S=1.5, zeta=0.4, Z_mu=1.5, Z_nu=2.0, Z=0.8)
NO_ROOM = make_tokenized_mixture(KEY, d=5, M=3, S=1.5, zeta=0.4, **NOISE)


@pytest.mark.parametrize("kind", ["none", "uniform", "corners", "adversarial"])
@pytest.mark.parametrize("mixture", [MIXTURE, LARGE_BOX, NO_ROOM])
def test_samples_are_those_written_out(mixture, kind):
    found = sample_mixture(jax.random.key(4), mixture, 6, 5, kind)
    draw, (M, d) = generator(jax.random.key(4)), mixture.irrelevant.shape
    draws = draw.random(6), draw.random((6, 5)), draw.random((6, 5))
    draws += draw.uniform(-1, 1, (6, 5, M + 2)), draw.random((6, 5)), draw.normal(size=(6, 5, d))
    wanted = samples_by_hand(mixture, draws, 2, kind)
    # Drawn in to norm Z, the rest of the ball is the root of a rounding.
    atol = 1e-7 if mixture is LARGE_BOX else ROUNDING
    np.testing.assert_allclose(found.X, wanted[0], rtol=0, atol=atol)
    for field, value in zip((found.y, found.relevant, found.pattern), wanted[1:], strict=True):
        assert np.array_equal(field, value)


@pytest.mark.thorough
def test_samples_of_jax_use_each_number_once():
    found = draw_mixture(jax.random.key(4), MIXTURE, 4, 5, "uniform")
    flat, normal = jax.random.split(jax.random.key(4))
    numbers = np.asarray(jax.random.uniform(flat, (4, 5, 9)))
    box, radius, gaussian = 2 * numbers[..., 4:] - 1, numbers[..., 3], (4, 5, 7)
    draws = numbers[:, 0, 0], numbers[..., 1], numbers[..., 2], box, radius
    wanted = samples_by_hand(MIXTURE, (*draws, jax.random.normal(normal, gaussian)), 2, "uniform")
    np.testing.assert_allclose(found.X, wanted[0], rtol=0, atol=ROUNDING)
    for field, value in zip((found.y, found.relevant, found.pattern), wanted[1:], strict=True):
        assert np.array_equal(field, value)


def test_every_slack_of_a_mixture_that_breaks_all_conditions():
    draws = np.random.default_rng(2)
    mu, nu = jnp.asarray(draws.normal(size=(2, 4))), jnp.asarray(draws.normal(size=(3, 4)))
    mixture = TokenizedMixture(mu, nu, 0.4, 0.3, 0.7, 0.9)
    y, relevant = np.array([1.0, -1.0, 1.5]), draws.random((3, 5)) < 0.5
    X, pattern = draws.normal(size=(3, 5, 4)), draws.integers(0, 3, (3, 5))
    arrays = [jnp.asarray(a) for a in (X, y, relevant, pattern)]
    found = check_assumption_3(mixture, MixtureSamples(*arrays))
    rows = [*np.asarray(mu), *np.asarray(nu)]
    norms = [np.linalg.norm(row) for row in rows]
    signal = [rows[0] if label > 0 else rows[1] for label in y]
    tokens = [(i, t) for i in range(3) for t in range(5)]
    noise = [X[i, t] - rows[2 + pattern[i, t]] for i, t in tokens if not relevant[i, t]]
    pairs = [abs(a @ b) for k, a in enumerate(rows) for b in rows[:k]]
    bound = np.sqrt(norms[0] ** 2 + 0.9**2 + 2 * 0.7 / 3)
    wanted = {
        "labels": -0.5,
        "orthogonality": -max(pairs),
        "equal_energy": -max(abs(norm - norms[0]) for norm in norms),
        "sparsity": -max(abs(row.sum() - 2) for row in relevant),
        "relevant_tokens": -max(
            abs(X[i, t] - signal[i]).max() for i, t in tokens if relevant[i, t]
        ),
        "noise_mu": 0.3 - max(abs(z @ row) for z in noise for row in rows[:2]),
        "noise_nu": 0.7 / 3 - max(abs(z @ row) for z in noise for row in rows[2:]),
        "noise_norm": 0.9 - max(np.linalg.norm(z) for z in noise),
        "token_norm": bound - max(np.linalg.norm(X[i, t]) for i, t in tokens),
    }
    assert found == pytest.approx(wanted, rel=1e-12)
    # Without an irrelevant token there is no noise, and without a relevant one no signal.
    for chosen in (True, False):
        whole = jnp.full((3, 5), chosen)
        found = check_assumption_3(mixture, MixtureSamples(*arrays[:2], whole, arrays[3]))
        bounds = {"noise_mu": 0.3, "noise_nu": 0.7 / 3, "noise_norm": 0.9}
        bounds = bounds if chosen else {"relevant_tokens": 0.0}
        assert {name: found[name] for name in bounds} == pytest.approx(bounds, rel=1e-12)


def test_patterns_are_orthogonal_and_of_the_norm_asked():
    rows = np.concatenate([MIXTURE.patterns, MIXTURE.irrelevant])
    np.testing.assert_allclose(rows @ rows.T, 1.5**2 * np.eye(5), rtol=0, atol=ROUNDING)
    assert (MIXTURE.zeta, MIXTURE.Z_mu, MIXTURE.Z_nu, MIXTURE.Z) == (0.4, 0.3, 0.4, 0.8)
    assert float(MIXTURE.S) == pytest.approx(1.5, rel=1e-14)
    assert relevant_count(MIXTURE, 5) == 2
