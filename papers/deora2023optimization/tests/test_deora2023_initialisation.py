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


@pytest.mark.parametrize(
    ("B_Phi", "margin", "logarithm", "scale"), [(1.5, 0.5, 2.0, 10), (2, 4, 0, 1), (0.5, 2, 3, 2)]
)
def test_scale_and_distance_by_hand(B_Phi, margin, logarithm, scale):
    epsilon = math.exp(-logarithm)
    found = deora2023_target_scale(B_Phi, margin, epsilon)
    np.testing.assert_allclose(found, scale, rtol=1e-14)
    distances = [
        float(deora2023_target_distance(B_Phi, margin, epsilon, norm)) for norm in (1.0, 3.0)
    ]
    np.testing.assert_allclose(distances, [scale, 3 * scale], rtol=1e-14)
    found = deora2023_target_distance(B_Phi, margin, epsilon)
    np.testing.assert_allclose(found**2, 2 * scale**2, rtol=1e-14)
    setting = Start(4, 9, 2.0, 0.7, B_Phi, margin).towards(epsilon, 3.0)
    assert setting[:3] == (4, 9, 2.0)
    np.testing.assert_allclose(setting[3:], [3 * scale, 0.7 + 3 * scale], rtol=1e-14)


@pytest.mark.parametrize(
    ("B_Phi", "margin", "norm", "version", "target", "heads"),
    [
        # c = 1 at epsilon = 1; x = 2, beta_3 = 2 * 6 * 8 * 73 or 2 * 8 * 17, over 2 B_Phi = 4
        (2.0, 4.0, 1.0, "printed", 7008 // 4, 18 * 96 * 181),
        (2.0, 4.0, 1.0, "dimension_free", 272 // 4, 18 * 16 * 41),
        # a separator of norm 2: x = 3, beta_3 = 96 * 109; along the paths 9, 96 * 325
        (2.0, 4.0, 2.0, "printed", 4 * 96 * 109 // 4, 18 * 4 * 96 * 325),
        # outputs of 1/128 leave the descent behind
        (2.0**-7, 2.0**-6, 1.0, "printed", 7008 * 64, 7008 * 64),
    ],
)
def test_heads_by_hand(B_Phi, margin, norm, version, target, heads):
    start = Start(4, 9, 2.0, 1.0, B_Phi, margin)
    assert float(deora2023_target_heads(start, 1.0, version, norm)) == target**2
    assert float(deora2023_corollary_2_heads(start, 1, version, norm)) == heads**2


def test_few_heads_are_rounded_up():
    # R = 1/4, x = 2: beta_3 = (1/64) * 5/4, squared over 4; and with outputs of 1/50, over 1/25
    small = Start(1, 1, 0.25, 1.0, 2.0, 4.0)
    assert float(deora2023_target_heads(small, 1.0, "dimension_free", 1.0)) == 1
    start = small._replace(B_Phi=0.005, margin=0.01)
    assert float(deora2023_target_heads(start, 1.0, "dimension_free", 1.0)) == 4  # 1.953^2


def test_risk_of_the_target_by_hand():
    # c = 8: m = -1 + 4 - (8^2 norm^2 / 2) (1/4) / 8
    for norm, m in ((1.0, 2.0), (SEPARATOR_NORM, 1.0), (2.0, -1.0)):
        found = deora2023_target_loss(1.0, 0.5, math.exp(-2), 0.25, 64, norm)
        np.testing.assert_allclose(found, math.log1p(math.exp(-m)), rtol=1e-13)


def test_bounds_of_corollary_2_by_hand():
    K = math.exp(2)  # g_0 = (2 + 2) / 0.5 = 8
    training = deora2023_corollary_2_training(1.0, 0.5, 0.25, K)
    np.testing.assert_allclose(training, (2 + 5 * 64) / K, rtol=1e-14)
    printed = deora2023_corollary_2_gap(1.0, 0.5, 0.25, K, 4, constants="printed")
    np.testing.assert_allclose(printed, 17 * 64, rtol=1e-14)
    gap = deora2023_corollary_2_gap(1.0, 0.5, 0.25, K, 8)
    np.testing.assert_allclose(gap, (2 + 9 * 64) / 2, rtol=1e-14)


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
    # D = 1, x = 5: alpha = 3 * 3 * 4 (3 * 2 * 8 * 5 + 2 * 2 * 2) = 36 * 248, (24 + 4) alpha^2
    by_hand = deora2023_corollary_2_step(Start(4, 9, 2.0, 1.0, 2.0, 4.0), 1, 16, "printed", 1.0)
    np.testing.assert_allclose(by_hand, 1 / (28 * (36 * 248) ** 2), rtol=1e-14)
    unit = deora2023_corollary_2_step(Start(1, 1, 0.01, 1.0, 1.0, 0.1), 1, 9, "sharp")
    assert float(unit) == 1
    # 4 log(3)^2 / (9 log 4)
    first = deora2023_corollary_2_step(Start(1, 1, 0.01, 1.0, math.log(3), 3.0), 1, 9)
    np.testing.assert_allclose(first, 4 * math.log(3) ** 2 / (9 * math.log(4)), rtol=1e-14)
    # small margins make the first two limits active only; large ones the third
    third = float(deora2023_corollary_2_step(Start(1, 1, 0.01, 1.0, 1.0, 4.0), 2, 9))
    np.testing.assert_allclose(third, 4 / (16 * math.log1p(math.e)), rtol=1e-14)
    order = [
        float(deora2023_corollary_2_heads(start, 10, version))
        for version in ("sharp", "dimension_free", "printed")
    ]
    assert order == sorted(order)
    assert order[-1] == heads
