"""From the engine's answer to a solution: certificates, shapes, infeasible problems."""

import numpy as np

from attlas.core.solution import Result
from attlas.solvers._methods.margin_solution import to_solution
from attlas.solvers.max_margin import MaxMargin


def answer():
    """Two problems with two constraints: w = (1, 1) of margins (.75, 2), and an infeasible one."""
    nan = np.nan
    return MaxMargin(
        w=np.array([[1.0, 1.0], [nan, nan]]),
        multipliers=np.array([[0.5, 0.9], [1.0, 1.0]]),
        margins=np.array([[0.75, 2.0], [1.0, 1.0]]),
        upper=np.array([np.sqrt(2), nan]),
        lower=np.array([1.0, nan]),
        gap=np.array([np.sqrt(2) - 1, nan]),
        distance=np.array([0.0, nan]),
        farkas=np.array([[0.0, 0.0], [0.5, 0.5]]),
        farkas_residual=np.array([nan, 1e-17]),
        result=np.array([Result.CONVERGED.value, Result.INFEASIBLE.value]),
        steps=np.array([7, 3]),
    )


def solution(given, single):
    return to_solution(given, 2.0, lambda w: w[:, None], lambda rows: rows[:, :, None], single)


def test_certificates_hold_the_violation_and_the_distance():
    found = solution(answer(), single=False)
    assert found.value.shape == (2, 1, 2)
    assert found.certificate["margins"].shape == (2, 2, 1)
    assert found.certificate["violation"][0] == 0.25
    # Pythagoras at p = 2: ||w - w*||^2 <= ||w||^2 - lower^2.
    np.testing.assert_allclose(found.certificate["distance"][0], 1.0, rtol=1e-12)
    assert found.stats["steps"].tolist() == [7, 3]


def test_an_infeasible_problem_has_a_proof_and_no_numbers():
    found = solution(answer(), single=False)
    assert found.result.tolist() == [Result.CONVERGED.value, Result.INFEASIBLE.value]
    for name in ("violation", "distance", "dual", "margins"):
        assert np.isnan(found.certificate[name][1]).all(), name
    assert found.certificate["norm_upper"][1] == found.certificate["norm_lower"][1] == np.inf
    assert found.certificate["farkas"][1].tolist() == [[0.5], [0.5]]


def test_a_single_problem_has_no_batch_axis():
    found = solution(MaxMargin(*(part[:1] for part in answer())), single=True)
    np.testing.assert_array_equal(found.value, [[1.0, 1.0]])
    assert found.certificate["dual"].shape == (2, 1)
    assert found.certificate["gap"].shape == found.stats["steps"].shape == ()
