"""The first-order start: its multipliers point at the optimum to the gap that was asked for."""

import numpy as np
import pytest

from attlas.solvers._methods import dual_descent as module
from attlas.solvers._methods.certificate import certify
from attlas.solvers._methods.dual_descent import dual_descent, primal_point
from attlas.solvers.constraints import VectorRows

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_the_primal_point_attains_youngs_inequality(p):
    u, q = RNG.normal(size=5), p / (p - 1)
    w = primal_point(u[None], p)[0]
    norm_w, norm_u = np.linalg.norm(w, p), np.linalg.norm(u, q)
    np.testing.assert_allclose(norm_w, norm_u, rtol=1e-12)
    np.testing.assert_allclose(u @ w, norm_u * norm_w, rtol=1e-12)


@pytest.mark.parametrize("p", [1.5, 2.0])
def test_the_gap_that_was_asked_for_is_reached(p):
    hidden = RNG.normal(size=12)
    A = RNG.normal(size=(60, 12))
    A *= np.sign(A @ hidden)[:, None]
    A /= np.linalg.norm(A, axis=1).max()
    rows = VectorRows(A[None])
    l = dual_descent(rows, p, 1e-2, 4000)
    assert (l >= 0).all()
    assert certify(rows, primal_point(rows.adjoint(l), p), l, p).gap[0] <= 1e-2


@pytest.mark.parametrize("p", [1.4, 2.7])
def test_what_is_minimised_is_minus_the_dual_from_its_best_equal_multipliers(monkeypatch, p):
    A, q = 0.04 * RNG.normal(size=(5, 3)), p / (p - 1)
    seen = {}

    def minimize(objective, start, **options):
        seen.update(options, objective=objective, start=start)
        return type("Answer", (), {"x": start + 1})

    monkeypatch.setattr(module, "minimize", minimize)
    monkeypatch.setattr(module, "_GRADIENT_STEPS", 0)
    answer = dual_descent(VectorRows(A[None]), p, 1e-3, 7)
    assert seen["options"]["maxiter"] == 7
    assert seen["options"]["maxfun"] == 14
    # Only the certificate and the number of steps end it, and no multiplier is negative.
    assert seen["options"]["ftol"] == seen["options"]["gtol"] == 0
    assert (seen["bounds"].lb, seen["bounds"].ub) == (0, np.inf)
    np.testing.assert_array_equal(answer, seen["start"][None] + 1)

    def loss(l):
        return np.linalg.norm(A.T @ l, q) ** 2 / 2 - l.sum()

    l, step = RNG.random(5), 1e-6
    value, slope = seen["objective"](l)
    np.testing.assert_allclose(value, loss(l), rtol=1e-13)
    numerical = [(loss(l + step * e) - loss(l - step * e)) / (2 * step) for e in np.eye(5)]
    np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-8)
    level = seen["start"][0]
    np.testing.assert_array_equal(seen["start"], np.full(5, level))
    # The derivative of the loss of t (1, ..., 1) at the start.
    assert abs(level * np.linalg.norm(A.sum(axis=0), q) ** 2 - 5) <= 1e-12
    # Rows that cancel have no best multiple.
    dual_descent(VectorRows(np.array([[[1.0], [-1.0]]])), p, 1e-3, 7)
    assert seen["start"].tolist() == [1e6, 1e6]


@pytest.mark.parametrize(("target", "count"), [(1e-2, 10), (1e-3, 15), (0.0, 19)])
def test_every_fifth_step_the_certificate_is_compared_with_the_target(monkeypatch, target, count):
    gaps, steps = iter([0.5, 1e-2, 1e-3]), []

    def minimize(objective, start, callback, **_):
        result = type("Answer", (), {"x": start})
        for step in range(1, 20):
            steps.append(step)
            try:
                callback(result)
            except StopIteration:
                break
        return result

    monkeypatch.setattr(module, "minimize", minimize)
    monkeypatch.setattr(module, "_GRADIENT_STEPS", 0)
    monkeypatch.setattr(
        module, "certify", lambda *_: type("Certificate", (), {"gap": np.array([next(gaps)])})
    )
    dual_descent(VectorRows(np.eye(2)[None]), 2.0, target, 99)
    assert steps[-1] == count


def gradient_steps(A, p, most):
    """Projected gradient for rows of length one, with alternating steps: least gap, step, point."""
    lengths = np.linalg.norm(A, axis=1)
    rows, aim, q = A / lengths[:, None], 1 / lengths, p / (p - 1)

    def slope(y):
        u = rows.T @ y
        norm = np.linalg.norm(u, q)
        return rows @ (np.sign(u) * np.abs(u) ** (q - 1) * norm ** (2 - q)) - aim

    def excess(y):
        margins = (slope(y) + aim) * lengths
        least = margins.min()
        return (y / lengths) @ margins / (least * (y / lengths).sum()) - 1 if least > 0 else np.inf

    y = aim * (aim @ aim) / (aim @ (slope(aim) + aim))
    g, seen = slope(y), []
    step = 1e-3 * (g @ g) / (g @ (g - slope(y - 1e-3 * g)))
    for count in range(most):
        after = np.clip(y - step * g, 0, None)
        s, d = after - y, slope(after) - g
        if s @ d > 0:
            step = (s @ d) / (d @ d) if count % 2 == 0 else (s @ s) / (s @ d)
        y, g = after, slope(after)
        seen.append((excess(y), count, y / lengths))
    return min(seen)


@pytest.mark.parametrize("p", [1.6, 2.0, 2.5])
def test_gradient_steps_are_those_of_rows_of_length_one(p):
    A = RNG.normal(size=(9, 14)) * np.linspace(0.02, 0.2, 9)[:, None]
    l, gap = module._gradient_steps(VectorRows(A[None]), p, 0.0, 6)
    excess, _, aim = gradient_steps(A, p, 6)
    np.testing.assert_allclose(l[0], aim, rtol=1e-8)
    np.testing.assert_allclose(gap, excess, rtol=1e-8)
    # To a rough gap they are in single precision.
    l, gap = module._gradient_steps(VectorRows(A[None]), p, 1e-4, 6)
    np.testing.assert_allclose(l[0], aim, rtol=2e-3, atol=1e-3 * aim.max())
    np.testing.assert_allclose(gap, excess, rtol=2e-3)


def test_gradient_steps_of_very_short_rows_stay_in_double_precision():
    A = np.abs(RNG.normal(size=(6, 9))) * np.geomspace(1e-9, 1, 6)[:, None]
    l, gap = module._gradient_steps(VectorRows(A[None]), 2.0, 1e-3, 100)
    assert np.isfinite(l).all()
    assert gap <= 1e-3


def test_gradient_steps_end_where_they_no_longer_get_on(monkeypatch):
    calls = []

    class Counted(VectorRows):
        def apply(self, w):
            calls.append(1)
            return super().apply(w)

    A = np.abs(RNG.normal(size=(9, 14)))
    monkeypatch.setattr(module, "_LEAST_PROGRESS", 1e-300)
    _, gap = module._gradient_steps(Counted(A[None] / 20), 2.0, 0.0, 100)
    assert gap > 0
    # Two products before the first step, and one for each of the two windows that are compared.
    assert len(calls) == 2 + 2 * module._WINDOW


@pytest.mark.parametrize(("p", "most"), [(2.0, 100), (3.0, 1)])
def test_quasi_newton_goes_on_where_gradient_steps_do_not_suffice(monkeypatch, p, most):
    A = np.abs(RNG.normal(size=(30, 12)))
    rows = VectorRows(A[None] / np.linalg.norm(A, axis=1).max())
    monkeypatch.setattr(module, "_GRADIENT_STEPS", most)
    l = dual_descent(rows, p, 1e-6, 4000)
    assert certify(rows, primal_point(rows.adjoint(l), p), l, p).gap[0] <= 1e-6


def test_steep_exponents_take_no_gradient_steps(monkeypatch):
    monkeypatch.setattr(module, "_gradient_steps", None)
    rows = VectorRows(np.eye(2)[None])
    np.testing.assert_allclose(
        dual_descent(rows, 3.5, 1e-6, 50), 2 ** (1 - 2 * 2.5 / 3.5), rtol=1e-5
    )


def test_a_pull_of_zero_has_the_point_zero():
    assert primal_point(np.array([[0.0, 0.0], [3.0, 4.0]]), 2.0).tolist() == [[0, 0], [3, 4]]
