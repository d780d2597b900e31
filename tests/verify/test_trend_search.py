"""Limits and rates that fail for few instances are found by a search; slow ones are not refused."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.kinds.kind import Kind
from attlas.claims.sides import Doubling
from attlas.claims.statement import computed, limit, rate
from attlas.verify.challenge import challenge, replay
from attlas.verify.check import check
from attlas.verify.space import Draws, largest_scale

N = np.array([10.0, 100.0, 1e3, 1e4, 1e5])
PLATEAU, POWER = [Control("a plateau", plateau=1.0)], [Control("a larger power", power=0.7)]


def draws(rng, count):
    return {"x": rng.uniform(size=count), "v": rng.normal(size=(count, 3))}


def cosine(v):
    return jnp.sum(v) / jnp.sqrt(len(v)) / jnp.linalg.norm(v)


@limit(scales=N, sample=draws, controls=PLATEAU)
def but_in_an_interval(x, *, plateau=0.0):
    r"""$$x_n \to 0$$ but of an x in 0.000002 of the unit interval."""
    away = abs(x - 0.3)
    return (1 + away) / N ** jnp.where(away < 1e-6, 0.0, 0.5 + away) + plateau, 0 * N


@limit(scales=N, sample=draws, controls=PLATEAU)
def but_in_a_direction(v, *, plateau=0.0):
    r"""$$v_n \to 0$$ but in a cone around (1, 1, 1), which has 0.000025 of all directions."""
    return 1 / N + 1e3 * jnp.maximum(cosine(v) - 0.99995, 0.0) + plateau, 0 * N


@rate(scales=N, sample=draws, controls=POWER)
def rate_but_in_an_interval(x, *, power=0.0):
    r"""$$y_n = O(1 / n)$$ but of an x in 0.000002 of the unit interval."""
    away = abs(x - 0.3)
    return N ** (jnp.where(away < 1e-6, 0.5, -away) + power - 1), 1 / N


@rate(scales=N, sample=draws, controls=POWER)
def rate_but_in_a_direction(v, *, power=0.0):
    r"""$$y_n = O(1 / n)$$ but in a cone that has 0.00005 of all directions."""
    return N ** (5000 * jnp.maximum(cosine(v) - 0.9999, 0.0) + power - 1), 1 / N


@rate(
    scales=Doubling("t", 4),
    sample=lambda rng, count: {"v": rng.normal(size=(count, 3))},
    controls=[Control("faster", power=2)],
)
def doubled_but_in_a_direction(v, t, *, power=1):
    r"""$$y_t = O(1 / t)$$ but in a cone that has 1e-7 of all directions."""
    share = abs(v[0]) / jnp.linalg.norm(v)
    return (1.0 * t) ** -jnp.where(share > 0.9999999, 0.5, 2.0 - share), (1.0 * t) ** -power


FALSE = [
    but_in_an_interval,
    but_in_a_direction,
    rate_but_in_an_interval,
    rate_but_in_a_direction,
    doubled_but_in_a_direction,
]


@pytest.mark.parametrize("claim", FALSE, ids=lambda claim: claim.name)
def test_what_fails_for_few_instances_is_found_by_a_search_and_not_by_draws(claim):
    assert check(claim, challenge=0).verdict.outcome == "SUPPORTED"
    report = challenge(claim, evaluations=40_000)
    assert report.violated
    assert replay(claim, dict(report.verdict.witness)).outcome == "VIOLATED"
    drawn = challenge(claim, method="draws", evaluations=report.evaluations)
    assert not drawn.violated


@pytest.mark.parametrize("method", ["ascent", "moves", "evolution"])
def test_arrays_that_are_searched_over_are_moved(method):
    @limit(
        scales=N,
        sample=lambda rng, count: {"v": rng.normal(size=(count, 6))},
        search_over="v",
        controls=PLATEAU,
    )
    def smooth(v, *, plateau=0.0):
        r"""$$v_n \to 0$$ but in a cone."""
        return 1 / N + jnp.exp(-100 * (1 - cosine(v))) ** 4 + plateau, 0 * N

    report = challenge(smooth, method=method, evaluations=12_800)
    assert report.violated
    assert report.method == method
    assert float(cosine(report.verdict.witness["v"])) > 0.9


TRUE = {
    "exponential": lambda x: jnp.exp(-x * N) + 1 / N,
    "rational": lambda x: 1 / (1 + x * N) + 1 / N,
    "power of x": lambda x: N**-x + 1 / N,
    "slow power": lambda x: N ** -jnp.minimum(1000 * abs(x - 0.3), 1.0),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_limit_that_is_slow_somewhere_is_not_refused_by_a_search(name):
    @limit(scales=N, sample=draws, controls=PLATEAU)
    def slow(x, *, plateau=0.0):
        r"""$$x_n \to 0$$ for every x but one that no number of the sampler reaches."""
        return TRUE[name](x) + plateau, 0 * N

    report = challenge(slow, evaluations=12_800)
    assert not report.violated
    assert report.verdict.index is None


@pytest.mark.parametrize("bound", [lambda x: jnp.minimum(N, 1 / x), lambda x: 1 / (x + 1 / N)])
def test_a_rate_whose_constant_is_large_somewhere_is_not_refused_by_a_search(bound):
    @rate(scales=N, sample=draws, controls=POWER)
    def large(x, *, power=0.0):
        r"""$$y_n = O(1 / n)$$ with a constant of 1 / x."""
        return bound(x) * N ** (power - 1), 1 / N

    assert not challenge(large, evaluations=12_800).violated


def test_a_check_searches_at_its_first_scales_and_shows_the_instance():
    report = check(doubled_but_in_a_direction, challenge=1)
    assert report.challenge.violated
    assert set(report.challenge.verdict.witness) == {"v"}
    assert "the challenge found a counterexample" in report.claim_defects


def test_noise_along_the_scales_is_not_moved():
    @limit(
        scales=np.array([8.0, 64.0, 512.0, 4096.0]),
        sample=lambda rng, count: {
            "g": rng.normal(size=(count, 4096)),
            "x": rng.uniform(size=count),
        },
        controls=PLATEAU,
    )
    def mean(g, x, *, plateau=0.0):
        r"""The mean of independent numbers vanishes almost surely."""
        n = [8, 64, 512, 4096]
        return jnp.stack([abs(jnp.mean(g[:k])) + x / k for k in n]) + plateau, jnp.zeros(4)

    batch = mean.draw(0, 8)
    assert largest_scale(mean, batch) == 4096
    assert [block.values.shape for block in Draws(mean, batch, 0).blocks.values()] == [(8,)]


@computed(
    Kind.RATE,
    scales=Doubling("t", 4),
    controls=[Control("faster", power=2)],
)
def computed_but_in_a_direction(rng, count, *, t, power=1):
    r"""$$y_t = O(1 / t)$$ but in a cone, beside noise along t."""
    v, noise = rng.normal(size=(count, 3)), rng.uniform(size=(count, int(t[-1])))
    share = (abs(v[:, 0]) / np.linalg.norm(v, axis=1))[:, None]
    times = t * 1.0
    left = times ** -np.where(share > 0.9999999, 0.5, 2.0 - share)
    return left * (1 + 1e-3 * noise[:, t - 1]), np.broadcast_to(times**-power, left.shape)


def test_a_computed_rate_is_searched_with_its_noise_as_it_was_drawn():
    claim = computed_but_in_a_direction
    blocks = Draws(claim, claim.draw(0, claim.count), 0).blocks
    assert [block.values.shape for block in blocks.values()] == [(claim.count, 3)]
    assert check(claim, challenge=0).verdict.outcome == "SUPPORTED"
    report = challenge(claim, evaluations=12_800)
    assert report.violated
    assert not challenge(claim, method="draws", evaluations=report.evaluations).violated


SLOW = {
    "fourth power": lambda x, n: jnp.exp(-(x**4) * n) + n**-0.5,
    "square": lambda x, n: jnp.exp(-(x**2) * n) + n**-0.5,
}


@pytest.mark.parametrize("scales", [10.0 ** np.arange(1, 5), 4.0 ** np.arange(2, 9)], ids=len)
@pytest.mark.parametrize("name", SLOW)
def test_a_limit_that_few_drawn_instances_contradict_is_not_refused(name, scales):
    @limit(scales=scales, sample=around_zero, controls=PLATEAU)
    def stated(x, *, plateau=0.0):
        r"""$$d_n \to 0$$"""
        return SLOW[name](x, scales) + plateau, 0 * scales

    assert check(stated, challenge=0).verdict.outcome == "INCONCLUSIVE"


@pytest.mark.parametrize("bound", [0.9, 0.6])
def test_a_limit_that_fails_on_few_drawn_instances_is_refused_without_a_search(bound):
    @limit(scales=N, sample=around_zero, controls=PLATEAU)
    def stated(x, *, plateau=0.0):
        r"""$$d_n \to 0$$"""
        return 1 / N + jnp.where(x > bound, 0.5, 0.0) + plateau, 0 * N

    verdict = check(stated, challenge=0).verdict
    assert verdict.outcome == "VIOLATED"
    assert float(verdict.witness["x"]) > bound


def around_zero(rng, count):
    """Numbers around zero, near which the limits above are slow."""
    return {"x": rng.uniform(-1, 1, size=count)}
