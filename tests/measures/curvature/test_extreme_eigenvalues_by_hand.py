"""Each step of the search for extreme eigenvalues against numbers written out."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result, Solution
from attlas.measures.curvature import extreme_eigenvalues
from attlas.measures.curvature._krylov_space import RitzPairs
from attlas.measures.curvature.extreme_eigenvalues import (
    _beyond,
    _complement_ends,
    _enclosure,
    _Ends,
    _grow,
    _judged,
    _levels,
    _merged,
    _Problem,
    _solution,
    hessian_extremes,
)

EPS = np.finfo(float).eps
WEIGHTS = np.r_[-9.0, -4, -1, 0.5, 1, 2, 3, 5, 6, 7, 0.1, 0.2]


def weighted(x, weights):
    """A function whose Hessian is diagonal."""
    return jnp.sum(weights * x**2) / 2


def a_problem(**settings):
    """A problem with the Hessian diag(WEIGHTS); the settings replace its fields."""
    size = WEIGHTS.size
    args = (jnp.asarray(WEIGHTS),)
    problem = _Problem(weighted, jnp.zeros(size), args, size, 2, 1e-3, 0.01, 0.02, 320, 1e-4)
    return problem._replace(**settings)


def ritz(values, bounds=0.0, diagonal=(0.0,), off=(0.0,), steps=5):
    """Ritz pairs of which only numbers matter."""
    values = np.array(values, float)
    bounds = np.broadcast_to(np.array(bounds, float), values.shape)
    basis = jnp.zeros((1, 1))
    return RitzPairs(values, basis, bounds, basis, np.array(diagonal), np.array(off), steps)


def ends_of(values, residuals=0.0):
    values = np.array(values, float)
    return _Ends(values, np.eye(len(values), 12), np.broadcast_to(residuals, values.shape))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_whole_hessian_gives_values_and_the_rounding_of_its_solver(dtype):
    x, weights = np.zeros(12, dtype), WEIGHTS.astype(dtype)
    found = hessian_extremes(weighted, x, weights, count=3)
    assert found.stats == {"exact": True, "products": 18, "steps": 0, "starts": 0}
    truth, eps = np.array([[-9, -4, -1], [7, 6, 5]]), np.finfo(dtype).eps
    np.testing.assert_allclose(np.stack(found.value), truth, rtol=1e-14)
    width = 12 * float(eps) * 9
    enclosure = found.certificate["enclosure"] - np.stack(found.value)[..., None]
    wanted = np.broadcast_to([-width, width], (2, 3, 2))
    np.testing.assert_allclose(enclosure, wanted, rtol=1e-6, atol=8 * EPS)
    assert found.certificate["failure"] == 0
    vectors = np.abs(found.certificate["vectors"])
    assert np.array_equal(vectors, np.eye(12)[[[0, 1, 2], [9, 8, 7]]])
    assert found.certificate["residual"].tolist() == np.zeros((2, 3)).tolist()


@pytest.mark.parametrize(("shift", "result"), [(0.0085, "CONVERGED"), (0.0095, "PRECISION")])
def test_products_judge_the_eigensolver(monkeypatch, shift, result):
    """One eigenvalue that is off by more than the tolerance, 1e-3, times the largest, 9."""
    solver = np.linalg.eigh
    wrong = shift * (np.arange(12) == 0)
    monkeypatch.setattr(np.linalg, "eigh", lambda m: (solver(m)[0] + wrong, solver(m)[1]))
    found = hessian_extremes(weighted, np.zeros(12), WEIGHTS, count=2, tolerance=1e-3)
    residual = found.certificate["residual"]
    np.testing.assert_allclose(residual, [[shift, 0], [0, 0]], rtol=1e-10, atol=1e-14)
    assert int(found.result) == Result[result]


def test_the_settings_of_a_problem(monkeypatch):
    """Sizes above 8 count go to Lanczos, each of whose spaces may fail at either end."""
    monkeypatch.setattr(extreme_eigenvalues, "_by_lanczos", lambda *a: Solution(a, 0, {}, {}))

    def problem(size, dtype, **settings) -> Any:
        return hessian_extremes(
            lambda x: jnp.sum(x**2), np.zeros(size, dtype), exact_below=0, **settings
        ).value

    found, dtype, failure, key = problem(500, "float64", count=3, failure=1e-4)
    assert (found.size, found.count, found.max_steps, found.width) == (500, 3, 320, 0.02)
    assert (found.tolerance, found.target) == (1e-6, 1e-6)
    # Five starts, at two ends, of up to 40, 80, 160 or 320 steps.
    assert found.part == pytest.approx(1e-4 / (2 * 5 * 4), rel=4 * EPS)
    assert (dtype, failure, key) == (np.float64, 1e-4, jax.random.key(0))
    assert problem(500, "float64", key=jax.random.key(8))[3] == jax.random.key(8)
    rounding = np.sqrt(500) * 2.0**-23
    found = problem(500, "float32")[0]
    assert found.tolerance == found.target == pytest.approx(4 * rounding, rel=4 * EPS)
    found = problem(500, "float32", tolerance=1e-9)[0]
    assert (found.tolerance, found.target) == (1e-9, pytest.approx(rounding, rel=4 * EPS))
    assert len(problem(17, "float64", count=2)) == 4
    assert len(problem(16, "float64", count=2)) == 2
    every = {"count": 2, "exact_below": 17}
    small = hessian_extremes(lambda x: jnp.sum(x**2), np.zeros(17), **every)
    assert small.stats["exact"]
    with pytest.raises(UserError, match="argument 2 of the risk"):
        hessian_extremes(weighted, np.zeros(3), np.ones(3), [[1.0], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("sizes", "levels"),
    [
        ((150, 3, 320), [40, 80, 144]),
        ((1000, 15, 320), [60, 120, 240, 320]),
        ((30, 1, 320), [28]),
        ((1000, 1, 40), [40]),
        ((1000, 1, 41), [40, 41]),
    ],
)
def test_dimensions_double_up_to_the_largest(sizes, levels):
    assert _levels(*sizes) == levels


def test_pairs_beyond_those_found():
    pairs = ritz([-12, -10.3, -8, 0, 1, 6.2, 6.15, 8])
    # At first the two at each end, whatever they are.
    assert _beyond(a_problem(), pairs, None).tolist() == [0, 1, 6, 7]
    # Later those that lie 0.01 * 30 further out than -10.1 and 6, and are among the first two.
    ends = ends_of([-30, -10.1, 6, 7])
    assert _beyond(a_problem(), pairs, ends).tolist() == [0, 7]
    assert _beyond(a_problem(target=0.005), pairs, ends).tolist() == [0, 1, 7]
    assert _beyond(a_problem(target=0.002), pairs, ends).tolist() == [0, 1, 6, 7]
    # The scale is the larger of both: of the pairs, 12, or 8.
    near = ends_of([-9, -7.9, 7.9, 8])
    assert _beyond(a_problem(target=0.2), pairs, near).tolist() == [0]
    assert _beyond(a_problem(target=0.21), pairs, near).tolist() == [0]
    assert _beyond(a_problem(target=0.35), pairs, near).tolist() == []
    assert _beyond(a_problem(target=0.01), ritz([-1, 0, 0, 8.5]), near).tolist() == [3]


def grown(monkeypatch, ends, stages, *, narrow=True):
    """`_grow` with one end each, target 0.01, on stages of prescribed values and bounds."""
    calls = []

    def prescribed(risk, parameters, args, start, locked, centre, steps):
        calls.append((locked, centre, steps))
        return ritz(*stages[len(calls) - 1], steps=steps)

    monkeypatch.setattr(extreme_eigenvalues, "ritz_pairs", prescribed)
    monkeypatch.setattr(extreme_eigenvalues, "_narrow", lambda *_: narrow)
    _, settled, used = _grow(a_problem(count=1), np.ones(12), ends, [4, 7, 20])
    return settled, used, calls


def test_a_space_grows_until_both_ends_have_converged(monkeypatch):
    # The level is 0.01 * 10; what lies between the ends does not matter.
    short = ([-10, 0, 5], [0.09, 9, 0.11]), ([-10, 0, 5], [0.11, 9, 0.09])
    settled, used, calls = grown(monkeypatch, None, [*short, ([-10, 0, 5], [0.09, 9, 0.09])])
    assert (settled, used, [call[2] for call in calls]) == (True, 31, [4, 7, 20])
    assert calls[0][0].shape == (2, 12)
    assert (np.abs(calls[0][0]).max(), calls[0][1]) == (0, 0)
    assert grown(monkeypatch, None, [*short, short[0]])[:2] == (False, 31)
    assert grown(monkeypatch, None, [short[0], ([-10, 0, 5], 0.09)])[:2] == (True, 11)
    assert grown(monkeypatch, None, [short[0], ([np.nan], 0.0)])[:2] == (False, 11)


def test_a_complement_grows_until_its_ends_lie_inside(monkeypatch):
    ends = ends_of([-20, 7])
    # 10 and 2 inside of the ends, or no nearer than the level 0.01 * 20.
    for bounds, inside in (([9.9, 9, 1.9], True), ([10.1, 9, 1.9], False), ([9.9, 9, 2.1], False)):
        stage = ([-10, 0, 5], bounds)
        settled, used, calls = grown(monkeypatch, ends, [stage, stage, ([-10, 0, 5], 0.0)])
        assert (settled, used) == (True, 4 if inside else 31)
        assert np.array_equal(calls[0][0], ends.vectors)
        assert calls[0][1] == -6.5
    for edge in ([-20.1, 0, 5], [-10, 0, 7.1]):
        stages = [(edge, 0.21), (edge, 0.19)]
        assert grown(monkeypatch, ends, stages)[:2] == (True, 11)
    # Bounds that are too wide ask for more, and stop with what there is; not with new pairs.
    wide = [([-10, 0, 5], 0.0)] * 3
    assert grown(monkeypatch, ends, wide, narrow=False)[:2] == (True, 31)
    assert grown(monkeypatch, ends, [([-21, 0, 5], 0.0)], narrow=False)[:2] == (True, 4)


@pytest.mark.parametrize("known", [0, 4])
def test_merging_is_rayleigh_ritz_in_the_span_of_all(known):
    """Of four vectors and three, or of one alone, filled up to four from the generator."""
    draws = np.random.default_rng(3)
    before = np.linalg.qr(draws.standard_normal((12, 4)))[0].T[:known]
    rows = draws.standard_normal((3 if known else 1, 12))
    found = _merged(
        a_problem(), _Ends(np.zeros(4), before, np.zeros(0)), rows, np.random.default_rng(9)
    )
    filling = np.random.default_rng(9).standard_normal((0 if known else 3, 12))
    basis = np.linalg.svd(np.concatenate([before, rows, filling]))[2]
    basis = basis[: known + len(rows) + len(filling)]
    values = np.linalg.eigvalsh(basis @ np.diag(WEIGHTS) @ basis.T)[[0, 1, -2, -1]]
    np.testing.assert_allclose(found.values, values, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(4), rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.vectors @ basis.T @ basis, found.vectors, rtol=0, atol=1e-14)
    misses = found.vectors * WEIGHTS - values[:, None] * found.vectors
    np.testing.assert_allclose(found.residuals, np.linalg.norm(misses, axis=1), rtol=1e-12)


def test_the_enclosure_from_a_complement_of_one_step():
    """Bounds are a -+ b sqrt(limit - 1) with limit = 2 (12 - 4 - 1) / (pi part^2)."""
    problem, complement = a_problem(part=0.07), ritz([0.5], 0.0, [0.5], [0.2])
    reach = 0.2 * np.sqrt(2 * 7 / np.pi / 0.07**2 - 1)
    lowest, highest = 0.5 - reach, 0.5 + reach
    assert _complement_ends(problem, complement) == pytest.approx((lowest, highest), rel=1e-13)
    assert -9 < lowest < -4
    assert 6 < highest < 7
    values, residuals = np.array([-9.0, -4, 6, 7]), np.array([0.03, 0.04, 0.12, 0.0])
    # In float16 the rounding, sqrt(12) eps 9, is seen.
    ends = _Ends(values, np.eye(4, 12, dtype=np.float16), residuals)
    rounding = np.sqrt(12) * 2.0**-10 * 9
    slack, drift = 0.13 + rounding, 2 * rounding
    low = [-9 - slack, lowest - drift - slack, 6 - rounding, 7 - rounding]
    high = [-9 + rounding, -4 + rounding, highest + drift + slack, max(7, highest + drift) + slack]
    found = _enclosure(problem, ends, complement)
    np.testing.assert_allclose(found, np.stack([low, high], axis=1), rtol=1e-12)
    longer = ritz([0.5], 0.0, [0.5] * 3, [3.0, 2.0, 4.0])
    wide = _enclosure(problem, ends, longer)
    lowest, highest = _complement_ends(problem, longer)
    assert lowest < -4
    assert wide[1, 0] == pytest.approx(lowest - np.sqrt(3) * drift - slack, rel=1e-12)
    assert wide[2, 1] == pytest.approx(highest + np.sqrt(3) * drift + slack, rel=1e-12)
    unknown = _enclosure(problem, ends, None)
    assert np.isinf(unknown).tolist() == [[True, False]] * 2 + [[False, True]] * 2


def test_the_ends_are_listed_from_outside():
    ends = ends_of([1, 2, 3, 7, 8, 9], np.arange(6) / 10)
    enclosure = np.arange(12.0).reshape(6, 2)
    found = _solution(ends, enclosure, 0.25, Result.PRECISION, {"steps": 4})
    assert np.stack(found.value).tolist() == [[1, 2, 3], [9, 8, 7]]
    assert found.certificate["residual"].tolist() == [[0, 0.1, 0.2], [0.5, 0.4, 0.3]]
    assert found.certificate["enclosure"][1].tolist() == [[10, 11], [8, 9], [6, 7]]
    assert np.argmax(found.certificate["vectors"], axis=2).tolist() == [[0, 1, 2], [5, 4, 3]]
    assert (found.certificate["failure"], int(found.result)) == (0.25, Result.PRECISION)
    assert found.stats == {"steps": 4}


def test_the_judgement_compares_real_residuals_with_the_largest_value():
    for residual, result in ((0.029, Result.CONVERGED), (0.031, Result.PRECISION)):
        assert _judged(ends_of([-30, 1, 2, 3], [0, residual, 0, 0]), 1e-3) is result


# Levels 40 and up; merging takes 6 products for each pair wanted at an end.
@pytest.mark.parametrize(
    ("values", "settings", "counts"),
    [
        (np.full(150, 2.0), {"count": 3}, (40 + 18 + 40, 40, 2)),
        (np.r_[-3, -2, np.linspace(-1, 1, 146), 4, 6], {"count": 2}, (40 + 12 + 40, 40, 2)),
        (np.linspace(-1, 1, 150), {"max_steps": 60}, (40 + 60 + 6, 60, 1)),
    ],
)
def test_products_are_counted(values, settings, counts):
    found = hessian_extremes(weighted, np.zeros(150), values, exact_below=0, **settings)
    assert not found.stats["exact"]
    assert tuple(found.stats[name] for name in ("products", "steps", "starts")) == counts
    assert found.certificate["failure"] == 1e-6


def test_pairs_that_keep_appearing_end_after_two_starts_more_than_wanted(monkeypatch):
    monkeypatch.setattr(extreme_eigenvalues, "_beyond", lambda problem, pairs, ends: np.arange(1))
    found = hessian_extremes(
        weighted, np.zeros(60), np.r_[1.0, np.full(59, 2.0)], count=2, exact_below=0, width=1.0
    )
    assert (int(found.result), found.stats["starts"]) == (Result.MAX_STEPS, 4)


def test_what_is_not_finite_has_certificates_of_the_usual_shapes():
    for size in (12, 40):
        weights = np.full(size, np.nan)
        found = hessian_extremes(weighted, np.zeros(size), weights, count=2, exact_below=20)
        assert int(found.result) == Result.NOT_FINITE
        shapes = {name: np.shape(value) for name, value in found.certificate.items()}
        assert shapes == {
            "residual": (2, 2), "enclosure": (2, 2, 2), "failure": (), "vectors": (2, 2, size),
        }  # fmt: skip
        assert found.certificate["failure"] == 1
        assert np.isnan(np.concatenate([v.ravel() for v in found.certificate.values()])).sum() == (
            4 + 8 + 4 * size
        )
