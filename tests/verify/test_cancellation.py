"""The size of terms that cancel is measured where a rate or limit stays open, and only there."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control
from attlas.claims.statement import inequality, rate
from attlas.verify.cancellation import with_cancelled_terms
from attlas.verify.evidence import compile_program

T = 2.0 ** np.arange(4, 12)


def draw(rng, count):
    return {"x": rng.uniform(1, 2, size=count), "k": rng.integers(1, 5, size=count)}


@rate(scales=T, sample=draw, controls=[Control("of order 1/t^2", power=2)])
def gap(x, k, *, power=1, base=1000.0):
    r"""$$1000 (\sin^2 x + \cos^2 x) + e^{-t} - 1000 = O(1/t)$$"""
    terms = base * jnp.sin(x) ** 2 + base * jnp.cos(x) ** 2
    return terms - base + jnp.exp(-T * jnp.asarray(k, float)) / power, T ** -float(power)


def evaluated(claim):
    with jax.enable_x64(True):
        program, batch = compile_program(claim), claim.draw(0, 64)
        before = program(batch)
        return before, with_cancelled_terms(claim, program, batch, before, alpha=1e-3, seed=0)


def test_the_terms_that_cancel_are_as_large_as_they_are():
    before, after = evaluated(gap)
    size = np.asarray(after[1][0].magnitude)
    assert np.all(size >= np.asarray(before[1][0].magnitude))
    # Both terms are about 500, and so is what one rounding moves them by, over eps.
    assert 100 < np.median(size[:, -1]) < 4000
    for name in ("left", "right", "error"):
        np.testing.assert_array_equal(getattr(after[1][0], name), getattr(before[1][0], name))


def test_decided_sides_and_other_kinds_are_left_as_they_are():
    @rate(scales=T, sample=draw, controls=[Control("of order 1/t^2", power=2)])
    def plain(x, *, power=1):
        r"""$$x / t = O(1/t)$$"""
        return x / T, T ** -float(power)

    @inequality(sample=draw, controls=[Control("half", factor=0.5)])
    def square(x, *, factor=1.0):
        r"""$$x \le x^2$$"""
        return x, factor * x**2

    for claim in (plain, square):
        before, after = evaluated(claim)
        assert after is before
