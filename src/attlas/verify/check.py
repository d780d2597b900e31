"""Check one claim with its controls."""

import time
from collections.abc import Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from attlas.core.claim import Claim, Kind
from attlas.core.factorising import FACTORISING
from attlas.core.verdict import CheckReport, ControlReport, Outcome, Verdict
from attlas.verify.challenge import challenge
from attlas.verify.decide import decide, tightness
from attlas.verify.evidence import Batch, Evidence, Program, compile_program, gather


def check(
    claim: Claim,
    *,
    count: int | None = None,
    seed: int = 0,
    alpha: float = 1e-3,
    challenge_rounds: int = 0,
) -> CheckReport:
    """Draw instances of a claim, decide it, and try its controls on the same program.

    Args:
        claim: what is checked.
        count: instances drawn; the claim's own number by default.
        seed: of the instances.
        alpha: error probability of a statistical verdict.
        challenge_rounds: rounds of gradient search added for inequalities with free arrays.

    Returns:
        The report; `report.defects` is empty when all came out as expected.

    Examples:
        >>> from attlas.verify.registry import find_claims
        >>> check(find_claims(["julistiono2024optimizing/lemma-12"])[0]).verdict.outcome.value
        'SUPPORTED'
    """
    started = time.perf_counter()
    count = claim.count if count is None else count
    # Claims may factorise; see the lock.
    with FACTORISING, jax.enable_x64(True):
        program = compile_program(claim)
        batch = draw_batch(claim, seed, count)
        holds, sides = program(batch)
        evidence = gather(claim, holds, sides[0])
        verdict = with_witness(decide(claim, evidence, alpha=alpha, seed=seed), batch)
        controls = [
            _control(claim, k, program, batch, (holds, sides), alpha=alpha, seed=seed)
            for k in range(len(claim.controls))
        ]
        if (tightened := _tightened(claim, verdict, evidence)) is not None:
            controls.append(tightened)
        search = None
        if challenge_rounds and claim.search_over:
            search = challenge(
                claim, rounds=challenge_rounds, seed=seed, program=program, batch=batch
            )
    return CheckReport(
        claim=claim.name,
        verdict=verdict,
        controls=tuple(controls),
        expect=claim.expect.outcome,
        challenge=search,
        seconds=time.perf_counter() - started,
        statement=claim.statement,
    )


def draw_batch(claim: Claim, seed: int, count: int) -> Batch:
    """The instances of a check: the stored witness alone if there is one, else fresh ones.

    Args:
        claim: what is drawn.
        seed: of the key.
        count: number of fresh instances.

    Returns:
        A batch whose arrays have a leading axis of `count`, or of one with a witness.
    """
    if claim.witness is not None:
        return {name: jnp.asarray(value)[None] for name, value in claim.witness().items()}
    return claim.draw(seed, count)


def with_witness(verdict: Verdict, batch: Mapping) -> Verdict:
    """Attach the deciding instance of a batch to a verdict.

    Args:
        verdict: names the instance in `index`, if one decides.
        batch: arrays with a leading axis.

    Returns:
        The verdict with its witness as NumPy arrays.
    """
    if verdict.index is None:
        return verdict
    witness = {name: np.asarray(value[verdict.index]) for name, value in batch.items()}
    return replace(verdict, witness=witness)


def _control(
    claim: Claim, k: int, program: Program, batch: Batch, own: tuple, *, alpha: float, seed: int
) -> ControlReport:
    control = claim.controls[k]
    outside = control.sample is not None
    if outside:
        batch = claim.draw(seed, len(next(iter(batch.values()))), control)
        own = program(batch)
    holds, sides = own
    evidence = gather(claim, holds, sides[1 + k], assumed=not outside)
    verdict = with_witness(decide(claim, evidence, alpha=alpha, seed=seed), batch)
    return ControlReport(control.description, control.expect, verdict)


def _tightened(claim: Claim, verdict: Verdict, evidence: Evidence) -> ControlReport | None:
    """The right side times 0.9 of the best ratio found, on the witness of that ratio."""
    if claim.kind is not Kind.INEQUALITY or verdict.tightness is None:
        return None
    if verdict.outcome not in (Outcome.SUPPORTED, Outcome.INCONCLUSIVE):
        return None
    single = evidence.select(int(np.nanargmax(tightness(evidence, claim.roundings))))
    # The plain ratio: of the one less its allowance the control could not fail.
    ratio = np.nanmax(tightness(replace(single, error=np.zeros_like(single.error)), roundings=0))
    false = decide(claim, replace(single, right=single.right * (0.9 * ratio)))
    text = "right side times 0.9 of the best ratio found, on its witness"
    return ControlReport(text, Outcome.VIOLATED, replace(false, index=None))
