"""Worst cases that are known in closed form, from both sides and by exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

import attlas as at
from attlas.claims._worst_cases.certificate import certificate, proves
from attlas.claims._worst_cases.semidefinite import worst_run
from attlas.claims._worst_cases.worst_points import belongs, drawn_runs, measured
from attlas.claims.first_order.conditions import Triplet, product, unit
from attlas.claims.first_order.enclosure import WorstCase
from attlas.claims.first_order.function_classes import FunctionClass
from attlas.claims.first_order.methods import Method
from attlas.claims.first_order.problem import Problem
from attlas.core.errors import UserError

SMOOTH, STRONG, KINKED = at.SmoothConvex(1), at.SmoothConvex(10, 1), at.LipschitzConvex(1)
NINE_TENTHS = Fraction(9, 10)
KNOWN = [
    # Drori and Teboulle (2014): L R^2 / (4 N + 2)
    (SMOOTH, at.GradientDescent([]), "value", "distance", 1, Fraction(1, 2)),
    (SMOOTH, at.GradientDescent([1]), "value", "distance", 1, Fraction(1, 6)),
    (SMOOTH, at.GradientDescent([1] * 5), "value", "distance", 1, Fraction(1, 22)),
    (at.SmoothConvex(4), at.GradientDescent([0.25] * 2), "value", "distance", 2, Fraction(16, 10)),
    # Taylor, Hendrickx and Glineur (2017): L R / (N + 1)
    (at.SmoothConvex(2), at.GradientDescent([0.5] * 3), "gradient", "distance", 1, Fraction(1, 4)),
    # 2 L (f_0 - f*) / (2 N + 1), of the last and of the least gradient
    (SMOOTH, at.GradientDescent([1] * 3), "gradient", "value", 1, Fraction(2, 7)),
    (SMOOTH, at.GradientDescent([1] * 3), "least gradient", "value", 1, Fraction(2, 7)),
    # max(|1 - mu h|, |1 - L h|)^(2 N)
    (STRONG, at.GradientDescent([0.125] * 2), "distance", "distance", 1, Fraction(7, 8) ** 4),
    (STRONG, at.GradientDescent([Fraction(2, 11)]), "distance", "distance", 1, Fraction(81, 121)),
    (STRONG, at.GradientDescent([Fraction(1, 10)] * 6), "distance", "distance", 5,
     25 * NINE_TENTHS**12),
    (STRONG, at.GradientDescent([Fraction(1, 10)] * 2), "value", "value", 3, 3 * NINE_TENTHS**4),
    # a step beyond 2 / L
    (SMOOTH, at.GradientDescent([3]), "value", "distance", 1, Fraction(2)),
    # M R / sqrt(N + 1), of the best subgradient step
    (KINKED, at.GradientDescent([0.5] * 3), "least value", "distance", 1, Fraction(1, 2)),
    (at.LipschitzConvex(4), at.GradientDescent([0.25] * 3), "least value", "distance", 2,
     Fraction(4)),
    # R^2 / (4 sum h)
    (at.Convex(), at.ProximalPoint([1, 2, 0.5]), "value", "distance", 1, Fraction(1, 14)),
    (at.Convex(), at.ProximalPoint([3]), "gradient", "distance", 1, Fraction(1, 9)),
]  # fmt: skip


@pytest.mark.parametrize(("functions", "method", "measure", "start", "radius", "known"), KNOWN)
def test_the_worst_case_is_the_known_one(functions, method, measure, start, radius, known):
    assert isinstance(functions, FunctionClass)
    assert isinstance(method, Method)
    worst: WorstCase = at.enclose_worst_case(functions, method, measure, start=start, radius=radius)
    assert worst.high == known
    assert 0 <= known - worst.low < 1e-6 * known
    problem = Problem(functions, method, measure, start, radius)
    assert proves(problem, known, worst.multipliers) == ""
    assert belongs(problem, worst.run)
    assert measured(problem, worst.run) == worst.low
    assert certificate(problem, known * Fraction(999, 1000)) is None
    above = certificate(problem, known * Fraction(101, 100))
    assert above is not None
    assert proves(problem, known * Fraction(101, 100), above) == ""


def test_heavy_ball_with_polyaks_numbers_does_not_contract():
    """At L = 25 mu it may diverge; on quadratics it is the fastest (Lessard et al., 2016)."""
    functions = at.SmoothConvex(L=25, mu=1)
    for iterations, known in ((1, Fraction(256, 81)), (2, Fraction(5776, 729))):
        method = at.HeavyBall(Fraction(1, 9), Fraction(4, 9), iterations)
        worst = at.enclose_worst_case(functions, method, "distance")
        assert worst.low > 1
        assert worst.high == known
    method = at.HeavyBall(Fraction(1, 9), Fraction(4, 9), 3)
    worst = at.enclose_worst_case(functions, method, "value", start="value")
    assert worst.low > 1
    assert worst.high - worst.low < 1e-4


def test_nesterovs_method_beats_gradient_descent():
    momenta = [Fraction(k, k + 3) for k in range(1, 5)]
    fast = at.enclose_worst_case(at.SmoothConvex(1), at.FastGradient(1, momenta), "value")
    slow = at.enclose_worst_case(at.SmoothConvex(1), at.GradientDescent([1] * 5), "value")
    assert (fast.high, slow.high) == (Fraction(1, 32), Fraction(1, 22))


def test_multipliers_that_are_changed_prove_nothing():
    problem = Problem(at.SmoothConvex(1), at.GradientDescent([1, 1]), "value")
    bound = Fraction(1, 10)
    multipliers = certificate(problem, bound)
    assert multipliers is not None
    for name in multipliers:
        for change in (Fraction(1, 1000), -Fraction(1, 1000)):
            assert proves(problem, bound, {**multipliers, name: multipliers[name] + change})
    assert proves(problem, bound, {**multipliers, "0 above 7": Fraction(1)})
    assert proves(problem, bound, {}) == "there are no multipliers"
    other_step = Problem(at.SmoothConvex(1), at.GradientDescent([1, Fraction(99, 100)]), "value")
    assert proves(other_step, bound, multipliers)


def test_runs_are_of_functions_of_the_class():
    """Quadratic and Huber functions in one variable are, and what is too curved is not."""
    problem = Problem(at.SmoothConvex(2), at.GradientDescent([0.25] * 3), "value")
    runs = list(drawn_runs(problem, np.random.default_rng(0), 8))
    assert all(belongs(problem, run) for run in runs)
    sharper = Problem(at.SmoothConvex(1), at.GradientDescent([0.25] * 3), "value")
    assert not any(belongs(sharper, run) for run in runs[:1])


def test_the_worst_run_is_reached_by_a_function():
    """The Huber function of Drori and Teboulle comes to the bound by running the method."""
    steps, knee = 4, Fraction(1, 9)
    x = Fraction(1)
    for _ in range(steps):
        x -= x if abs(x) <= knee else knee
    value = x**2 / 2 if x <= knee else knee * x - knee**2 / 2
    worst = at.enclose_worst_case(at.SmoothConvex(1), at.GradientDescent([1] * steps), "value")
    assert value == worst.high == Fraction(1, 18)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((at.SmoothConvex(1), at.GradientDescent([1]), "speed"), "measure = 'speed' is none of"),
        ((at.Convex(), at.GradientDescent([1]), "value"), "are unbounded: give SmoothConvex"),
        ((at.SmoothConvex(1), "descent", "value"), "is no Method"),
        ((at.SmoothConvex(1), at.GradientDescent([1] * 3), "distance", "value"), "is infinite"),
        ((at.Convex(), at.ProximalPoint([1]), "value", "value"), "takes no value at its start"),
        ((at.SmoothConvex(1), at.GradientDescent([1]), "value", "distance", 0), "is not positive"),
    ],
)
def test_problems_without_a_worst_case_are_refused(arguments, words):
    functions, method, measure, *options = arguments
    named = dict(zip(("start", "radius"), options, strict=False))
    with pytest.raises(UserError, match=words):
        at.enclose_worst_case(functions, method, measure, **named)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: at.GradientDescent([0.1]), r"write Fraction\(1, 10\)"),
        (lambda: at.GradientDescent(1), "is no list"),
        (lambda: at.GradientDescent([1] * 20), "are too many"),
        (lambda: at.GradientDescent(["1/2"]), "is no number"),
        (lambda: at.ProximalPoint([-1]), "are positive"),
        (lambda: at.HeavyBall(1, 0.5, 40), "iterations = 40"),
        (lambda: at.SmoothConvex(L=1, mu=1), "choose 0 <= mu < L"),
        (lambda: at.LipschitzConvex(0), "is not positive"),
    ],
)
def test_methods_and_classes_are_refused(wrong, words):
    with pytest.raises(UserError, match=words):
        wrong()


def test_conditions_hold_on_quadratic_functions_of_the_class_and_on_no_others():
    """The condition of two points of c x^2 / 2 holds exactly where mu <= c <= L."""
    for curvature in (Fraction(1, 2), Fraction(1), Fraction(3), Fraction(4), Fraction(9, 2)):
        i, j = (Triplet(str(k), unit(k, 2), curvature * unit(k, 2), unit(k, 2)) for k in range(2))
        condition = at.SmoothConvex(L=4, mu=1).pair(i, j)
        x = np.array([Fraction(2), Fraction(-1)], dtype=object)
        slack = condition.slack(product(x, x), curvature * x**2 / 2)
        assert (slack >= 0) is bool(1 <= curvature <= 4)


def test_the_program_of_an_equal_problem_in_other_units_is_the_same():
    problem = Problem(at.SmoothConvex(10, 1), at.GradientDescent([0.125] * 2), "value", radius=3)
    normalised = problem.normalised()
    assert normalised.functions == at.SmoothConvex(1, Fraction(1, 10))
    assert problem.unit == 90
    in_units = worst_run(problem).value
    assert abs(in_units - 90 * worst_run(normalised).value) < 1e-6 * in_units
