"""The engine on claims whose truth is known: right, wrong, challenged, replayed."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Claim, Control, Expectation, Sides, assume
from attlas.claims.statement import inequality
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.verify import check as checking
from attlas.verify.challenge import challenge, replay
from attlas.verify.check import check
from attlas.verify.registry import find_claims


def pairs(key, count):
    """Two Gaussian vectors."""
    x, y = jax.random.normal(key, (2, count, 5))
    return {"x": x, "y": y}


@inequality(
    "Fact 1", sample=pairs, search_over=("x", "y"), controls=[Control("halved", factor=0.5)]
)
def triangle(x, y, *, factor=1.0):
    r"""$$\|x+y\| \le \|x\|+\|y\|$$"""
    norm = jnp.linalg.norm
    return norm(x + y), factor * (norm(x) + norm(y))


def claim(**changes) -> Claim:
    """The triangle inequality with changed fields."""
    return replace(triangle, **changes)


def scaled(own, control=0.5):
    """The triangle inequality with its right side times a factor, and a control."""

    def sides(x, y, *, factor=own):
        return triangle(x, y, factor=factor)

    return claim(function=sides, controls=(Control("another factor", factor=control),))


def test_a_true_claim_is_supported_and_its_controls_violated():
    report = check(claim(), challenge=1)
    assert report.defects == ()
    assert report.verdict.outcome is Outcome.SUPPORTED
    assert [c.verdict.outcome for c in report.controls] == [Outcome.VIOLATED]
    assert report.challenge is not None
    assert 0.999 < report.challenge.ratio <= 1 + 1e-12


def test_a_subtly_false_claim_is_found_by_the_challenge_alone():
    """Random vectors are never nearly parallel: only the ascent reaches the last 2 percent."""
    false = scaled(0.98)
    assert check(false, challenge=0).verdict.outcome is Outcome.SUPPORTED
    found = challenge(false)
    assert found.violated
    assert found.ratio > 1
    assert "counterexample" in check(false, challenge=1).defects[0]
    again = replay(false, dict(found.verdict.witness))
    assert again.outcome is Outcome.VIOLATED
    np.testing.assert_allclose(again.tightness, found.ratio, rtol=1e-14)


@pytest.mark.thorough
def test_the_challenge_is_not_drawn_to_where_both_sides_vanish():
    """Small sides against a large magnitude have a small excess, and do not bound the ratio."""

    @inequality(sample=pairs, search_over="x", controls=[Control("without it", share=-1.0)])
    def tight_far_away(x, *, share=1.0):
        r"""$$s^2 \le s^2 + s$$"""
        size = jnp.sum(x**2)
        return Sides(size**2, size**2 + share * size, magnitude=jnp.asarray(1e3))

    drawn = check(tight_far_away, challenge=0).verdict.tightness
    found = challenge(tight_far_away)
    assert not found.violated
    assert 1 - found.ratio < (1 - drawn) / 2


def test_a_true_control_is_a_defect():
    report = check(claim(controls=(Control("doubled", factor=2.0),)), challenge=0)
    assert any("control 'doubled' is SUPPORTED" in text for text in report.defects)


def test_control_instances_share_the_program():
    def outside(rng, count):
        return {"x": np.ones((count, 5)), "y": -np.ones((count, 5))}

    @inequality(
        sample=pairs,
        assumptions=[assume("$x^T y \\ge 0$", lambda x, y: jnp.dot(x, y) >= 0)],
        controls=[Control("opposite vectors", sample=outside)],
        count=128,
    )
    def longest(x, y):
        r"""$$\max(\|x\|, \|y\|) \le \|x+y\|$$"""
        norm = jnp.linalg.norm
        return jnp.maximum(norm(x), norm(y)), norm(x + y)

    report = check(longest, challenge=0)
    assert report.defects == ()
    assert 30 <= report.verdict.applicable < 128


def test_an_erratum_is_violated_on_its_witness_and_its_correction_supported():
    false = replace(
        scaled(0.5, control=1.0),
        witness=lambda: {"x": np.ones(5), "y": np.ones(5)},
        search_over=(),
        expect=Expectation(Outcome.VIOLATED, "the factor was lost"),
        controls=(Control("with the factor", factor=1.0, expect=Outcome.SUPPORTED),),
    )
    report = check(false, challenge=0)
    assert report.verdict.outcome is Outcome.VIOLATED
    assert report.defects == ()


def test_bad_names_and_unchallengeable_claims_are_refused_in_one_line():
    with pytest.raises(UserError, match="did you mean"):
        find_claims(["lemma-1x2"])
    with pytest.raises(UserError, match="search_over"):
        challenge(claim(search_over=(), not_attacked="each instance is a training"))


@pytest.fixture
def cleared(monkeypatch) -> list[int]:
    """One entry for each time that the programs of JAX are cleared."""
    times: list[int] = []
    monkeypatch.setattr(jax, "clear_caches", lambda: times.append(len(times)))
    monkeypatch.setattr(checking, "_compiled", set())
    return times


def test_few_claims_keep_their_programs_however_often_they_are_checked(cleared):
    for _ in range(10):
        for number in range(checking.MAX_CLAIMS):
            checking._bound_compiled(f"a/{number}")
    assert cleared == []


def test_the_programs_of_many_claims_are_cleared_in_turn(cleared):
    for number in range(3 * checking.MAX_CLAIMS + 1):
        checking._bound_compiled(f"a/{number}")
    assert len(cleared) == 3
