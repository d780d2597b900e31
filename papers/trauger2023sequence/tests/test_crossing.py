import numpy as np

from trauger2023sequence.library.measures.crossing import last_crossing


def test_steps_are_not_all_one_and_the_curve_may_fall_at_the_first_of_them():
    x = np.array([2.0, 3.0, 7.0, 17.0])
    height = np.array([[1.0, -3.0, -1.0, -1.0], [5.0, 1.0, 3.0, -2.0], [-1.0, 0.0, -4.0, -1.0]])
    np.testing.assert_allclose(last_crossing(x, height), [2.25, 13.0, 3.0])
    ends = np.array([[-1.0, -1.0, -1.0, -2.0], [-1.0, -1.0, -1.0, 0.0], [0.0, -1.0, -1.0, -1.0]])
    np.testing.assert_allclose(last_crossing(x, ends), [2.0, np.inf, 2.0])
    np.testing.assert_allclose(last_crossing(x[:2], np.array([3.0, -1.0])), 2.75)


def test_crossing_of_a_line_is_exact_and_the_last_one_counts():
    x = np.arange(5.0)
    height = np.array([3.5 - x, x - 9.0, 0 * x + 1, [1.0, -1.0, 1.0, -1.0, -1.0]])
    np.testing.assert_allclose(last_crossing(x, height), [3.5, 0.0, np.inf, 2.5])
    np.testing.assert_allclose(last_crossing(x, height[0]), 3.5)
    np.testing.assert_allclose(
        last_crossing(x, height.reshape(2, 2, 5)), [[3.5, 0.0], [np.inf, 2.5]]
    )
