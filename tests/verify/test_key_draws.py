"""Samplers that draw by a JAX key: their numbers are opened, moved and found again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.sampling import draw_anew
from attlas.claims.statement import inequality
from attlas.verify.challenge import challenge, replay
from attlas.verify.key_draws import KeyDraws, opened
from attlas.verify.searchable import is_searchable, why_not_attacked, why_not_moved

HALF = [Control("half", factor=0.5)]
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4])
random = jax.random
LAWS = {
    "normal": lambda key, count: random.normal(key, (count, 3)),
    "narrow": lambda key, count: random.normal(key, (count, 3), dtype="float32"),
    "uniform": lambda key, count: random.uniform(key, (count,), minval=-2.0, maxval=3.0),
    "exponential": lambda key, count: random.exponential(key, (count, 2)),
    "truncated": lambda key, count: random.truncated_normal(key, -1.0, 1.0, (count, 2)),
    "integers": lambda key, count: random.randint(key, (count, 4), -3, 9),
    "choice": lambda key, count: random.choice(key, jnp.arange(5.0), (count, 3)),
    "weighted": lambda key, count: random.choice(key, 4, (count, 3), p=jnp.asarray(WEIGHTS)),
    "bernoulli": lambda key, count: random.bernoulli(key, 0.3, (count, 4)),
    "gamma": lambda key, count: random.gamma(key, 2.5, (count, 2)),
    "beta": lambda key, count: random.beta(key, 2.0, 0.7, (count, 2)),
    "dirichlet": lambda key, count: random.dirichlet(key, jnp.ones(4), (count,)),
    "permutation": lambda key, count: jax.vmap(lambda k: random.permutation(k, 6))(
        random.split(key, count)
    ),
    "orthogonal": lambda key, count: random.orthogonal(key, 3, (count,)),
    "in turn": lambda key, count: jax.vmap(lambda k: random.normal(k, (2, 2)))(
        random.split(key, count)
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_the_numbers_behind_a_law_give_its_instances_again_and_others_when_moved(law):
    def sample(key, count):
        return {"x": LAWS[law](key, count)}

    with jax.enable_x64(True):
        first = np.asarray(draw_anew(sample, 5, 9)["x"])
        draws = KeyDraws(sample, 5, 9)
        again = np.asarray(draws.instances(draws.numbers)["x"])
        assert again.dtype == first.dtype
        np.testing.assert_allclose(again, first, rtol=1e-6 if law == "narrow" else 1e-9)
        rng = np.random.default_rng(0)
        moved = {
            place: rng.normal(size=x.shape) if draws.law(place) == "normal" else rng.random(x.shape)
            for place, x in draws.numbers.items()
        }
        second = np.asarray(draws.instances(moved)["x"])
    assert second.shape == first.shape
    assert (second != first).any()
    if law in ("uniform", "truncated", "integers", "choice", "weighted", "bernoulli", "beta"):
        low, high = {"uniform": (-2, 3), "truncated": (-1, 1), "integers": (-3, 8),
                     "choice": (0, 4), "weighted": (0, 3)}.get(law, (0, 1))  # fmt: skip
        assert low <= second.min() <= second.max() <= high
    elif law == "permutation":
        np.testing.assert_array_equal(np.sort(second, axis=1), np.tile(np.arange(6), (9, 1)))
    elif law == "dirichlet":
        np.testing.assert_allclose(second.sum(axis=1), 1, rtol=1e-12)


def test_the_ends_of_a_law_are_reached():
    def sample(key, count):
        return {"n": random.randint(key, (count, 2), 0, 5)}

    draws = KeyDraws(sample, 0, 3)
    assert draws.law(0) == "steps"
    for number, end in ((1e-12, 0), (1 - 1e-12, 4)):
        numbers = draws.instances({0: np.full((3, 2), number)})["n"]
        np.testing.assert_array_equal(numbers, end)


def gaussian(key, count):
    first, second = random.split(key)
    return {"x": random.normal(first, (count, 10)), "u": random.uniform(second, (count, 5))}


@inequality(sample=gaussian, controls=HALF)
def bounded_sum(x, u, *, factor=1.0):
    r"""$$\sum_i x_i / \sqrt{10} + \sum_i u_i \le 9.9$$"""
    return jnp.sum(x) / jnp.sqrt(10.0) + jnp.sum(u), factor * 9.9


def orders(key, count):
    permuted = jax.vmap(lambda k: random.permutation(k, 10))(random.split(key, count))
    return {"p": permuted.astype(float)}


@inequality(sample=orders, controls=HALF)
def disorder(p, *, factor=1.0):
    r"""$$\sum_i i\,p_i \le 284$$, where the sorted order alone has 285."""
    return jnp.sum(p * jnp.arange(10.0)), factor * 284.5


def graphs(key, count):
    return {"g": random.bernoulli(key, 0.5, (count, 6, 6)).astype(float)}


@inequality(sample=graphs, controls=HALF)
def edges(g, *, factor=1.0):
    r"""$$\sum_{i<j} g_{ij} \le 14$$, where the complete graph alone has 15."""
    return jnp.sum(jnp.triu(g, 1)), factor * 14.5


@pytest.mark.parametrize("claim", [bounded_sum, disorder, edges], ids=lambda claim: claim.name)
def test_what_draws_never_meet_is_found_and_replays(claim):
    assert is_searchable(claim)
    assert why_not_attacked(claim) == why_not_moved(claim) == ""
    report = challenge(claim, evaluations=64 * 200)
    assert report.violated
    assert replay(claim, report.verdict.witness).outcome == "VIOLATED"
    again = challenge(claim, evaluations=64 * 200)
    for name, value in report.verdict.witness.items():
        np.testing.assert_array_equal(again.verdict.witness[name], value)


def _on_the_host(key, count):
    return {"x": np.asarray(random.normal(key, (count, 3)))}


def _by_a_branch(key, count):
    x = random.normal(key, (count, 3))
    return {"x": x if x[0, 0] > 0 else 2 * x}


def _in_a_loop(key, count):
    def step(key, _):
        key, use = random.split(key)
        return key, random.normal(use, (3,))

    return {"x": jax.lax.scan(step, key, None, length=count)[1]}


@pytest.mark.parametrize("sample", [_on_the_host, _by_a_branch, _in_a_loop])
def test_a_sampler_that_cannot_be_opened_is_searched_by_fresh_draws_and_says_so(sample):
    @inequality(sample=sample, controls=HALF)
    def norms(x, *, factor=1.0):
        r"""$$\max_i |x_i| \le \|x\|_1$$"""
        return jnp.max(jnp.abs(x)), factor * jnp.sum(jnp.abs(x))

    assert (opened(sample, 64) is None) == (sample is not _in_a_loop)
    report = challenge(norms, evaluations=64 * 20)
    assert (report.violated, report.method) == (False, "draws")
    assert "draw from rng, or list arrays in search_over" in why_not_moved(norms)
