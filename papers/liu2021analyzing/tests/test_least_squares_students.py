"""Errors of students against their definition."""

import numpy as np

from liu2021analyzing.library.data.standardised_task import StandardisedTask
from liu2021analyzing.library.training.least_squares_students import student_errors


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
