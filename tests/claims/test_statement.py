"""Decorators: what each kind returns and how it is decided."""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Kind, Outcome, Sides, Source, Status
from attlas.claims.statement import (
    computed,
    erratum,
    expectation,
    limit,
    probability,
)
from attlas.verify.check import check

HALF = [Control("half", factor=0.5)]


def vectors(rng, count):
    """Gaussian vectors, their squares and an index."""
    x = rng.normal(size=(count, 3))
    return {"x": x, "square": np.sum(x**2, axis=1), "k": np.arange(count)}


def norms(x, *, factor=1.0):
    r"""$$\|x\|_\infty
    \le \|x\|_2$$

    Equal for one entry, $x = e_1$,
    and its multiples.
    """
    return jnp.max(jnp.abs(x)), factor * jnp.linalg.norm(x)


def test_each_kind_returns_what_it_says():
    def tends(square, *, offset=0.0):
        r"""$$1/n \to 0$$"""
        n = jnp.asarray([10.0, 100.0, 1000.0, 10000.0]) + 0 * square
        return 1 / n + offset, jnp.zeros(4)

    scales = (10.0, 100.0, 1000.0, 10000.0)
    reached = limit(sample=vectors, scales=scales, controls=[Control("plateau", offset=0.2)])(tends)
    assert reached.kind is Kind.LIMIT
    assert check(reached, challenge=0).defects == ()

    def often(x, *, above=-9.0):
        r"""$$P(x_1 > -9) \ge .8$$"""
        return x[0] > above

    drawn = {"sample": vectors, "independent": "a vector"}
    event = probability(level=0.8, **drawn, controls=[Control("rare", above=2.0)])(often)
    assert check(event, challenge=0).defects == ()

    def mean(square, *, shift=0.0):
        r"""$$E \min(\|x\|^2, 9) \le 9$$"""
        return jnp.minimum(square, 9.0) + shift, jnp.asarray(9.0)

    bounded = expectation(range=9.0, **drawn, controls=[Control("more", shift=9.0)])(mean)
    assert check(bounded, challenge=0).defects == ()


def test_an_erratum_is_violated_on_its_witness_and_its_correction_holds():
    def doubled(x, *, factor=0.5):
        r"""$$\|x\| \le \tfrac12 \|x\|$$"""
        return jnp.linalg.norm(x), factor * jnp.linalg.norm(x)

    claim = erratum(
        "Fact 2",
        Source.RECALLED,
        reason="the factor is 1",
        corrected=Control("1 in place of a half", factor=1.0),
        witness=lambda: {"x": np.ones(3)},
    )(doubled)
    assert claim.status is Status.SUSPECTED_ERRATUM
    assert claim.expect.outcome is Outcome.VIOLATED
    assert check(claim, challenge=0).defects == ()


def test_a_computed_claim_draws_once_and_each_control_computes_again():
    seen = []

    def sums(rng, count, *, missing=0.0):
        r"""$$\sum_i x_i = x^T 1$$"""
        x = rng.normal(size=(count, 4))
        seen.append(float(x[0, 0]))
        return Sides(x.sum(axis=1) - missing, x @ np.ones(4), magnitude=np.abs(x).sum(axis=1))

    claim = computed(Kind.IDENTITY, controls=[Control("one less", missing=1.0)])(sums)
    assert check(claim, challenge=0).defects == ()
    assert len(set(seen[-2:])) == 1
