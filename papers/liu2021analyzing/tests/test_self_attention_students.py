"""Settings of students with self-attention against students that are trained alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from liu2021analyzing.library.data.standardised_task import StandardisedTask, standardised_task
from liu2021analyzing.library.models.gaussian_self_attention import gaussian_self_attention
from liu2021analyzing.library.models.two_layer import TwoLayer
from liu2021analyzing.library.training import self_attention_students
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


WIDE = Shape(p=3, t=4, d_q=2, d_v=5, d=6)
TASK = StandardisedTask(np.zeros((7, 4, 3)), np.zeros(7), np.zeros((2, 4, 3)), np.zeros(2))


@pytest.fixture
def calls(monkeypatch):
    """Students that are not trained: their errors are numbered, and what they get is recorded."""
    recorded = []

    def student_errors(task, predict, starts, *args, repeats, **settings):
        recorded.append((task, predict, starts, args, repeats, settings))
        students = len(jax.tree.leaves(starts)[0]) // repeats
        return 10.0 * len(recorded) + np.arange(students)

    monkeypatch.setattr(self_attention_students, "student_errors", student_errors)
    return recorded


def test_the_task_is_that_of_a_gaussian_teacher():
    found = self_attention_task(3, WIDE, 5, 7, 0.4, 1.7)
    draw = np.random.default_rng([3, 11])
    stacked = gaussian_self_attention(draw, 1, 3, 4, 2, 5, 6, size=1.7)
    W_Q, W_K, W_V, W1, w2 = (
        np.asarray(getattr(stacked, name))[0] for name in ("W_Q", "W_K", "W_V", "W1", "w2")
    )

    def teacher(x):
        weights = jax.nn.softmax((W_K @ x).T @ (W_Q @ x) / jnp.sqrt(2), axis=0)
        return jnp.maximum((W_V @ x @ weights).T.reshape(-1) @ W1, 0) @ w2

    expected = standardised_task(draw, teacher, 5, 7, (4, 3), 0.4)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_students_by_size_start_anew_and_read_the_first_samples(calls):
    errors = errors_by_size(TASK, WIDE, [4, 7], None, 8, 3, max_steps=5)
    assert errors.tolist() == [10.0, 11.0]
    starts = gaussian_self_attention(np.random.default_rng([8, 12]), 6, *WIDE)
    for one, other in zip(jax.tree.leaves(calls[0][2]), jax.tree.leaves(starts), strict=True):
        np.testing.assert_array_equal(one, other)
    errors_by_size(TASK, WIDE, [4, 7], 9, 8, 3, max_steps=5)
    draw = np.random.default_rng([8, 12])
    W1, w2 = draw.standard_normal((6, 12, 9)), draw.standard_normal((6, 9))
    network = calls[1][2]
    np.testing.assert_allclose(network.W1, W1 / 2, rtol=1e-14)
    np.testing.assert_allclose(network.w2, w2 / 3, rtol=1e-14)
    np.testing.assert_array_equal(network.b2, np.zeros(6))
    x = draw.uniform(-1, 1, (4, 3))
    words = np.concatenate([x[:, k] for k in range(3)])
    output = np.maximum(words @ W1[0] / 2, 0) @ w2[0] / 3
    one = jax.tree.map(lambda a: a[0], network)
    np.testing.assert_allclose(calls[1][1](one, jnp.asarray(x)), output, rtol=1e-12)
    for _, _, _, args, repeats, settings in calls:
        assert (args, repeats, settings["max_steps"]) == ((), 3, 5)
        rows = [[1.0] * n + [0.0] * (7 - n) for n in (4, 7)]
        np.testing.assert_array_equal(settings["weights"], np.repeat(rows, 3, axis=0))


def test_students_by_setting_share_their_starts_and_have_their_own_numbers(calls):
    settings = [Setting(3, 0.5, l1=0.2), Setting(2, 4.0, l2=0.3), Setting(1), Setting(2)]
    errors = errors_by_setting(TASK, WIDE, settings, 6, 2, max_steps=5)
    assert errors.tolist() == [20.0, 10.0, 21.0, 11.0]
    for call, members, rows in zip(calls, ((1, 3), (0, 2)), (2, 3), strict=True):
        _, _, starts, (factors,), repeats, options = call
        assert (repeats, options["max_steps"]) == (2, 5)
        for place, k in enumerate(members):
            setting, own = settings[k], slice(2 * place, 2 * place + 2)
            factor = (rows / setting.d_q) ** 0.5 / setting.temperature
            np.testing.assert_allclose(factors[own], factor, rtol=1e-14)
            draw = np.random.default_rng([6, 13])
            expected = gaussian_self_attention(draw, 2, 3, 4, setting.d_q, 5, 6, rows=rows)
            leaves = jax.tree.leaves(expected)
            for one, other in zip(jax.tree.leaves(starts), leaves, strict=True):
                np.testing.assert_array_equal(one[own], other)
            # Queries and keys have rows * 4 entries each; values, both layers and a bias follow.
            sizes = [4 * rows, 4 * rows, 20, 90, 6, 1]
            on = np.concatenate([np.full(n, k in (2, 3, 4)) for k, n in enumerate(sizes)])
            for name in ("l1", "l2"):
                penalties = np.tile(getattr(setting, name) * on, (2, 1))
                np.testing.assert_array_equal(options[name][own], penalties)
