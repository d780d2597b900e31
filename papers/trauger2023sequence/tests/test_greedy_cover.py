"""The greedy cover of the l_1 ball, against its radius and Maurey's."""

from fractions import Fraction

import numpy as np

from trauger2023sequence.library.bounds.greedy_cover import (
    greedy_cover_centre,
    greedy_cover_errors,
    greedy_cover_steps,
)


def test_radius_holds_for_random_and_extreme_points():
    rng = np.random.default_rng(0)
    errors = greedy_cover_errors(12)
    assert np.all(errors <= 1 / (np.arange(12) + 4.0) * (1 + 1e-15))
    for _ in range(60):
        k = int(rng.integers(1, 30))
        v = 2.0 * rng.dirichlet(np.full(k, rng.choice([0.05, 1, 50]))) * rng.choice([-1, 1], k)
        v *= rng.choice([1.0, 0.6])
        for steps in (1, 2, 5, 12):
            error = np.sum((v - greedy_cover_centre(v, 2.0, steps)) ** 2)
            assert error <= 4 * errors[steps - 1] * (1 + 1e-12)


def test_count_is_at_most_the_printed_one_without_a_ceiling():
    for ratio in np.linspace(0.1, 9, 300):
        steps = greedy_cover_steps(float(ratio))
        assert steps <= ratio**2
        assert steps == 0 or greedy_cover_errors(steps)[-1] <= (1 + 1e-12) / ratio**2


def test_errors_are_those_of_the_recursion_in_fractions():
    errors = [Fraction(1, 4)]
    while len(errors) < 5:
        errors.append(errors[-1] - errors[-1] ** 2)
    np.testing.assert_allclose(greedy_cover_errors(5), [float(e) for e in errors], rtol=1e-15)


def test_first_radius_is_attained():
    # e_1 lies at 1/2 of the centre e_1 / 2, and no step leaves the origin at 1/2 of (1/2, 1/2)...
    np.testing.assert_allclose(greedy_cover_centre(np.array([0.0, -1.0]), 1.0, 1), [0.0, -0.5])


def test_a_step_is_made_from_half_its_size_on():
    """Steps of 1/2, 1/4 and 3/16 of the radius, of 4."""
    for v, steps, expected in (
        ([0.9, -0.9], 1, [0, 0]),
        ([-1.1, 0.9], 1, [-2, 0]),
        ([1.1, 0.8], 2, [1, 0]),
        ([0.3, 0.45], 2, [0, 0]),
        ([0.3, 0.45], 3, [0, 0.75]),
    ):
        np.testing.assert_allclose(greedy_cover_centre(np.array(v), 4.0, steps), expected)
