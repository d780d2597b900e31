"""Check one claim with its controls.

What most claims do not need (searches, proofs, grown sizes) is imported where it is used.
"""

import time
from collections.abc import Mapping
from dataclasses import replace

import jax
import numpy as np
from jaxtyping import Array

from attlas._jax.device_arrays import on_device
from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim, Control
from attlas.claims.verdict import ChallengeReport, CheckReport, ControlReport, Verdict, Witness
from attlas.projects.provenance import source_digest
from attlas.verify.decide import decide
from attlas.verify.detection import detection_limits, faults, unattained
from attlas.verify.evidence import Batch, Evidence, Program, compile_program, gather, instance_at
from attlas.verify.registry import one_claim
from attlas.verify.searchable import is_searchable

MAX_CLAIMS = 32
"""Claims whose programs stay in memory: some 5 MB each, 3 GB for all papers."""
_compiled: set[str] = set()


def check(
    claim: Claim | str,
    *,
    count: int | None = None,
    seed: int = 0,
    alpha: float = 1e-3,
    challenge_rounds: int = 0,
    stored: Witness | None = None,
) -> CheckReport:
    """Draw instances of a claim, decide it, and try its controls on the same program.

    Args:
        claim: the claim, or its name.
        count: instances drawn; the number that the claim declares by default.
        alpha: error probability of a statistical verdict.
        challenge_rounds: rounds of `attlas.verify.attack` on an inequality, in addition.
        stored: an instance of an earlier search, evaluated first; ignored where it does not fit the
            claim any more.

    Returns:
        The report; `report.defects` is empty when all outcomes are the expected ones.

    Examples:
        >>> check("julistiono2024optimizing/lemma-12").verdict.outcome.value
        'SUPPORTED'
    """
    claim = one_claim(claim)
    started = time.perf_counter()
    _bound_compiled(claim.name)
    with FACTORISING, jax.enable_x64(True):  # claims may factorise
        program = compile_program(claim)
        batch = draw_batch(claim, seed, claim.count if count is None else count)
        holds, sides = program(batch)
        evidence = gather(claim, holds, sides[0], batch=batch)
        verdict = _with_witness(decide(claim, evidence, alpha=alpha, seed=seed), batch)
        verdict = _with_more(claim, verdict, program, batch, stored)
        verdict, exponents = _at_other_sizes(claim, verdict, evidence, batch, (alpha, seed))
        tried, controls = _controls(claim, program, batch, (holds, sides), alpha=alpha, seed=seed)
        limits = detection_limits(claim, evidence, [control_sides for _, control_sides in controls])
        wrong = [*faults(claim, evidence, controls, alpha)]
        wrong += _undefined_assumptions(claim, batch, holds)
        search, unmoving = _searched(claim, challenge_rounds, seed, program, batch)
    return CheckReport(
        claim=claim.name,
        verdict=verdict,
        controls=tried,
        expect=claim.expect.outcome,
        challenge=None if search is None else _proved(claim, search),
        detection=limits,
        exponents=exponents,
        faults=(*wrong, *unmoving, *unattained(claim, verdict, search)),
        seconds=time.perf_counter() - started,
        statement=claim.statement,
        source=source_digest(claim.place[0], claim.home),
    )


def _with_more(
    claim: Claim, verdict: Verdict, program: Program, batch: Batch, stored: Witness | None
) -> Verdict:
    """The verdict after a stored instance was evaluated, and with the proof of an identity."""
    if stored is not None:
        from attlas.verify.stored import replayed, with_stored

        verdict = with_stored(claim, verdict, replayed(claim, program, batch, stored))
    if claim.kind.rule.equality:
        from attlas.verify.symbolic import with_proof

        verdict = with_proof(claim, verdict, batch)
    return verdict


def _at_other_sizes(
    claim: Claim, verdict: Verdict, evidence: Evidence, batch: Batch, drawn: tuple[float, int]
) -> tuple[Verdict, dict[str, float | None]]:
    """The verdict after grown sizes, and the least change of each exponent that is detected."""
    if not claim.quantities:
        return verdict, {}
    from attlas.verify.exponents import at_grown_sizes, exponent_limits, with_grown

    alpha, seed = drawn
    grown = list(at_grown_sizes(claim, seed, len(evidence.applicable)))
    return with_grown(verdict, grown, alpha), exponent_limits(claim, evidence, batch, grown)


def _bound_compiled(claim: str) -> None:
    """Clear the programs that JAX compiled, before one more claim than `MAX_CLAIMS` is compiled."""
    # JAX holds every program for as long as its function lives, and claims live as long as the
    # process. A program that is needed again is compiled again, or read from the persistent cache.
    if claim not in _compiled and len(_compiled) >= MAX_CLAIMS:
        jax.clear_caches()
        _compiled.clear()
    _compiled.add(claim)


def draw_batch(claim: Claim, seed: int, count: int) -> Batch:
    """The instances of a check: the stored witness alone if there is one, else fresh ones."""
    if claim.witness is not None:
        return {name: on_device(np.asarray(value)[None]) for name, value in claim.witness().items()}
    return claim.draw(seed, count)


def _with_witness(verdict: Verdict, batch: Mapping) -> Verdict:
    """The verdict with the instance of the batch that its `index` names, as NumPy arrays."""
    if verdict.index is None:
        return verdict
    return replace(verdict, witness=instance_at(batch, verdict.index))


def _controls(
    claim: Claim, program: Program, batch: Batch, evaluated: tuple, *, alpha: float, seed: int
) -> tuple[tuple[ControlReport, ...], list[tuple[Control, Evidence]]]:
    """The report of each control, and its sides."""
    tried = [
        _control(claim, k, program, batch, evaluated, alpha=alpha, seed=seed)
        for k in range(len(claim.controls))
    ]
    sides = [(claim.controls[k], control_sides) for k, (_, control_sides) in enumerate(tried)]
    return tuple(report for report, _ in tried), sides


def _control(
    claim: Claim,
    k: int,
    program: Program,
    batch: Batch,
    evaluated: tuple,
    *,
    alpha: float,
    seed: int,
) -> tuple[ControlReport, Evidence]:
    control = claim.controls[k]
    outside = control.sample is not None
    if outside:
        batch = claim.draw(seed, len(next(iter(batch.values()))), control)
        evaluated = program(batch)
    holds, sides = evaluated
    evidence = gather(claim, holds, sides[1 + k], assumed=not outside, batch=batch)
    verdict = _with_witness(decide(claim, evidence, alpha=alpha, seed=seed), batch)
    return ControlReport(control.description, control.expect, verdict), evidence


def _searched(
    claim: Claim, rounds: int, seed: int, program: Program, batch: Batch
) -> tuple[ChallengeReport | None, tuple[str, ...]]:
    """What an attack gave, and whether it is a fault that it moved nothing."""
    if not rounds:
        return None, ()
    from attlas.verify.attack import attack

    search = attack(claim, rounds=rounds, seed=seed, program=program, batch=batch)
    return search, _unmoved(claim, search)


def _proved(claim: Claim, search: ChallengeReport) -> ChallengeReport:
    from attlas.verify.certify import proved

    return proved(claim, search)


def _unmoved(claim: Claim, search: ChallengeReport | None) -> tuple[str, ...]:
    """One sentence on a searchable inequality in which an attack found nothing to move."""
    if search is not None or not is_searchable(claim):
        return ()
    return (
        "nothing to search over: list arrays in `search_over`, draw normal or uniform numbers from "
        "rng in the sampler, or explain why in `not_attacked`",
    )


def _undefined_assumptions(claim: Claim, batch: Batch, holds: Array) -> tuple[str, ...]:
    """Sentences on assumptions that refuse an instance because a number in them is NaN."""
    # A comparison with NaN is false: it would leave out the very instances on which the statement
    # may fail.
    faults = []
    for k, assumption in enumerate(claim.assumptions):
        refused = np.flatnonzero(~np.asarray(holds)[:, k])
        if not len(refused):
            continue
        # Repeated to the size of the batch: each operation is a program for each shape.
        repeated = np.resize(refused, len(holds))
        rows = {name: on_device(np.asarray(value)[repeated]) for name, value in batch.items()}
        try:
            with jax.debug_nans(True):
                jax.vmap(assumption.holds)(rows)
        except FloatingPointError:
            faults.append(
                f"the assumption '{assumption.text}' is NaN on an instance that it refuses"
            )
    return tuple(faults)
