"""Conditional covariances against populations, singular cases, and the trap of wide features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.measures import conditional_covariance as module
from liu2021analyzing.library.measures.conditional_covariance import (
    conditional_covariance,
    schur_complement,
)

EPS = np.finfo(float).eps


def samples(seed: int, n: int = 40, D: int = 3, d: int = 5):
    """Targets that depend on the features in part."""
    draw = np.random.default_rng(seed)
    given = draw.standard_normal((n, d))
    target = given @ draw.standard_normal((d, D)) + draw.standard_normal((n, D)) + 3
    return jnp.asarray(target), jnp.asarray(given)


def test_residuals_agree_with_the_formula_in_covariances():
    target, given = samples(0)
    found = conditional_covariance(target, given)
    joint = np.cov(np.hstack([target, given]).T, bias=True)
    by_blocks = schur_complement(
        *(jnp.asarray(b) for b in (joint[:3, :3], joint[:3, 3:])), jnp.asarray(joint[3:, 3:])
    )
    np.testing.assert_allclose(found.covariance, by_blocks, atol=100 * EPS * joint.max())
    assert float(found.largest) == pytest.approx(np.linalg.eigvalsh(by_blocks)[-1], rel=1e-12)
    assert int(found.rank) == 5


def test_a_singular_covariance_uses_what_there_is():
    target, given = samples(1)
    doubled = jnp.hstack([given, given @ jnp.ones((5, 2)), jnp.full((40, 1), 7.0)])
    plain, singular = conditional_covariance(target, given), conditional_covariance(target, doubled)
    assert int(singular.rank) == 5
    np.testing.assert_allclose(singular.covariance, plain.covariance, rtol=1e-11, atol=1e-13)


def test_constant_features_explain_nothing():
    target, _ = samples(2)
    found = conditional_covariance(target, jnp.full((40, 8), 0.1))
    assert int(found.rank) == 0
    np.testing.assert_allclose(found.covariance, np.cov(target.T, bias=True), rtol=1e-12)


def test_wide_features_explain_anything_on_their_own_data_and_nothing_on_fresh():
    draw = np.random.default_rng(3)
    target, given = (jnp.asarray(draw.standard_normal((60, k))) for k in (4, 80))
    own = conditional_covariance(target[:30], given[:30])
    fresh = conditional_covariance(target[:30], given[:30], (target[30:], given[30:]))
    assert float(own.largest) < (80 * EPS) ** 2 * 30
    # Unrelated: the errors are the target's own variance and the regression's noise.
    assert float(fresh.largest) > 0.5


def test_fresh_errors_of_a_true_linear_map_are_rounding():
    draw = np.random.default_rng(4)
    # As many features as above, most of them copies: the program is shared.
    given = draw.standard_normal((60, 4)) @ draw.standard_normal((4, 80))
    target = given @ draw.standard_normal((80, 4)) + 1
    halves = [(jnp.asarray(target[s]), jnp.asarray(given[s])) for s in (slice(30), slice(30, 60))]
    found = conditional_covariance(*halves[0], fresh=halves[1])
    assert int(found.rank) == 4
    assert float(found.largest) < (80 * EPS) ** 2 * float(found.unconditional)


def test_it_is_the_same_under_vmap():
    stacks = [samples(seed) for seed in range(3)]
    target, given = (jnp.stack(part) for part in zip(*stacks, strict=True))
    batched = jax.vmap(lambda t, g: conditional_covariance(t, g).largest)(target, given)
    single = [float(conditional_covariance(t, g).largest) for t, g in stacks]
    np.testing.assert_allclose(batched, single, rtol=1e-12)


def test_the_printed_block_is_not_the_regression():
    # z2 = z1 + noise, all of variance 1: printed 1 - c 1 c, regression 1 - c^2 / 2.
    own, given = jnp.eye(1), 2 * jnp.eye(1)
    assert float(schur_complement(own, own, given)[0, 0]) == 0.5
    assert float(schur_complement(own, own, own)[0, 0]) == 0.0


def test_unpaired_samples_are_refused():
    with pytest.raises(UserError, match=r"regressors has shape \(3, 1\): give \[n d\] with n = 2"):
        conditional_covariance(jnp.ones((2, 1)), jnp.ones((3, 1)))


def test_a_small_direction_is_used_as_long_as_it_is_no_rounding():
    _, given = samples(9, d=2)
    # The second feature is 1e-11 of the first; what depends on it is still explained.
    given = given * jnp.asarray([[1.0, 1e-11]])
    found = conditional_covariance(given * jnp.asarray([[1.0, 1e11]]), given)
    assert int(found.rank) == 2
    assert float(found.largest) <= 1e-24 * float(found.unconditional)


def test_a_second_projection_removes_the_rounding_of_the_first():
    """31 samples of 30 features: what it leaves of the rounding lies along the ones alone."""
    draw = np.random.default_rng(7)
    given = draw.standard_normal((31, 30))
    found = conditional_covariance(given @ draw.standard_normal((30, 4)), given)
    assert float(found.largest) < 4 * EPS**2 * float(found.unconditional)


def test_a_feature_counts_from_the_rounding_of_as_many_terms_as_there_are_samples():
    """Exact sums: singular values 1 and t times sqrt(40), against 40 eps times the first."""
    first, second = np.tile([1.0, -1.0], 20), np.tile([1.0, 1.0, -1.0, -1.0], 10)
    target = (first + second)[:, None]
    for t, rank in ((20, 1), (60, 2)):
        for scale in (1.0, 2.0**20):
            features = scale * np.stack([first, t * EPS * second], axis=1)
            assert int(conditional_covariance(target, features).rank) == rank
            found = conditional_covariance(target, features, (target, features))
            assert float(found.largest) == pytest.approx(2 - rank, abs=1e-12)


def test_an_eigenvalue_of_the_population_counts_from_d_eps_times_the_largest():
    """Five features; those of 4 eps and 6 eps of the largest stand on both sides of 5 eps."""
    values, cross = 100 * np.array([1.0, 1e-3, 6 * EPS, 4 * EPS, 1e-4]), np.array([5.0, 2, 3, 7, 1])
    cross = cross[None, :] * np.sqrt(values)[None, :]
    found = schur_complement(200 * np.eye(1), cross, np.diag(values))
    assert float(found[0, 0]) == pytest.approx(200 - (25 + 4 + 9 + 1), rel=1e-12)


def test_a_covariance_s_memory_is_that_of_eight_bytes_an_entry(monkeypatch):
    asked = []
    monkeypatch.setattr(module, "require_memory", lambda size, *_: asked.append(size))
    conditional_covariance(*samples(0))
    assert asked == [8 * 3**2]
