"""One portfolio for check, pytest and challenge: what each method is granted, and when it ends."""

import importlib
import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.sampling import draw_anew, seconds_to_draw, shared
from attlas.claims.statement import inequality
from attlas.verify import portfolio
from attlas.verify.challenge import challenge
from attlas.verify.evidence import compile_program
from attlas.verify.portfolio import SHARES, Search, granted, methods_of, searched, shares

HALF = [Control("half", factor=0.5)]


def normal(rng, count):
    return {"x": rng.normal(size=(count, 3))}


@inequality(sample=normal, search_over="x", sizes={}, controls=HALF)
def norms(x, *, factor=1.0):
    r"""$$\|x\|_2 \le \|x\|_1$$"""
    return jnp.linalg.norm(x), factor * jnp.sum(jnp.abs(x))


@pytest.mark.parametrize("batches", [1, 3, 10, 40, 100, 10_000])
def test_draws_have_a_fifth_and_nothing_is_granted_twice(batches):
    parts = shares(tuple(SHARES), 64 * batches, 64)
    assert sum(parts.values()) <= 64 * batches
    assert "moves" in parts
    if len(parts) > 1:
        assert parts["draws"] >= 0.2 * 64 * batches - 1
    if batches >= 200:
        assert set(parts) == set(SHARES)


def _search(effort):
    with jax.enable_x64(True):
        batch = norms.draw(0, norms.count)
        return searched(norms, compile_program(norms), batch, effort=effort, seed=0)


def test_the_evaluations_are_a_power_of_two_of_batches_by_the_cost_of_one(monkeypatch):
    with jax.enable_x64(True):
        program, batch = compile_program(norms), norms.draw(0, norms.count)
        for cost, batches in ((0.011, 128), (0.021, 64), (1e-9, 2**13), (99.0, 4)):
            monkeypatch.setattr(portfolio, "_cost", lambda *_, cost=cost: cost)
            assert granted(norms, program, batch, effort=0.75) == 64 * batches
        monkeypatch.setattr(portfolio, "_cost", lambda *_: 0.01)
        assert granted(norms, program, batch, effort=1.5) == 64 * 256


def test_of_a_declared_number_an_effort_grants_its_part_without_measuring(monkeypatch):
    monkeypatch.setattr(portfolio, "_cost", None)
    declared = replace(norms, evaluations=6400)
    with jax.enable_x64(True):
        program, batch = compile_program(declared), declared.draw(0, declared.count)
        assert granted(declared, program, batch, effort=0.05) == 320
        assert granted(declared, program, batch, effort=0.01) == 2 * 64
        assert granted(declared, program, batch, effort=3) == 3 * 6400
        report = searched(declared, program, batch, effort=0.05, seed=0)
    assert 256 <= report.evaluations <= 320 + 64


def test_a_claim_that_declares_few_evaluations_is_granted_no_more_of_them(monkeypatch):
    monkeypatch.setattr(portfolio, "_cost", None)
    declared = replace(norms, evaluations=96)
    with jax.enable_x64(True):
        program, batch = compile_program(declared), declared.draw(0, declared.count)
        assert granted(declared, program, batch, effort=0.05) == 96
        assert granted(declared, program, batch, effort=2) == 192


def test_a_little_effort_runs_a_declared_sampler_once():
    drawn = []

    def sample(rng, count):
        drawn.append(count)
        return norms.sample(rng, count)

    declared = replace(norms, sample=sample, search_over=(), evaluations=6400)
    with jax.enable_x64(True):
        batch = norms.draw(0, norms.count)
        program = compile_program(declared)
        report = searched(declared, program, batch, effort=0.01, seed=0)
    assert drawn == [64]
    assert (report.method, report.evaluations) == ("draws", 2 * 64)


def test_equal_costs_give_equal_searches(monkeypatch):
    monkeypatch.setattr(portfolio, "_cost", lambda *_: 0.01)
    one, again = (_search(0.5) for _ in range(2))
    assert one.evaluations == again.evaluations
    assert (one.ratio, one.method) == (again.ratio, again.method)
    np.testing.assert_array_equal(one.verdict.witness["x"], again.verdict.witness["x"])


def test_short_searches_compile_nothing_of_their_own():
    with jax.enable_x64(True):
        batch = norms.draw(0, norms.count)
        assert "ascent" in methods_of(norms, batch)
        assert "ascent" not in methods_of(norms, batch, effort=0.05)


def test_draws_are_as_many_as_their_time_allows():
    """A sampler that takes as long as 40 moves or more: later batches of draws are left out."""

    def slow(rng, count):
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass
        return normal(rng, count)

    @inequality(sample=slow, search_over="x", controls=HALF)
    def again(x, *, factor=1.0):
        r"""$$\|x\|_2 \le \|x\|_1$$"""
        return jnp.linalg.norm(x), factor * jnp.sum(jnp.abs(x))

    with jax.enable_x64(True):
        batch = again.draw(0, again.count)
        search = Search(again, compile_program(again), batch)
        started = time.process_time()
        search.run(("moves", "draws", "evolution"), 64 * 60)
    assert search.best.evaluations <= 64 * 62
    assert time.process_time() - started < 3


def test_what_a_draw_took_counts_what_it_shared():
    @shared
    def start(rng):
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
        return rng.normal(size=3)

    def first(rng, count):
        return {"x": np.tile(start(rng), (count, 1))}

    def second(rng, count):
        return {"y": np.tile(start(rng), (count, 1))}

    draw_anew(first, 77, 4)
    # The second finds the computation done, and would pay for it at another seed.
    assert seconds_to_draw(second, 77, 4) > 0.09
    assert seconds_to_draw(second, 77, 4) > 0.09


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("module", "name", "false"),
    [
        ("false_learning", "entropy_is_lipschitz", True),
        ("false_learning", "heavy_ball", True),
        ("false_probability", "wald_interval", True),
        ("true_probability", "pinsker", False),
    ],
)
def test_the_default_effort_finds_false_statements_and_leaves_a_theorem(module, name, false):
    """Three statements that textbooks refute, at each of three seeds, and Pinsker's theorem."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        claim = getattr(importlib.import_module(f"benchmarks.statements.{module}"), name)
        for seed in range(3):
            report = challenge(claim, seed=seed)
            assert report.violated == false
