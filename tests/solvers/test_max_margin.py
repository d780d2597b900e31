"""The shared engine: one answer per problem, whether solved alone, together or in parts."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.solvers import max_margin as engine
from attlas.solvers._methods.central_path import PathEnd
from attlas.solvers.constraints import VectorRows
from attlas.solvers.max_margin import check_options, max_margin

RNG = np.random.default_rng(3)


def separable(b, m, size):
    A = RNG.normal(size=(b, m, size))
    hidden = RNG.normal(size=(b, size))
    return A * np.sign(np.einsum("bmd,bd->bm", A, hidden))[..., None]


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, np.inf])
def test_a_batch_gives_what_its_problems_give_alone(p):
    A = separable(4, 6, 5)
    together = max_margin(VectorRows(A), p, 1e-8, 100)
    assert (together.result == Result.CONVERGED.value).all()
    for i in range(4):
        alone = max_margin(VectorRows(A[i : i + 1]), p, 1e-8, 100)
        np.testing.assert_allclose(alone.upper, together.upper[i : i + 1], rtol=1e-8)
    assert together.margins.min() >= 1 - 1e-10
    np.testing.assert_allclose(together.multipliers.sum(axis=1), together.lower, rtol=1e-12)


def test_a_working_set_reaches_the_optimum_of_the_whole_problem(monkeypatch):
    A = separable(1, 60, 8)
    whole = max_margin(VectorRows(A), 2.0, 1e-10, 100)
    monkeypatch.setattr(engine, "_DIRECT_CONSTRAINTS", 10)
    parts = max_margin(VectorRows(A), 2.0, 1e-10, 100)
    np.testing.assert_allclose(parts.upper, whole.upper, rtol=1e-10)
    np.testing.assert_allclose(parts.w, whole.w, rtol=1e-5, atol=1e-7)


def test_an_infeasible_problem_is_proved_and_spares_its_neighbours():
    A = separable(2, 4, 3)
    A[1] = np.stack([A[1, 0], -A[1, 0], A[1, 1], A[1, 2]])
    found = max_margin(VectorRows(A), 2.0, 1e-8, 100)
    assert found.result.tolist() == [Result.CONVERGED.value, Result.INFEASIBLE.value]
    assert np.isnan(found.w[1]).all()
    np.testing.assert_allclose(found.farkas[1] @ A[1], 0.0, atol=1e-13)


def test_too_few_steps_are_told_and_bound_the_optimum_still():
    A = separable(1, 30, 10)
    rough = max_margin(VectorRows(A), 3.0, 1e-12, 2)
    exact = max_margin(VectorRows(A), 3.0, 1e-10, 100)
    assert rough.result[0] == Result.MAX_STEPS.value
    assert rough.lower[0] <= exact.upper[0] * (1 + 1e-9)


@pytest.mark.parametrize("p", [1.1, 1.5, 2.5, 4.0, np.inf])
def test_a_large_problem_is_solved_as_it_would_be_at_once(monkeypatch, p):
    A = separable(1, 40, 7)
    whole = max_margin(VectorRows(A), p, 1e-10, 100)
    monkeypatch.setattr(engine, "_DIRECT_CONSTRAINTS", 10)
    parts = max_margin(VectorRows(A), p, 1e-10, 100)
    assert parts.result[0] == Result.CONVERGED.value
    np.testing.assert_allclose(parts.upper, whole.upper, rtol=1e-9)


def norm(w, p):
    return np.abs(w).max() if p == np.inf else np.sum(np.abs(w) ** p) ** (1 / p)


@pytest.mark.parametrize("p", [1.3, 2.0, 5.0, np.inf])
def test_a_working_set_grows_by_the_most_violated_constraints(monkeypatch, p):
    A, ends, solve = np.random.default_rng(1).normal(size=(400, 6)), [], engine._path_end
    A[:, 0] = 0.3 + np.abs(A[:, 0])
    rows = VectorRows(A[None])

    def followed(part, *arguments):
        index = [int(np.flatnonzero((row == A).all(axis=1))[0]) for row in part.matrix[0]]
        ends.append((index, solve(part, *arguments)))
        return ends[-1][1]

    found = max_margin(rows, p, 1e-10, 100)
    # The start solves the problem of the first twenty constraints.
    start = np.zeros((1, 400))
    start[:, :20] = 1e-9 + max_margin(rows.part(np.arange(20)), p, 1e-10, 100).multipliers
    monkeypatch.setattr(engine, "_path_end", followed)
    end = engine._working_set(rows, p, 100, start)
    assert end.gap[0] <= 1e-10
    assert end.steps.tolist() == [sum(part.steps[0] for _, part in ends)]
    assert len(ends) > 1 or p == np.inf

    q = 2.0 if p == np.inf else p / (p - 1)
    pull = A.T @ start[0]
    w = np.sign(pull) * np.abs(pull) ** (q - 1) * np.sum(np.abs(pull) ** q) ** ((2 - q) / q)
    scale = start[0] @ A @ w / start[0].sum()
    far = np.where(start[0] > 0, 1.5, 1.01)
    active = set(np.flatnonzero(A @ w < far * scale))
    for index, part in ends:
        assert set(index) == active
        margins = A @ part.w[0]
        outside = sorted(set(range(400)) - active, key=lambda i: margins[i])
        least = margins[index].min() * (1 - 1e-12)
        added = [i for i in outside if margins[i] < least][: max(50, len(active) // 2)]
        active |= set(added)
    assert not added
    np.testing.assert_allclose(norm(end.w[0], p) / (A @ end.w[0]).min(), found.upper[0], rtol=1e-9)


def test_an_entry_that_passes_zero_delays_a_large_problem_and_does_not_end_it():
    A = np.random.default_rng(1).normal(size=(400, 6))
    A[:, 0] = 0.3 + np.abs(A[:, 0])
    assert max_margin(VectorRows(A[None]), 1.3, 1e-8, 100).gap[0] <= 1e-10


def test_pivots_give_the_least_norm_and_what_they_leave_goes_to_the_interior_point(monkeypatch):
    rows, exact = VectorRows(separable(3, 5, 8)), []
    end = engine._pivoted(rows)
    assert end.gap.max() <= 1e-12
    for A, w, l in zip(rows.matrix, end.w, end.multipliers, strict=True):
        assert l.min() >= 0
        np.testing.assert_allclose(A.T @ l, w, rtol=1e-12)
        np.testing.assert_allclose(l.sum(), w @ w, rtol=1e-12)
        exact.append(w)
    gap = np.array([0.0, np.inf, 0.5])
    left = end._replace(w=np.where(gap[:, None] > 0, 7.0, end.w), gap=gap)
    monkeypatch.setattr(engine, "_pivoted", lambda _: left)
    again = engine._least_norm(rows, 100)
    assert again.gap.max() <= 1e-10
    unit = again.w / np.matmul(rows.matrix, again.w[..., None]).min(axis=1)
    np.testing.assert_allclose(unit, exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("p", "size", "gaps", "calls"),
    [
        (2.0, (14, 7), [1e-12], ["pivots"]),
        (2.0, (14, 7), [0.5, 1e-12], ["pivots", "rough", "newton from rough"]),
        (2.0, (600, 7000), [1e-12], ["pivots"]),
        (2.0, (601, 7000), [0.3, 1e-12], ["steps to 0.001", "newton from steps"]),
        (2.0, (15, 7), [0.3, 1e-12], ["steps to 0.001", "newton from steps"]),
        (1.2, (14, 7), [1e-3, 1e-12], ["steps to 0.002", "newton from steps"]),
        (2.1, (14, 7), [0.3, 1e-12], ["steps to 0.001", "newton from steps"]),
        (3.0, (14, 7), [0.31, 1e-12], ["steps to 0.001", "rough", "newton from rough"]),
        (
            2.5,
            (15, 7),
            [0.3, 0.5, 0.1, 0.1],
            ["steps to 0.001", "newton from steps", "rough", "newton from rough", "set from rough"],
        ),
        (
            2.5,
            (15, 7),
            [0.3, 1e-9, 0.1],
            ["steps to 0.001", "newton from steps", "set from newton"],
        ),
        (1.19, (14, 7), [0.1], ["rough", "set from rough"]),
        (3.01, (14, 7), [0.1], ["rough", "set from rough"]),
        (np.inf, (14, 7), [0.1], ["rough", "set from rough"]),
    ],
)
def test_which_method_takes_a_large_problem(monkeypatch, p, size, gaps, calls):
    seen, gaps = [], iter(gaps)

    def end(name, start="pivots"):
        seen.append(name)
        return PathEnd("w", start, np.array([next(gaps)]), np.zeros(1, int))

    def steps(rows, p, target, most):
        seen.append(f"steps to {target:g}")
        return "steps", next(gaps)

    monkeypatch.setattr(engine, "_pivoted", lambda rows: end("pivots"))
    monkeypatch.setattr(engine, "gradient_descent", steps)
    monkeypatch.setattr(engine, "_rough_start", lambda *_: seen.append("rough") or "rough")
    monkeypatch.setattr(
        engine, "_newton", lambda *options: end(f"newton from {options[2]}", "newton")
    )
    monkeypatch.setattr(engine, "_working_set", lambda *options: end(f"set from {options[3]}"))
    engine._large(VectorRows(np.broadcast_to(0.0, (1, *size))), p, 9)
    assert seen == calls


@pytest.mark.parametrize(
    ("p", "options"),
    [(1.5, (1.5, 1e-3)), (3.0, (3.0, 1e-3)), (3.1, (3.1, 3e-2)), (np.inf, (2.0, 1e-3))],
)
def test_the_rough_start_is_nearer_where_newton_steps_follow(p, options):
    rows = VectorRows(np.ones((1, 1, 1)))
    found = engine._rough_start(rows, p, 9, lambda rows, *rest: np.array(rest))
    assert found.tolist() == [*options, 180]


def test_chunks_hold_two_systems_and_eight_vectors_a_problem(monkeypatch):
    rows, sizes, solve = VectorRows(separable(5, 6, 9)), [], engine._least_norm

    def followed(part, *arguments):
        sizes.append(part.shape[0])
        return solve(part, *arguments)

    monkeypatch.setattr(engine, "_least_norm", followed)
    room = 2 * 8 * (2 * 6**2 + 8 * (6 + 9))
    whole = max_margin(rows, 2.0, 1e-8, 100)
    for size, chunks in ((room, [2, 2, 1]), (room - 1, [1] * 5), (1, [1] * 5)):
        sizes.clear()
        monkeypatch.setattr(engine, "_CHUNK_BYTES", size)
        np.testing.assert_allclose(max_margin(rows, 2.0, 1e-8, 100).w, whole.w, rtol=1e-12)
        assert sizes == chunks


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, np.inf])
@pytest.mark.parametrize("size", [7.0, 1e-9])
def test_all_numbers_of_an_answer_belong_to_the_problem_as_it_was_passed(p, size):
    A = size * separable(2, 4, 6)
    A[1, 1:] = A[1, 0] = size
    found, q = max_margin(VectorRows(A), p, 1e-8, 100), 1.0 if p == np.inf else p / (p - 1)
    for i in range(2):
        w, l = found.w[i], found.multipliers[i]
        np.testing.assert_allclose(A[i] @ w, found.margins[i], rtol=1e-10)
        np.testing.assert_allclose((A[i] @ w).min(), 1, rtol=1e-10)
        np.testing.assert_allclose(np.linalg.norm(w, p), found.upper[i], rtol=1e-12)
        assert l.min() >= 0
        np.testing.assert_allclose(l.sum(), found.lower[i], rtol=1e-12)
        np.testing.assert_allclose(
            l.sum() / np.linalg.norm(A[i].T @ l, q), found.lower[i], rtol=1e-9
        )
        np.testing.assert_allclose(
            found.gap[i], max(found.upper[i] / found.lower[i] - 1, 0), atol=1e-12
        )
    assert found.result.tolist() == [Result.CONVERGED.value] * 2
    assert not found.farkas.any()
    assert np.isnan(found.farkas_residual).all()


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 3.0, np.inf])
def test_rows_of_zeros_have_no_margin(p):
    found = max_margin(VectorRows(np.zeros((1, 3, 4))), p, 1e-8, 100)
    assert found.result[0] == Result.INFEASIBLE.value
    assert found.farkas_residual[0] == 0


def test_a_gap_of_exactly_the_tolerance_is_converged():
    rows = VectorRows(separable(1, 30, 10))
    gap = max_margin(rows, 3.0, 1e-12, 2).gap[0]
    assert gap > 1e-9
    assert max_margin(rows, 3.0, gap, 2).result[0] == Result.CONVERGED.value


@pytest.mark.parametrize(("allowed", "steps"), [(9, 9), (50, 20)])
def test_newton_steps_are_twenty_at_most(monkeypatch, allowed, steps):
    seen = []

    def active_set(_rows, p, start, target, most):
        seen.append((p, target, most))
        return PathEnd(np.ones((1, 2)), start, np.zeros(1), np.zeros(1, int))

    monkeypatch.setattr(engine, "active_set", active_set)
    start = np.ones((1, 1))
    end = engine._newton(VectorRows(np.ones((1, 1, 2))), 1.5, start, allowed)
    assert seen == [(1.5, 1e-12, steps)]
    assert end.multipliers is start


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((1.0, 0.1, 1), "p = 1.0 is not above 1"),
        ((np.nan, 0.1, 1), "p = nan is not above 1"),
        ((2.0, 0.0, 1), r"tolerance = 0.0 is not in \(0, 1\)"),
        ((2.0, 1.0, 1), r"tolerance = 1.0 is not in \(0, 1\)"),
        ((2.0, 0.1, 0), "max_steps = 0 is below 1"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        check_options(*options)
    with pytest.raises(UserError, match=message):
        max_margin(VectorRows(np.eye(2)[None]), *options)
    check_options(np.inf, 1e-8, 1)
