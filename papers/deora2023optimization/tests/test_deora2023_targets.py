"""Theorem 2 for two targets, against its formula written out."""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.deora2023_generalisation import deora2023_stability_heads
from attlas.bounds.optimisation.deora2023_training import Setting
from deora2023optimization.library.bounds.deora2023_targets import deora2023_gap_by_target


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
