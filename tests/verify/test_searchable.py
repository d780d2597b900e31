"""What an attack can move, and the reason where it cannot."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

from attlas.claims.claim import Control, Expectation, Kind
from attlas.claims.statement import identity, inequality
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.verify.check import check
from attlas.verify.registry import find_claims
from attlas.verify.searchable import is_searchable, why_not_attacked


@inequality(
    sample=lambda rng, count: {"x": rng.uniform(-1, 1, size=(count, 3))},
    controls=[Control("half", factor=0.5)],
)
def below_three(x, *, factor=1.0):
    r"""$$x^T x \le 3$$"""
    return jnp.dot(x, x), 3.0 * factor


def test_draws_and_named_arrays_are_attacked_and_other_kinds_are_not():
    assert is_searchable(below_three)
    assert is_searchable(replace(below_three, search_over=("x",), sample=dict))
    other = replace(below_three, kind=Kind.IDENTITY)
    assert not is_searchable(other)
    assert why_not_attacked(other) == ""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"not_attacked": "every instance is a training"}, "every instance is a training"),
        ({"witness": dict}, "one stored instance"),
        ({"enumerates": 9}, "lists the whole domain"),
        ({"expect": Expectation(Outcome.NOT_APPLICABLE, "never")}, "no instance meets"),
        ({"expect": Expectation(Outcome.VIOLATED, "false")}, "expected to be VIOLATED"),
    ],
)
def test_the_reason_is_derived_or_declared(changes, reason):
    claim = replace(below_three, **changes)
    assert reason in why_not_attacked(claim)
    assert not is_searchable(claim)


def test_where_nothing_moves_fresh_instances_are_the_search():
    def fractions(rng, count):
        return {"x": rng.hypergeometric(30, 10, 20, size=(count, 3)) / 20}

    claim = replace(below_three, sample=fractions)
    report = check(claim, challenge=1)
    assert report.defects == ()
    assert report.challenge.method == "draws"
    assert report.challenge.evaluations >= 6400
    known = check(replace(claim, not_attacked="its instances are counts"), challenge=1)
    assert known.defects == ()
    assert known.challenge is None


def test_a_reason_beside_something_to_move_is_refused():
    def sample(rng, count):
        return {"x": rng.normal(size=(count, 2))}

    half = [Control("half", factor=0.5)]
    for make, more in ((inequality, {"search_over": "x"}), (identity, {})):
        with pytest.raises(UserError, match="not_attacked is for inequalities"):

            @make(sample=sample, controls=half, not_attacked="no reason", **more)
            def same(x, *, factor=1.0):
                r"""$$x = x$$"""
                return jnp.sum(x**2), factor * jnp.sum(x**2)


@pytest.mark.thorough
def test_what_project_reads_may_be_searched_over():
    @inequality(
        sample=lambda rng, count: {"x": (x := rng.normal(size=(count, 2))), "square": x**2},
        search_over="x",
        project=lambda x: {"square": x**2},
        controls=[Control("below", factor=-1.0)],
    )
    def not_negative(square, *, factor=1.0):
        r"""$$0 \le x^2$$"""
        return jnp.zeros(2), factor * square

    assert check(not_negative, challenge=1).defects == ()


def test_papers_leave_out_only_what_an_attack_cannot_move():
    claims = [claim for claim in find_claims() if claim.kind is Kind.INEQUALITY]
    reasons = {why_not_attacked(claim) for claim in claims if not is_searchable(claim)}
    assert reasons
    # Each is one short sentence, and none is the way in which a sampler draws: that can be mended.
    assert all(10 < len(reason) < 80 for reason in reasons)
    assert "its sampler draws by a JAX key" not in reasons


def test_a_check_from_python_searches_ones_own_claims_and_those_of_papers_on_demand():
    narrow = replace(below_three, function=lambda x, *, factor=1.0: (x @ x, 2.99 * factor))
    report = check(narrow)
    assert (report.verdict.outcome, report.outcome) == (Outcome.SUPPORTED, Outcome.VIOLATED)
    assert report.challenge is not None
    assert report.challenge.violated
    assert report.defects == ("the challenge found a counterexample",)
    assert check(narrow, challenge=0).challenge is None
    assert check("lemma-12", count=8).challenge is None


@pytest.mark.parametrize("number", [-1, float("nan"), float("inf")])
def test_fewer_searches_than_none_are_one_line(number):
    with pytest.raises(UserError, match="no number of searches: give 1"):
        check(below_three, challenge=number)
