"""The target of Proposition 7 has the risk promised; Corollary 2 is Theorems 1 and 2 at it."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.generalisation.deora2023_generalisation import deora2023_generalisation_gap
from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_3
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_rho,
    deora2023_training_loss,
)
from attlas.losses.empirical_risk import empirical_risk
from attlas.models.attention.multi_head import MultiHead, head_norms, parameter_norm
from deora2023optimization.library.bounds.deora2023_initialisation import (
    SEPARATOR_NORM,
    Start,
    deora2023_corollary_2_gap,
    deora2023_corollary_2_heads,
    deora2023_corollary_2_step,
    deora2023_corollary_2_training,
    deora2023_target_distance,
    deora2023_target_heads,
    deora2023_target_loss,
    deora2023_target_scale,
)


@pytest.mark.thorough
def test_target_of_a_good_initialisation_has_small_risk():
    rng = np.random.default_rng(0)
    epsilon, R, T, d = 0.5, 1.0, 2, 2
    y = jnp.array([1.0, -1.0, 1.0, -1.0])
    X = 0.1 * rng.normal(size=(4, T, d)) + np.asarray(y)[:, None, None] * np.array([0.8, 0.0])
    X = jnp.asarray(X / np.linalg.norm(X, axis=-1).max())
    # heads for a margin of 1.2, to be measured below
    H = int(deora2023_target_heads(Start(T, d, R, 1.0, 1.0, 1.2), epsilon))
    assert H < 1000
    start = MultiHead(*(jnp.asarray(0.1 * rng.normal(size=(H, 2, 2))) for _ in range(2)))
    outputs, features = jax.jit(jax.vmap(jax.value_and_grad(lambda m, x: m(x)), (None, 0)))(
        start, X
    )
    sums = [jnp.tensordot(y, part, 1) for part in (features.U, features.W)]
    size = float(jnp.sqrt(sum(jnp.sum(part**2) for part in sums))) / SEPARATOR_NORM
    along = MultiHead(sums[0] / size, sums[1] / size)
    np.testing.assert_allclose(parameter_norm(along), SEPARATOR_NORM, rtol=1e-14)
    inner = jnp.tensordot(features.U, along.U, 3) + jnp.tensordot(features.W, along.W, 3)
    margin = float(jnp.min(y * inner))
    assert margin >= 1.2
    assert float(jnp.max(jnp.abs(outputs))) <= 1
    assert float(jnp.max(head_norms(start))) <= 1
    c = float(deora2023_target_scale(1.0, margin, epsilon))
    target = MultiHead(start.U + c * along.U, start.W + c * along.W)
    distance = float(deora2023_target_distance(1.0, margin, epsilon))
    shift = MultiHead(target.U - start.U, target.W - start.W)
    np.testing.assert_allclose(parameter_norm(shift), distance, rtol=1e-12)
    risk = float(empirical_risk(target, X, y))
    curvature = deora2023_beta_3(T, d, R, 1.0 + distance)
    bound = float(deora2023_target_loss(1.0, margin, epsilon, curvature, H))
    assert risk <= bound <= math.log1p(epsilon) < epsilon


def test_heads_make_taylor_loss_at_most_epsilon_and_no_fewer_do():
    B_Phi, margin, epsilon = 1.5, 0.7, 0.01
    H = float(deora2023_target_heads(Start(2, 3, 1.0, 1.0, B_Phi, margin), epsilon))
    distance = deora2023_target_distance(B_Phi, margin, epsilon)
    curvature = deora2023_beta_3(2, 3, 1.0, 1.0 + distance)
    at, fewer = (
        float(deora2023_target_loss(B_Phi, margin, epsilon, curvature, h)) for h in (H, 0.999 * H)
    )
    # the loss is log(1 + epsilon) where the Taylor term is B_Phi exactly
    assert at <= math.log1p(0.01) < fewer


@pytest.mark.parametrize("norm", [1.0, SEPARATOR_NORM])
def test_corollary_2_is_both_theorems_at_the_target(norm):
    B, gamma, eta, K, n = 1.3, 0.6, 0.2, 50, 30
    distance = float(deora2023_target_distance(B, gamma, 1 / K, norm))
    np.testing.assert_allclose(
        deora2023_corollary_2_training(B, gamma, eta, K, norm),
        deora2023_training_loss(1 / K, distance, eta, K, "printed"),
        rtol=1e-14,
    )
    gap = deora2023_generalisation_gap(n, 1 / K, distance, eta, K, constants="printed")
    np.testing.assert_allclose(
        deora2023_corollary_2_gap(B, gamma, eta, K, n, norm), gap, rtol=1e-14
    )
    assert gap <= deora2023_corollary_2_gap(B, gamma, eta, K, n, norm, "printed")


def test_definition_1_asks_for_twice_the_squares_of_corollary_2():
    printed, supported = (
        float(deora2023_corollary_2_training(1.0, 0.5, 0.1, 100, norm)) - 2 / 100
        for norm in (1.0, SEPARATOR_NORM)
    )
    np.testing.assert_allclose(supported, 2 * printed, rtol=1e-14)


def test_step_of_corollary_2_is_one_of_its_limits():
    start = Start(2, 2, 1.0, 1.0, 1.0, 0.5)
    heads = float(deora2023_corollary_2_heads(start, 10, "printed"))
    step = float(deora2023_corollary_2_step(start, 10, heads, "printed"))
    distance = float(deora2023_target_distance(1.0, 0.5, 0.1))
    rho = float(deora2023_rho(Setting(2, 2, 1.0, distance, 1.0 + distance), heads, "printed"))
    np.testing.assert_allclose(step, 1 / rho, rtol=1e-14)
    # small margins make the first two limits active only; large ones the third
    third = float(deora2023_corollary_2_step(Start(1, 1, 0.01, 1.0, 1.0, 4.0), 2, 9))
    np.testing.assert_allclose(third, 4 / (16 * math.log1p(math.e)), rtol=1e-14)
    order = [
        float(deora2023_corollary_2_heads(start, 10, version))
        for version in ("sharp", "dimension_free", "printed")
    ]
    assert order == sorted(order)
    assert order[-1] == heads
