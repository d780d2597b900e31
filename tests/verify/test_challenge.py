"""Several methods behind one call: equal budgets agree, each finds its own, the best stays."""

import time
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.domains.vectors import Ball, Box
from attlas.claims.sides import Doubling
from attlas.claims.statement import inequality, limit
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.verify import portfolio as module
from attlas.verify.challenge import METHODS, challenge
from attlas.verify.check import check

HALF = [Control("half", factor=0.5)]


@inequality(
    domains=[Ball("x", 1.0, shape="n")], sizes={"n": 3}, controls=[Control("third", factor=0.3)]
)
def kinked(x, *, factor=1.0):
    r"""$$\|x\|_1 - 3 \max_i |x_i - 1/2| \le 3/2$$"""
    return jnp.sum(jnp.abs(x)) - 3 * jnp.max(jnp.abs(x - 0.5)), factor * 1.5


@limit(
    scales=Doubling("n", 16),
    sample=lambda rng, count: {"x": rng.uniform(size=count)},
    controls=[Control("a plateau", plateau=1.0)],
)
def but_near_one(x, n, *, plateau=0.0):
    r"""$$x_n \to 0$$ but for x in a thousandth of the unit interval."""
    return 1 / n + jnp.where(x > 0.999, 0.5, 0.0) + plateau, 0.0 * n


def disturb_clocks(monkeypatch):
    """Let each reading of a clock come about a second after the one before."""
    readings = np.random.default_rng(0).exponential(size=100_000).cumsum()
    for clock in ("process_time", "perf_counter"):
        monkeypatch.setattr(time, clock, iter(readings.tolist()).__next__)


@pytest.mark.parametrize("method", ["moves", "draws", "evolution", "extremes", "auto"])
def test_a_limit_at_doubled_scales_is_refused_or_left_open_by_any_clock(method, monkeypatch):
    one = challenge(but_near_one, method=method, evaluations=6400, seed=3)
    disturb_clocks(monkeypatch)
    again = challenge(but_near_one, method=method, evaluations=6400, seed=3)
    assert one.violated or method == "extremes"
    assert (one.verdict.outcome, one.verdict.reason) == (
        again.verdict.outcome,
        again.verdict.reason,
    )
    assert one.evaluations == again.evaluations


def test_a_check_without_a_search_gives_equal_verdicts_by_any_clock(monkeypatch):
    scales = 10.0 ** np.arange(1, 6)

    @limit(
        scales=scales,
        sample=lambda rng, count: {"x": rng.uniform(-1, 1, size=count)},
        controls=[Control("a plateau", plateau=1.0)],
    )
    def slow_near_zero(x, *, plateau=0.0):
        r"""$$e^{-x^2 n} + n^{-1/2} \to 0$$"""
        return jnp.exp(-(x**2) * scales) + scales**-0.5 + plateau, 0.0 * scales

    one = check(slow_near_zero, challenge=0).verdict
    disturb_clocks(monkeypatch)
    again = check(slow_near_zero, challenge=0).verdict
    assert one.outcome is again.outcome is Outcome.INCONCLUSIVE
    assert one.reason == again.reason


@pytest.mark.parametrize("method", [name for name in METHODS if name != "sizes"])
def test_equal_seeds_and_evaluations_give_equal_results_by_any_clock(method, monkeypatch):
    one = challenge(kinked, method=method, evaluations=2560, seed=3)
    disturb_clocks(monkeypatch)
    again = challenge(kinked, method=method, evaluations=2560, seed=3)
    assert one.evaluations == again.evaluations <= 2560 + 64
    assert one.ratio == again.ratio
    np.testing.assert_array_equal(one.verdict.witness["x"], again.verdict.witness["x"])
    assert np.linalg.norm(one.verdict.witness["x"]) <= 1


def test_a_search_with_less_time_can_be_made_again_by_its_evaluations():
    first = challenge(kinked, seconds=0.0)
    assert first.evaluations == 128
    assert challenge(kinked, evaluations=first.evaluations).ratio == first.ratio


@pytest.mark.thorough
def test_covariance_adapts_to_a_narrow_valley_with_a_kink():
    # The best corner lies along a valley of condition 100 that is turned against the axes.
    @inequality(domains=[Box("x", -3.0, 3.0, shape=2)], controls=HALF)
    def valley(x, *, factor=1.0):
        r"""$$e^{-30 |x_1 + x_2 - 1| - 0.3 |x_1 - x_2 - 1|} \le 1$$"""
        far = 30 * jnp.abs(x[0] + x[1] - 1) + 0.3 * jnp.abs(x[0] - x[1] - 1)
        return jnp.exp(-far), factor

    found = challenge(valley, method="covariance", evaluations=64 * 400)
    ascent = challenge(valley, method="ascent", evaluations=64 * 400)
    assert found.ratio > 0.99
    assert found.ratio > ascent.ratio, (found.ratio, ascent.ratio)


def test_extremes_find_a_tie_that_has_probability_zero():
    def pairs(rng, count):
        return {"x": rng.normal(size=(count, 2))}

    @inequality(sample=pairs, search_over="x", controls=HALF)
    def apart(x, *, factor=1.0):
        r"""$$1_{x_1 = 0} \le 0.9$$"""
        return jnp.where(x[0] == 0, 1.0, 0.1), factor * jnp.asarray(0.9)

    assert challenge(apart, method="extremes", evaluations=640).violated
    assert not challenge(apart, method="moves", evaluations=640).violated


@pytest.mark.thorough
def test_growth_finds_what_fails_for_large_sizes_alone():
    @inequality(domains=[Box("x", 0.0, 1.0, shape="n")], sizes={"n": 4}, controls=HALF)
    def forgotten_size(x, *, factor=1.0):
        r"""$$\sum_i x_i \le 10$$"""
        return jnp.sum(x), factor * 10.0

    assert not challenge(forgotten_size, method="extremes", evaluations=6400).violated
    found = challenge(forgotten_size, method="sizes", evaluations=6400)
    assert found.violated
    assert found.verdict.witness["x"].shape == (16,)
    assert found.verdict.statistics["ratio at n=8"] <= 0.8
    # auto comes to it by itself.
    assert challenge(forgotten_size, evaluations=64_000).method == "sizes"


def test_an_interrupted_challenge_keeps_its_best(monkeypatch):
    kept = []
    attack, calls = module.attack, []

    def interrupted(*arguments, **options):
        calls.append(options["method"])
        if len(calls) > 1:
            raise KeyboardInterrupt
        return attack(*arguments, **options)

    monkeypatch.setattr(module, "attack", interrupted)
    found = challenge(kinked, method="moves", evaluations=64 * 2000, keep=kept.append)
    assert found.stopped == "interrupted"
    assert [one.ratio for one in kept] == [found.ratio]
    monkeypatch.setattr(module, "attack", lambda *_, **__: calls[1 / 0])
    with pytest.raises(ZeroDivisionError):
        challenge(kinked)


def test_what_cannot_be_searched_is_one_line():
    with pytest.raises(UserError, match="did you mean moves"):
        challenge(kinked, method="mover")
    with pytest.raises(UserError, match="no sizes"):
        challenge(replace(kinked, sizes={}), method="sizes")
    with pytest.raises(UserError, match="no gradient to follow"):
        challenge(replace(kinked, search_over=()), method="ascent")
