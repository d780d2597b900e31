"""Theorem 1 with an exponential factor: run with the certified heads, and against the others."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_2, deora2023_beta_3
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_head_condition,
    deora2023_training_loss,
)
from attlas.losses.empirical_risk import empirical_risk
from attlas.models.attention.multi_head import MultiHead, head_norms, parameter_norm
from deora2023optimization.library.bounds.deora2023_exponential import (
    deora2023_exponential_loss,
    deora2023_exponential_radius,
    deora2023_exponential_root,
)


def test_values_by_hand():
    # q = 2: r = sqrt(5), factor 5 / (2 log 2)
    beta_3 = deora2023_beta_3(2, 2, 1.0, np.sqrt(5) * 0.5 + 0.3)
    np.testing.assert_allclose(
        deora2023_exponential_root(Setting(2, 2, 1.0, 0.5, 0.3)),
        5 / (2 * np.log(2)) * beta_3 * 0.25,
    )
    np.testing.assert_allclose(deora2023_exponential_radius(4.0), 3.0)
    np.testing.assert_allclose(deora2023_exponential_loss(0.1, 2.0, 0.5, 10, 3.0), 0.7)


def test_root_by_hand():
    # q = e: r^2 = 1 + 2 e, and the logarithm is 1; T = 4, R = 2, D = 1/2
    r = (1 + 2 * np.e) ** 0.5
    curvature = 16 * np.linalg.norm([[0, 1], [1, 4 * 3**-1.5 * 4 * (r / 2 + 0.3)]], 2)
    found = deora2023_exponential_root(Setting(4, 9, 2.0, 0.5, 0.3), np.e)
    np.testing.assert_allclose(found, (0.5 + np.e) * curvature / 4, rtol=1e-12)


def test_no_growth_needs_fewer_heads_than_its_best():
    """(1 + 2 q) / (2 log q) is least at q = 3.18, where it is q itself."""
    setting = Setting(2, 2, 1.0, 1e-9, 1e3)
    roots = [float(deora2023_exponential_root(setting, q)) for q in (2.6, 3.181, 3.9)]
    assert roots[1] < min(roots[0], roots[2])
    beta_3 = float(deora2023_beta_3(2, 2, 1.0, 1e3))
    np.testing.assert_allclose(roots[1] / (beta_3 * 1e-18), 3.181, rtol=1e-4)


def test_better_than_the_printed_theorem():
    setting, path = Setting(2, 2, 1.0, 1.0, 1.0), (0.1, 1.0, 0.5, 9)
    assert deora2023_exponential_root(setting) ** 2 < deora2023_head_condition(setting)
    assert deora2023_exponential_loss(*path) < deora2023_training_loss(*path, "printed")
    assert deora2023_exponential_loss(*path).dtype == jnp.float64
    one = jnp.asarray(1.0, "float32")
    assert deora2023_exponential_root(Setting(2, 2, 1.0, one, one)).dtype == jnp.float32


def test_certified_run_obeys_the_theorem():
    """T = d = 2, R = 1, a target at distance 1, as many heads as are asked for."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4, 2, 2))
    X = jnp.asarray(X / np.linalg.norm(X, axis=-1).max())
    y, D, steps = jnp.array([1.0, -1.0, 1.0, -1.0]), 1.0, 40
    H = int(np.ceil(float(deora2023_exponential_root(Setting(2, 2, 1.0, D, 0.4))) ** 2))
    shape = (H, 2, 2)
    start = MultiHead(*(jnp.asarray(0.05 * rng.normal(size=shape)) for _ in range(2)))
    risk = jax.jit(jax.value_and_grad(lambda model: empirical_risk(model, X, y)))
    slope = risk(start)[1]
    scale = -D / parameter_norm(slope)
    target = MultiHead(start.U + scale * slope.U, start.W + scale * slope.W)
    assert float(jnp.max(head_norms(target))) <= 0.4
    reach, there = deora2023_exponential_radius() * D + 0.4, float(risk(target)[0])
    eta = min(1 / float(deora2023_beta_2(2, 2, 1.0, reach, H)), D**2 / (steps * there))
    model, losses = start, []
    for _ in range(steps):
        loss, slope = risk(model)
        losses.append(float(loss))
        model = MultiHead(model.U - eta * slope.U, model.W - eta * slope.W)
        away = parameter_norm(MultiHead(model.U - target.U, model.W - target.W))
        assert float(away) <= deora2023_exponential_radius() * D
    losses.append(float(risk(model)[0]))
    assert np.all(np.diff(losses) < 0)
    bound = deora2023_exponential_loss(there, D, eta, steps)
    assert losses[-1] <= np.mean(losses[1:]) <= float(bound)
