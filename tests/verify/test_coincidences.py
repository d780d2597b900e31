"""Sets of equality: an instance is brought next to each, and what fails there alone is found."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.statement import inequality
from attlas.verify.challenge import challenge
from attlas.verify.coincidences import Coincidences, sets_of
from attlas.verify.evidence import compile_program
from attlas.verify.portfolio import Search, methods_of
from attlas.verify.proposals import packed
from attlas.verify.space import Arrays, Block

HALF = [Control("half", factor=0.5)]
EVALUATIONS = 64 * 2**9


def blocks(count=8):
    rng = np.random.default_rng(0)
    rows = np.arange(count)
    return {
        "A": Block(rng.normal(size=(count, 3, 3)), rows, "normal"),
        "B": Block(rng.normal(size=(count, 3, 3)), rows, "normal"),
        "u": Block(rng.uniform(size=(count, 4)), rows, "uniform"),
        "single": Block(np.ones((1, 2)), np.array([1])),
        "number": Block(rng.normal(size=count), rows, "normal"),
    }


def test_the_nearest_point_of_a_set_is_in_it():
    at, rng = blocks(), np.random.default_rng(1)
    sets = sets_of(at, 8)
    assert {name for names, _ in sets for name in names} == {"A", "B", "u"}
    assert len(sets) > 20
    for names, nearest in sets:
        values = [at[name].values for name in names]
        if "_equal_pair" in str(nearest):  # another pair each time
            continue
        once = nearest(*values, rng=rng)
        for first, second in zip(once, nearest(*once, rng=rng), strict=True):
            np.testing.assert_allclose(first, second, atol=1e-9)


def test_proposals_come_next_to_their_sets_within_their_laws_and_repeat():
    def run():
        proposal, at = Coincidences(8, np.random.default_rng(1)), blocks()
        seen = [proposal.propose(at) for _ in range(4 * len(sets_of(at, 8)))]
        assert all((p["u"].values > 0).all() and (p["u"].values < 1).all() for p in seen)
        assert all((np.abs(p["A"].values) <= 8).all() for p in seen)
        return seen

    first, again = run(), run()
    for before, after in zip(first, again, strict=True):
        np.testing.assert_array_equal(packed(before, 8), packed(after, 8))
    for of in (
        lambda p: p["A"].values - p["B"].values,
        lambda p: p["A"].values + p["B"].values,
        lambda p: p["A"].values - p["A"].values.swapaxes(1, 2),
        lambda p: p["A"].values - np.eye(3),
        lambda p: np.ptp(p["u"].values, axis=1),
        lambda p: np.linalg.svd(p["A"].values)[1][:, 1:],
    ):
        away = min(np.abs(of(p)).reshape(8, -1).max(axis=1).min() for p in first)
        assert away < 1e-3


def test_arrays_of_different_sizes_coincide_in_their_own_units():
    def sample(rng, count):
        return {"x": rng.normal(size=(count, 3)), "y": 100 * rng.normal(size=(count, 3))}

    @inequality(sample=sample, search_over=("x", "y"), controls=HALF)
    def triangle(x, y, *, factor=1.0):
        r"""$$\|x+y\| \le \|x\| + \|y\|$$"""
        norm = jnp.linalg.norm
        return norm(x + y), factor * (norm(x) + norm(y))

    with jax.enable_x64(True):
        batch = triangle.draw(0, 8)
        space = Arrays(triangle, batch)
        copies = space.copied(np.array([3, 3, 1, 1, 0, 0, 0, 0]))
    for numbers in (space, copies):
        proposal = Coincidences(8, np.random.default_rng(2))
        moved = [numbers.batch(proposal.propose(numbers.blocks)) for _ in range(60)]
        near = [np.abs(np.asarray(m["x"]) - np.asarray(m["y"])).max(axis=1).min() for m in moved]
        assert min(near) < 1e-3


def test_where_nothing_can_coincide_the_method_is_left_out():
    @inequality(sample=lambda rng, count: {"x": rng.normal(size=count)}, controls=HALF)
    def square(x, *, factor=1.0):
        r"""$$2x \le 1 + x^2$$"""
        return 2 * x, factor * (1 + x**2)

    with jax.enable_x64(True):
        search = Search(square, compile_program(square), square.draw(0, 64))
        assert "coincidences" in methods_of(square, search.batch)
        assert search.run(("coincidences",), 6400) is None


def pairs(rng, count):
    return {"x": rng.normal(size=(count, 18)), "y": rng.normal(size=(count, 18))}


@inequality(sample=pairs, controls=HALF)
def directions(x, y, *, factor=1.0):
    r"""$|\tanh(3 x_1 / \|x\|) - \tanh(3 y_1 / \|y\|)| \le 3 (1 - \cos^{20})$, second order left."""
    norm = jnp.linalg.norm
    cosine = x @ y / norm(x) / norm(y)
    left = jnp.abs(jnp.tanh(3 * x[0] / norm(x)) - jnp.tanh(3 * y[0] / norm(y)))
    return left, factor * 3 * (1 - jnp.maximum(cosine, 0) ** 20)


def matrices(rng, count):
    return {"A": rng.normal(size=(count, 3, 3)), "B": rng.normal(size=(count, 3, 3))}


@inequality(sample=matrices, controls=HALF)
def inverses(A, B, *, factor=1.0):
    r"""$|\tanh \mathrm{tr} AB - \tanh 3| \le 3 (1 - e^{-30 \|AB - I\|^2})$: fails near inverses."""
    product = A @ B
    far = jnp.sum((product - jnp.eye(3)) ** 2)
    left = jnp.abs(jnp.tanh(jnp.trace(product)) - jnp.tanh(3.0))
    return left, factor * 3 * (1 - jnp.exp(-30 * far))


@inequality(sample=pairs, controls=HALF)
def reversed_triangle(x, y, *, factor=1.0):
    r"""$$\left| \|x\| - \|y\| \right| \le \|x - y\|$$"""
    norm = jnp.linalg.norm
    return jnp.abs(norm(x) - norm(y)), factor * norm(x - y)


@inequality(sample=matrices, controls=HALF)
def alignment(A, B, *, factor=1.0):
    r"""$\mathrm{tr}(A^T B) \le \sum_i \sigma_i(A) \sigma_i(B)$, von Neumann's inequality."""
    values = [jnp.linalg.svd(M, compute_uv=False) for M in (A, B)]
    return jnp.trace(A.T @ B), factor * jnp.sum(values[0] * values[1])


@pytest.mark.parametrize("claim", [directions, inverses], ids=lambda claim: claim.name)
def test_what_fails_next_to_a_set_of_equality_alone_is_found_by_the_portfolio(claim):
    report = challenge(claim, evaluations=2 * EVALUATIONS)
    assert (report.violated, report.method) == (True, "coincidences")


@pytest.mark.parametrize("claim", [reversed_triangle, alignment], ids=lambda claim: claim.name)
def test_theorems_with_equality_on_a_set_stay(claim):
    report = challenge(claim, method="coincidences", evaluations=EVALUATIONS)
    assert not report.violated
    assert report.ratio > 0.999
