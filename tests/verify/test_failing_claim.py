"""A claim whose own functions fail ends in one line, from every function that takes claims."""

import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from example_calls import is_part, modules

from attlas.claims.claim import Claim, Control
from attlas.claims.proof import EXPANSION, Proof
from attlas.claims.statement import identity, inequality
from attlas.claims.verdict import ChallengeReport, Outcome, Verdict
from attlas.core.errors import UserError
from attlas.verify.check import check
from attlas.verify.registry import one_claim, refuse_failing_claim

FEW = 2
"""So many instances are drawn when a claim is declared."""


def draw(rng, count):
    """Fails on more instances than a declaration tries."""
    if count > FEW:
        raise ZeroDivisionError("drawn\nin vain")
    return {"x": rng.normal(size=(count, 3))}


def sides(x, *, factor=1.0):
    """$$x_1 - 1 = x_1$$"""
    if x.shape[-1] == 5:
        raise LookupError("five entries")
    return x[0], factor * x[0] + 1


def draw_by_key(key, count):
    return {"x": jax.random.normal(key, draw(np.random.default_rng(0), count)["x"].shape)}


BY_KEY = inequality(sample=draw_by_key, controls=[Control("none", factor=0.0)])(sides)
LESS = inequality(sample=draw, controls=[Control("none", factor=0.0)])(sides)
EQUAL = identity(sample=draw, controls=[Control("none", factor=0.0)])(sides)
WITNESS = {"x": np.ones(5)}
WHERE = {"signs": {}, "shapes": {"x": [3]}, "fixed": {}, "values": [], "links": {}}
PROOF = Proof(EXPANSION, "for all x", WHERE, "", {}, "")
BROKEN = Verdict(Outcome.VIOLATED, "broken", witness=WITNESS)
CALLS = {
    "check": (LESS,),
    "challenge": (LESS,),
    "draw_batch": (LESS, 0, 64),
    "power": (LESS,),
    "prove": (EQUAL,),
    "proved_along_draws": (EQUAL, {"x": jnp.ones((2, 5))}, {"x"}, 0),
    "recheck": (EQUAL, PROOF),
    "replay": (LESS, WITNESS),
    "shrunk": (LESS, WITNESS),
    "why_not_moved": (BY_KEY,),
    "shrunk_of": (LESS, ChallengeReport(2.0, True, 1, 1, BROKEN)),
}
WITHOUT_ITS_FUNCTIONS = {
    "failure": "names a claim",
    "is_searchable": "reads fields",
    "one_claim": "looks a name up",
    "search_effort": "reads fields",
    "why_not_attacked": "reads fields",
}


def taking_claims():
    """The functions of the verifier that others call, with a claim as their first argument."""
    for module in modules(["verify"]):
        if is_part(module.__name__):
            continue
        for name, function in inspect.getmembers(module, inspect.isfunction):
            first = next(iter(inspect.signature(function).parameters), "")
            defined_here = function.__module__ == module.__name__ and not name.startswith("_")
            if defined_here and first == "claim":
                yield name, function


def test_every_function_that_takes_a_claim_is_tried():
    assert {name for name, _ in taking_claims()} - WITHOUT_ITS_FUNCTIONS.keys() == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_an_error_of_the_claim_is_one_line_that_names_it(name):
    function = dict(taking_claims())[name]
    with pytest.raises(UserError) as refusal:
        function(*CALLS[name])
    assert "\n" not in str(refusal.value)
    assert f"{Path(__file__).name}:" in str(refusal.value)
    assert "claim 'test_failing_claim/sides' fails" in str(refusal.value)
    assert isinstance(refusal.value.__cause__, ZeroDivisionError | LookupError)


def test_an_error_of_the_instrument_passes():
    @refuse_failing_claim
    def broken(claim: Claim) -> int:
        return claim.count // 0

    with pytest.raises(ZeroDivisionError):
        broken(one_claim("trauger2023sequence/lemma-3-2"))


def test_more_roundings_than_bound_an_error_are_refused():
    def draws(rng, count):
        return {"x": rng.normal(size=(count, 3))}

    claim = inequality(sample=draws, controls=[Control("none", factor=0.0)], roundings=2**60)(sides)
    with pytest.raises(UserError, match=r"roundings must lie between 0 and 1 / eps = 4\.5e\+15"):
        check(claim, challenge=0)
