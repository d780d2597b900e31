"""Stored witnesses: replayed first, without compiling, and left out where they do not fit."""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control
from attlas.claims.statement import inequality
from attlas.claims.verdict import Outcome
from attlas.verify.challenge import replay
from attlas.verify.check import check


def near(rng, count):
    """Points that leave out where the statement fails."""
    return {"x": rng.uniform(0, 0.9, size=(count, 2))}


@inequality(sample=near, controls=[Control("tenth", factor=0.1)], not_attacked="for the test")
def below(x, *, factor=1.0):
    r"""$$x_1 x_2 \le 0.9$$"""
    return x[0] * x[1], factor * 0.9


def test_a_stored_witness_that_violates_decides():
    report = check(below, stored={"x": np.array([1.0, 1.0])}, challenge=0)
    assert report.verdict.outcome is Outcome.VIOLATED
    assert report.verdict.reason.startswith("stored witness: ")
    assert report.verdict.tried == 64
    np.testing.assert_array_equal(report.verdict.witness["x"], [1.0, 1.0])
    assert report.defects


def test_one_that_holds_gives_its_tightness_and_one_that_does_not_fit_nothing():
    plain = check(below, challenge=0)
    tight = {"x": np.array([1.0, 0.899])}
    report = check(below, stored=tight, challenge=0)
    assert report.verdict.outcome is Outcome.SUPPORTED
    assert report.verdict.tightness == replay(below, tight).tightness > plain.verdict.tightness
    for wrong in ({"y": np.zeros(2)}, {"x": np.zeros(())}):
        assert check(below, stored=wrong, challenge=0).verdict.tightness == plain.verdict.tightness
    # Other sizes than those of the check are evaluated on a program of their own.
    longer = {"x": np.array([1.0, 1.0, 0.0])}
    assert check(below, stored=longer, challenge=0).verdict.outcome is Outcome.VIOLATED


def test_a_weaker_one_changes_nothing():
    plain = check(below, challenge=0)
    report = check(below, stored={"x": np.array([0.1, 0.1])}, challenge=0)
    assert report.verdict.reason == plain.verdict.reason
    assert bool(jnp.isfinite(report.verdict.slack))
