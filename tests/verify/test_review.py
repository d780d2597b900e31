"""A batch with violations in floats: the first that is confirmed decides, others are withdrawn."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control
from attlas.claims.statement import inequality
from attlas.claims.verdict import Confirmation, Outcome
from attlas.verify.digits import confirm
from attlas.verify.evidence import compile_program, decide, gather
from attlas.verify.review import reviewed


@inequality(
    sample=lambda rng, count: {"x": rng.uniform(1, 2, size=count)},
    controls=[Control("another constant", factor=0.1)],
)
def exponential(x, *, factor=1.0):
    """A number is at most exp(x) - 1, and at most 2."""
    return x, factor * jnp.where(x < 2, jnp.exp(x) - 1, 2.0)


def batch_and_evidence(*x):
    batch = {"x": jnp.array([*x, *np.linspace(1, 2, 65)[:-1]])}
    holds, sides = compile_program(exponential)(batch)
    return batch, gather(exponential, holds, sides[0], batch=batch)


def test_a_violation_that_digits_withdraw_leaves_the_others_to_decide():
    batch, evidence = batch_and_evidence(2.5e-9, 2.51e-9)
    floats = decide(exponential, evidence)
    assert floats.outcome is Outcome.VIOLATED
    verdict, corrected = reviewed(exponential, floats, evidence, batch)
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.confirmed is None
    assert "in floats withdrawn in digits" in verdict.reason
    assert (corrected.left <= corrected.right).all()
    assert verdict.applicable == 66


def test_a_confirmed_one_decides_wherever_it_stands():
    batch, evidence = batch_and_evidence(2.5e-9, 3.0)
    verdict, _ = reviewed(exponential, decide(exponential, evidence), evidence, batch)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.index == 1
    assert verdict.confirmed == Confirmation(
        True, 60, "3.0", "2.0", "confirmed in 60 digits, 1 beyond what is allowed"
    )


def test_one_that_stays_undecided_makes_the_claim_inconclusive():
    unruled = replace(exponential, function=lambda x: (jnp.nextafter(x, 9.0), 2.0))
    batch = {"x": jnp.array([2.5, *np.linspace(1, 2, 65)[:-1]])}
    holds, sides = compile_program(replace(unruled, controls=()))(batch)
    evidence = gather(unruled, holds, sides[0], batch=batch)
    verdict, _ = reviewed(unruled, decide(unruled, evidence), evidence, batch)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.index == 0
    assert verdict.confirmed.violates is None
    assert verdict.reason.startswith("1 violation in floats is not confirmed in digits: ")


def test_a_budget_that_is_spent_leaves_the_others_undecided(monkeypatch):
    monkeypatch.setattr(confirm, "OPERATIONS", 0)
    batch, evidence = batch_and_evidence(2.5e-9, 3.0)
    verdict, _ = reviewed(exponential, decide(exponential, evidence), evidence, batch)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.confirmed.violates is None
    assert verdict.confirmed.reason == verdict.reason
    assert verdict.reason.endswith("others were not evaluated")
