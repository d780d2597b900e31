"""Tasks start with equal weights, and their labels have one size."""

import numpy as np
import pytest

from liu2021analyzing.library.data.attended_tasks import attended_tasks

EPS = np.finfo(float).eps


def test_tasks_start_with_equal_weights_and_have_labels_of_one_size():
    tasks = list(attended_tasks(np.random.default_rng(0), 4, 2, [2, 3], 16, 50))
    assert len(tasks) == 1 + 2 * 2 * 2
    x = tasks[2][0]
    assert np.abs(tasks[0][0] * 2 - x).max() < 100 * EPS
    np.testing.assert_allclose(tasks[1][0][:, :2] * np.sqrt(2), x[:, :2])
    for u, truth in tasks:
        assert u.shape == (66, 4)
        assert truth[16:].std() == pytest.approx(1)
    # Both students of a task have its truth, and fixed and moving weights are different tasks.
    np.testing.assert_array_equal(tasks[1][1], tasks[2][1])
    assert np.abs(tasks[1][1] - tasks[5][1]).max() > 0.1
