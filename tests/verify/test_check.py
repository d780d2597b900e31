"""The engine on claims whose truth is known: right, wrong, challenged, replayed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.claim import (
    Assumption,
    Claim,
    Control,
    Expectation,
    Kind,
    Provenance,
    Sides,
    Status,
    each,
)
from attlas.core.errors import UserError
from attlas.core.verdict import Outcome
from attlas.verify.challenge import challenge, replay
from attlas.verify.check import check
from attlas.verify.registry import find_claims


def draw(key):
    """Two Gaussian vectors."""
    x, y = jax.random.normal(key, (2, 5))
    return {"x": x, "y": y}


def triangle(i):
    """The triangle inequality."""
    norm = jnp.linalg.norm
    return Sides(norm(i["x"] + i["y"]), norm(i["x"]) + norm(i["y"]))


def scaled(factor):
    """The triangle inequality with its right side times a factor."""
    return lambda i: Sides(triangle(i).lhs, factor * triangle(i).rhs)


def claim(**changes):
    """The triangle inequality as a user's claim."""
    settings = {
        "name": "mine/triangle",
        "paper": "mine",
        "locator": "Fact 1",
        "statement": r"\|x+y\| \le \|x\|+\|y\|",
        "kind": Kind.INEQUALITY,
        "status": Status.NEW,
        "provenance": Provenance.DERIVED,
        "instances": each(draw),
        "sides": triangle,
        "free": ("x", "y"),
        "control": (Control("right side halved", sides=scaled(0.5)),),
    }
    return Claim(**(settings | changes))


def test_a_true_claim_is_supported_and_its_controls_violated():
    report = check(claim(), challenge_rounds=1)
    assert report.defects == ()
    assert report.verdict.outcome is Outcome.SUPPORTED
    assert [c.verdict.outcome for c in report.controls] == [Outcome.VIOLATED] * 2
    assert report.challenge is not None
    assert 0.999 < report.challenge.ratio <= 1 + 1e-12


def test_a_subtly_false_claim_is_found_by_the_challenge_alone():
    """Random vectors are never nearly parallel: only the ascent reaches the last 2 percent."""
    false = claim(sides=scaled(0.98))
    assert check(false).verdict.outcome is Outcome.SUPPORTED
    found = challenge(false)
    assert found.violated
    assert found.ratio > 1
    assert "counterexample" in check(false, challenge_rounds=1).defects[0]
    again = replay(false, dict(found.verdict.witness))
    assert again.outcome is Outcome.VIOLATED
    np.testing.assert_allclose(again.tightness, found.ratio, rtol=1e-14)


def test_the_challenge_is_not_drawn_to_where_both_sides_vanish():
    """Small sides against a large scale have a small excess, but say nothing of the ratio."""

    def tight_far_away(i):
        size = jnp.sum(i["x"] ** 2)
        return Sides(size**2, size**2 + size, scale=jnp.asarray(1e3))

    drawn = check(claim(sides=tight_far_away)).verdict.tightness
    found = challenge(claim(sides=tight_far_away, free=("x",)))
    assert not found.violated
    assert 1 - found.ratio < (1 - drawn) / 2


def test_a_true_control_is_a_defect():
    report = check(claim(control=Control("doubled", sides=scaled(2.0))))
    assert any("control 'doubled' is SUPPORTED" in text for text in report.defects)


def test_control_instances_share_the_program():
    def outside(key, count):
        return {"x": jnp.ones((count, 5)), "y": -jnp.ones((count, 5))}

    positive = Assumption("x'y >= 0", lambda i: jnp.dot(i["x"], i["y"]) >= 0)

    def longest(i):
        norm = jnp.linalg.norm
        return Sides(jnp.maximum(norm(i["x"]), norm(i["y"])), norm(i["x"] + i["y"]))

    report = check(
        claim(
            sides=longest,
            assumptions=(positive,),
            control=(Control("opposite vectors", instances=outside),),
            count=128,
        )
    )
    assert report.defects == ()
    assert 30 <= report.verdict.applicable < 128


def test_an_erratum_is_violated_on_its_witness_and_its_correction_supported():
    def witness():
        return {"x": np.ones(5), "y": np.ones(5)}

    report = check(
        claim(
            sides=scaled(0.5),
            witness=witness,
            free=(),
            expect=Expectation(Outcome.VIOLATED, "the factor was lost"),
            control=(Control("with the factor", sides=triangle, expect=Outcome.SUPPORTED),),
        )
    )
    assert report.verdict.outcome is Outcome.VIOLATED
    assert report.defects == ()


def test_bad_names_and_unchallengeable_claims_are_refused_in_one_line():
    with pytest.raises(UserError, match="did you mean"):
        find_claims(["lemma-1x2"])
    with pytest.raises(UserError, match="no free arrays"):
        challenge(claim(free=()))
