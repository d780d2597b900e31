"""When quantities settle above a level, against a search from the end."""

import numpy as np

from julistiono2024optimizing.library.measures.settling import settling_times


def last_crossing(steps, values, level):
    """The step after the last one at or below the level, by a loop."""
    first = 0
    for k, value in enumerate(values):
        if value <= level:
            first = k + 1
    return steps[first] if first < len(steps) else np.nan


def test_settling_times_are_the_steps_after_the_last_crossing():
    rng = np.random.default_rng(0)
    steps = np.array([0, 1, 3, 10, 30, 100])
    values = rng.integers(0, 4, (6, 200)) / 3.0
    found = settling_times(steps, values, 1 / 3)
    expected = [last_crossing(steps, column, 1 / 3) for column in values.T]
    np.testing.assert_array_equal(found, expected)
    assert {0.0, 3.0, 100.0} <= set(found[np.isfinite(found)])
    assert np.isnan(found).any()


def test_a_value_at_the_level_is_not_above_it():
    steps = np.array([0, 5])
    found = settling_times(steps, np.array([[1.0, 0.5, np.nan], [0.5, 1.0, 1.0]]), 0.5)
    np.testing.assert_array_equal(found, [np.nan, 5, 5])
