import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.deora2023_generalisation import deora2023_stability_heads
from attlas.bounds.optimisation.deora2023_training import Setting
from deora2023optimization.library.bounds.deora2023_corollary_2 import (
    VERSIONS,
    deora2023_corollary_2,
    deora2023_gap_by_target,
)
from deora2023optimization.library.bounds.deora2023_initialisation import (
    Start,
    deora2023_corollary_2_heads,
    deora2023_corollary_2_step,
)


def test_every_entry_is_that_of_its_start_version_and_steps():
    B_2, B_Phi, margin = jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0]), jnp.array([0.5, 0.2])
    K = jnp.array([1e2, 1e5, 1e9])
    found = deora2023_corollary_2(4.0, 8.0, 2.0, B_2, B_Phi, margin, 24.0, K)
    assert all(each.shape == (2, 3, 3) for each in found)
    start = Start(4.0, 8.0, 2.0, 2.0, 3.0, 0.2)
    for v, constants in enumerate(VERSIONS):
        H = deora2023_corollary_2_heads(start, 1e5, constants)
        np.testing.assert_allclose(found.heads[1, v, 1], H, rtol=1e-13)
        step = deora2023_corollary_2_step(start, 1e5, H, constants)
        np.testing.assert_allclose(found.step_size[1, v, 1], step, rtol=1e-13)
    assert np.all(np.diff(found.training, axis=2) < 0)


def test_both_targets_follow_the_printed_formula():
    margin, distance, risk = jnp.array([0.5, 2.0]), jnp.array([1.0, 3.0]), jnp.array([0.1, 0.2])
    B_Phi, n, rate, K, B_2 = 1.5, 20.0, 0.1, 50.0, 1.2
    setting = Setting(4.0, 5.0, 2.0, 0.0, B_2)
    found = deora2023_gap_by_target(setting, margin, distance, risk, B_Phi, n, rate, K)
    far = np.sqrt(2) * (2 * B_Phi + np.log(K)) / np.asarray(margin)
    for k, (reach, loss) in enumerate(((np.asarray(distance), risk), (far, 1 / K))):
        expected = 4 / n * (2 * K * loss + 9 * reach**2 / (4 * rate))
        np.testing.assert_allclose(found.gap[k], expected, rtol=1e-12)
        for j, own in enumerate(reach):
            target = Setting(4.0, 5.0, 2.0, float(own), B_2 + float(own))
            heads = deora2023_stability_heads(target, "sharp")
            np.testing.assert_allclose(found.heads[k, j], heads, rtol=1e-12)


def test_both_bounds_are_of_a_direction_of_norm_root_two():
    K, B_Phi, margin, n = 1e3, 1.5, 0.4, 24.0
    found = deora2023_corollary_2(
        4.0, 8.0, 2.0, jnp.ones(1), jnp.array([B_Phi]), jnp.array([margin]), n, jnp.array([K])
    )
    square = 2 * ((2 * B_Phi + np.log(K)) / margin) ** 2
    eta = np.asarray(found.step_size)[0, :, 0]
    np.testing.assert_allclose(found.training[0, :, 0], 2 / K + 1.25 * square / (eta * K), 1e-13)
    np.testing.assert_allclose(found.gap[0, :, 0], 17 * square / (eta * n), 1e-13)
