"""Settings of students with self-attention against students that are trained alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from liu2021analyzing.library.data.standardised_task import StandardisedTask
from liu2021analyzing.library.models.two_layer import TwoLayer
from liu2021analyzing.library.training.self_attention_students import (
    Setting,
    Shape,
    errors_by_setting,
    errors_by_size,
    self_attention_task,
    stacked_outputs,
    student_errors,
)

SHAPE = Shape(p=3, t=2, d_q=2, d_v=2, d=3)


@pytest.mark.thorough
def test_settings_that_share_a_program_do_not_change_each_other():
    task = self_attention_task(1, SHAPE, 40, 200, noise=0.5, size=1.0)
    settings = [Setting(2), Setting(1), Setting(2, l2=10.0), Setting(4)]
    together = errors_by_setting(task, SHAPE, settings, 0, 1, max_steps=2)
    alone = errors_by_setting(task, SHAPE, [Setting(2), Setting(1)], 0, 1, max_steps=2)
    np.testing.assert_allclose(together[:2], alone, rtol=1e-6)
    assert len(set(together)) == 4


def test_more_samples_make_better_students():
    task = self_attention_task(0, SHAPE, 800, 500, noise=0.5, size=1.0)
    few, many = errors_by_size(task, SHAPE, [40, 800], None, 0, 3, max_steps=30)
    assert many < few / 4
    assert errors_by_size(task, SHAPE, [40, 800], 3, 0, 2, max_steps=30)[1] > many


def test_each_row_is_one_network_with_its_own_argument():
    rng = np.random.default_rng(0)
    W1, w2, x = (jnp.asarray(rng.standard_normal(n)) for n in ((3, 2, 4), (3, 4), (5, 2)))
    networks, factors = jax.vmap(TwoLayer)(W1, w2), jnp.array([1.0, -2.0, 0.0])
    found = stacked_outputs(lambda network, x, c: c * network(x), networks, x, factors)
    for k in range(3):
        alone = jax.vmap(TwoLayer(W1[k], w2[k]))(x)
        np.testing.assert_allclose(found[k], factors[k] * alone, rtol=1e-12)


def scaled(w, x, factor):
    return factor * (w @ x)


def test_each_student_is_the_best_of_its_starts_and_has_its_own_settings():
    rng = np.random.default_rng(0)
    x, fresh, w = rng.standard_normal((30, 2)), rng.standard_normal((50, 2)), np.array([1.0, -2.0])
    task = StandardisedTask(x, x @ w + rng.standard_normal(30), fresh, fresh @ w)
    starts, factors = rng.standard_normal((6, 2)), np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
    found = student_errors(task, scaled, starts, factors, repeats=3)
    exact = np.linalg.lstsq(x, task.y, rcond=None)[0]
    # Least squares has one end whatever the start, and factors change what is learned, not f.
    np.testing.assert_allclose(found, np.mean((fresh @ exact - task.truth) ** 2), rtol=1e-4)
    ridge = student_errors(task, scaled, starts, factors, repeats=3, l2=np.repeat([0.0, 50.0], 3))
    assert ridge[1] > 2 * ridge[0]
