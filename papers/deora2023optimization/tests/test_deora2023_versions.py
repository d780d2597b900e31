import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_head_condition,
    deora2023_rho,
)
from attlas.losses.empirical_risk import empirical_risk
from attlas.models.attention.multi_head import MultiHead, head_norms
from deora2023optimization.library.bounds.deora2023_corollary_2 import VERSIONS
from deora2023optimization.library.bounds.deora2023_initialisation import (
    Start,
    deora2023_corollary_2_heads,
    deora2023_corollary_2_step,
)
from deora2023optimization.library.bounds.deora2023_versions import (
    deora2023_certified,
    deora2023_loss_bounds,
)


@pytest.mark.thorough
def test_all_versions_bound_the_measured_derivatives():
    rng = np.random.default_rng(3)
    n, H, T, d = 5, 3, 4, 2
    X = jnp.asarray(rng.normal(size=(n, T, d)))
    X = X / jnp.linalg.norm(X, axis=-1).max()
    y = jnp.asarray(rng.choice([-1.0, 1.0], n))
    model = MultiHead(
        jnp.asarray(rng.normal(size=(H, T, d))), jnp.asarray(rng.normal(size=(H, d, d)))
    )
    flat, unflatten = jax.flatten_util.ravel_pytree(model)

    def risk(parameters):
        return empirical_risk(unflatten(parameters), X, y)

    loss, slope = jax.jit(jax.value_and_grad(risk))(flat)
    values = np.linalg.eigvalsh(jax.jit(jax.hessian(risk))(flat))
    bounds = deora2023_loss_bounds(float(T), float(d), 1.0, float(H), head_norms(model).max()[None])
    largest = np.abs(values).max()
    assert np.all(np.linalg.norm(slope) <= bounds.slope * loss)
    assert np.all(largest <= bounds.smoothness)
    assert np.all(-values[0] <= bounds.convexity * loss)
    assert np.all(largest <= bounds.self_bounded * loss)
    for each in bounds:
        assert each.shape == (3, 1)
        assert np.all(np.diff(each[:, 0]) <= 0)  # printed, dimension-free, sharp


def test_demands_stand_at_their_theorem_and_version():
    setting = Setting(4.0, 5.0, 1.5, 0.7, 0.9)
    start = Start(4.0, 5.0, 1.5, 1.0, 2.0, 0.3)
    found = deora2023_certified(setting, start, 100.0, 64.0)
    for v, constants in enumerate(VERSIONS):
        expected = [
            [
                deora2023_head_condition(setting, constants),
                deora2023_corollary_2_heads(start, 100.0, constants),
            ],
            [
                1 / deora2023_rho(setting, 64.0, constants),
                deora2023_corollary_2_step(start, 100.0, 64.0, constants),
            ],
        ]
        np.testing.assert_allclose(np.asarray(found)[:, :, v], expected, rtol=1e-13)
