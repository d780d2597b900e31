"""Students of an attended teacher come near it once the samples are many."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from liu2021analyzing.library.data.attended_regression import attended_tasks
from liu2021analyzing.library.levenberg_marquardt import levenberg_marquardt
from liu2021analyzing.library.models.two_layer import TwoLayer
from liu2021analyzing.library.training import attended_students
from liu2021analyzing.library.training.attended_students import _sharing, train_attended_students


def test_students_that_read_what_the_teacher_reads_learn_it():
    found = train_attended_students(
        0, [2], 4, 2, [16, 1024], noise=0.1, fresh=500, starts=4, max_steps=40
    )
    knowing, moving_unknown = found.error[[0, 1, 3]], found.error[4]
    # The variance of the labels' noise times pd parameters over n, which holds up to a factor.
    assert np.all(knowing[:, 1] < 4 * 0.1**2 * 8 / 1024)
    assert found.reached[[0, 1, 3], 1].all()
    # A support that moves is not a two-layer network of this width.
    assert moving_unknown[1] > 10 * knowing[2, 1]


def test_students_are_those_of_the_stated_draws_and_their_best_start_counts():
    """Each student trained alone on its own samples, from the same generators' streams."""
    p, d, sizes, noise, fresh, starts, steps = 3, 2, [4, 7], 0.3, 11, 3, 2
    found = train_attended_students(5, [2], p, d, sizes, noise, fresh, starts, steps)
    tasks = list(attended_tasks(np.random.default_rng([5, p]), p, d, [2], 7, fresh))
    draw = np.random.default_rng([5, p, 1])
    errors = 0.3 * draw.standard_normal(7)
    W1 = draw.standard_normal((5, 2, starts, p * d))
    w2 = draw.standard_normal((5, 2, starts, d)) / d**0.5
    for j, n in enumerate(sizes):
        x, y = np.stack([u[:n] for u, _ in tasks]), np.stack([t[:n] + errors[:n] for _, t in tasks])
        size = np.array([np.sqrt(np.sum(u[:7] ** 2) / 7) for u, _ in tasks])
        first = (W1[:, j] / size[:, None, None]).reshape(5 * starts, p, d)
        ends = levenberg_marquardt(
            TwoLayer.__call__,
            jax.vmap(TwoLayer)(jnp.asarray(first), jnp.asarray(w2[:, j].reshape(-1, d))),
            np.repeat(x, starts, axis=0), np.repeat(y, starts, axis=0), max_steps=steps,
        )  # fmt: skip
        risks = np.asarray(ends.stats["risk"]).reshape(5, starts)
        for k, (u, truth) in enumerate(tasks):
            best = starts * k + risks[k].argmin()
            a, b = np.asarray(ends.value.W1)[best], np.asarray(ends.value.w2)[best]
            own = np.mean((np.maximum(u[:n] @ a, 0) @ b - y[k]) ** 2) / 2
            np.testing.assert_allclose(risks[k].min(), own, rtol=1e-9)
            apart = np.mean((np.maximum(u[7:] @ a, 0) @ b - truth[7:]) ** 2)
            np.testing.assert_allclose(found.error[k, j], apart, rtol=1e-7)
            assert found.reached[k, j] == (2 * own <= np.mean(errors[:n] ** 2))


def test_sizes_beyond_the_shared_program_stand_alone():
    assert _sharing([16, 1024, 1025, 4096]) == [[0, 1], [2], [3]]
    assert _sharing([1025]) == [[0]]


@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_a_student_has_reached_the_truth_at_its_loss_and_not_above(monkeypatch, noise):
    """Students whose training loss is that of the truth times a factor; they put out zero."""
    p, d, sizes, fresh = 3, 4, [4, 6, 9], 11
    errors = noise * np.random.default_rng([5, p, 1]).standard_normal(9)
    truth_loss = np.array([np.sum(errors[:n] ** 2) / n / 2 for n in sizes])
    factors = 1 + 1e-9 * np.where(np.arange(15).reshape(5, 3) % 2, 1, -1)

    def best(W1, w2, x, y, own, *_):
        assert (W1.shape, w2.shape, x.shape) == ((5, 6, p, d), (5, 6, d), (5, 9, p))
        assert own.tolist() == sizes
        return [np.zeros((5, 3, p, d)), np.zeros((5, 3, d)), factors * truth_loss]

    monkeypatch.setattr(attended_students, "_best", best)
    found = train_attended_students(5, [2], p, d, sizes, noise, fresh, 2, 1)
    np.testing.assert_array_equal(found.reached, (factors < 1) | (noise == 0))
    # The truth has mean square 1 over fresh inputs, plus the square of its mean.
    tasks = attended_tasks(np.random.default_rng([5, p]), p, d, [2], 9, fresh)
    squares = [sum(truth[9:] ** 2) / fresh for _, truth in tasks]
    np.testing.assert_allclose(found.error, np.tile(squares, (3, 1)).T, rtol=1e-13)
