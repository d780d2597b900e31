"""Identities proved by computer algebra; what is false, large or not ordinary is not proved."""

import importlib.util
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from attlas.claims.claim import Control
from attlas.claims.domains.vectors import Real
from attlas.claims.statement import identity
from attlas.claims.verdict import Outcome, Verdict
from attlas.verify import symbolic
from attlas.verify.check import check

needs_sympy = pytest.mark.skipif(
    importlib.util.find_spec("sympy") is None,
    reason="sympy is not installed (attlas[exact]): no symbolic proof is tested here",
)


def claim_of(sides, *shapes):
    def stated(x, y, *, factor=1.0):
        r"""$$f(x, y) = g(x, y)$$"""
        return sides(x, y, factor)

    domains = [Real(name, shape=shape) for name, shape in zip("xy", shapes, strict=True)]
    return identity(domains=domains, alike=True, controls=[Control("double", factor=2.0)])(stated)


def told(sides, *shapes):
    claim = claim_of(sides, *shapes)
    return symbolic.prove(claim, claim.draw(0, 2))


TRUE = {
    "binomial": (lambda x, y, c: (c * (x + y) ** 2, x**2 + 2 * x * y + y**2), (), ()),
    "shift of a softmax": (
        lambda x, y, c: (jax.nn.softmax(c * x + y), jax.nn.softmax(x)), (3,), (),
    ),
    "transposed product": (lambda x, y, c: (c * (x @ y).T, y.T @ x.T), (2, 3), (3, 2)),
    "log of a product": (lambda x, y, c: (jnp.log(jnp.exp(x) * jnp.exp(c * y)), x + y), (), ()),
    "quotients": (lambda x, y, c: (c / x + 1 / y, (x + y) / (x * y)), (), ()),
    "logistic": (lambda x, y, c: (jax.nn.sigmoid(c * x) + y, 1 - jax.nn.sigmoid(-x) + y), (), ()),
    "two statements": (
        lambda x, y, c: (
            jnp.stack([c * (x - y), (x - y) * (x + y)]), jnp.stack([x - y, x**2 - y**2])
        ), (), (),
    ),
    "root of a square": (lambda x, y, c: (c * jnp.sqrt(x**2) * y, jnp.abs(x) * y), (), ()),
}  # fmt: skip
OPEN = {
    "a third is no binary number": (
        lambda x, y, c: (c * (x * (1 / 3) * 3 + y), x * (1 / 3) * 3 * (1 + 1e-15) + y), (), (),
        "does not expand to zero",
    ),
    "a sort": (lambda x, y, c: (c * jnp.sort(x)[0], x.min() + 0 * y), (2,), (), "'sort' has no"),
    "many entries": (lambda x, y, c: (c * x + y, y + x), (5, 5), (), "more than 24 entries"),
    "a maximum of others": (
        lambda x, y, c: (c * jnp.maximum(x, y) + jnp.minimum(x, y), x + y), (), (),
        "does not expand to zero",
    ),
}  # fmt: skip


@needs_sympy
@pytest.mark.parametrize("name", TRUE)
def test_true_identities_are_proved(name):
    found = told(*TRUE[name])
    assert found.startswith("proved symbolically"), found
    assert "where both sides are defined (sympy " in found


@needs_sympy
@pytest.mark.parametrize("name", OPEN)
def test_what_cannot_be_proved_says_why(name):
    *given, why = OPEN[name]
    found = told(*given)
    assert found.startswith("not proved symbolically: "), found
    assert why in found


@needs_sympy
def test_a_proof_that_would_prove_a_control_is_none(monkeypatch):
    monkeypatch.setattr(symbolic, "_is_zero", lambda algebra, entry: True)
    assert "the control 'double' would be proved too" in told(*TRUE["binomial"])


@needs_sympy
def test_the_shape_is_said_and_the_verdict_carries_the_proof():
    claim = claim_of(*TRUE["transposed product"])
    reason = check(claim).verdict.reason
    assert "; proved symbolically for x of shape (2, 3), y of shape (3, 2), where" in reason


@needs_sympy
def test_a_violation_of_what_is_proved_is_said_to_be_rounding():
    claim = claim_of(*TRUE["binomial"])
    batch = claim.draw(0, 2)
    violated = Verdict(Outcome.VIOLATED, "differs")
    found = symbolic.with_proof(claim, violated, batch)
    assert found.outcome is Outcome.VIOLATED
    assert found.reason.startswith("differs; yet proved symbolically")
    assert found.reason.endswith("what differs is rounding")
    false = claim_of(lambda x, y, c: (c * x + y, x - y), (), ())
    assert symbolic.with_proof(false, violated, batch) is violated


def test_other_outcomes_and_machines_without_sympy_say_nothing(monkeypatch):
    claim = claim_of(*TRUE["binomial"])
    batch = claim.draw(0, 2)
    undecided = Verdict(Outcome.INCONCLUSIVE, "open")
    assert symbolic.with_proof(claim, undecided, batch) is undecided
    held = replace(undecided, outcome=Outcome.SUPPORTED)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert symbolic.with_proof(claim, held, batch) is held
