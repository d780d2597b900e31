"""Check one claim with its controls.

Compilation is what costs: a check and its controls share one program. What most claims do not need
(searches, proofs, grown sizes) is imported where it is used.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np
from jaxtyping import Array

from attlas._jax.device_arrays import on_device
from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim, Control, provenance_of
from attlas.claims.sides import Doubling
from attlas.claims.verdict import (
    ChallengeReport,
    CheckReport,
    ControlReport,
    Outcome,
    Verdict,
    Witness,
)
from attlas.core.errors import UserError, refuse_unreadable
from attlas.projects.loading import source_digest
from attlas.verify.clearance import far_constants, near_limits, nearest_control
from attlas.verify.evidence import (
    Batch,
    Evidence,
    Program,
    compile_program,
    decide,
    detection_limits,
    faults,
    gather,
    instance_at,
    unattained,
    uncontrolled,
)
from attlas.verify.registry import one_claim, refuse_failing_claim
from attlas.verify.review import decided

if TYPE_CHECKING:
    from attlas.claims.shrunk_witness import ShrunkWitness

MAX_CLAIMS = 32
"""Claims whose programs stay in memory: some 5 MB each, 3 GB for all papers."""
_compiled: set[str] = set()


@refuse_failing_claim
def check(
    claim: Claim | str,
    *,
    count: int | None = None,
    seed: int = 0,
    alpha: float = 1e-3,
    challenge: int | float | None = None,
    stored: Witness | None = None,
    program: Program | None = None,
) -> CheckReport:
    """Draw instances of a claim, decide it, and try its controls on the same program.

    Args:
        count: instances drawn; the number that the claim declares by default, of which a
            probability or expectation that stays undecided draws up to 16 times as many. A limit
            or rate with `Doubling` scales doubles them while it is undecided and two processor
            seconds last.
        alpha: error probability of a statistical verdict, of all looks together.
        challenge: searches for a counterexample, two processor seconds each; 0 for none. By
            default 1 for your own claims, as in `attlas check` and pytest, and 0 for those of
            installed papers; see `search_effort`.
        stored: an instance of an earlier search, evaluated first where it still fits the claim.

    Returns:
        The report; `report.defects` is empty when all outcomes are the expected ones.

    Examples:
        >>> check("julistiono2024optimizing/lemma-12").verdict.outcome.value
        'SUPPORTED'
    """
    claim, started = one_claim(claim), time.perf_counter()
    effort = search_effort(claim, challenge)
    if claim.parameters:  # one half for the drawn parameters, one for the worst
        alpha /= 2
    if isinstance(claim.scales, Doubling):
        from attlas.verify.sequential_check import sequential_check

        count = claim.count if count is None else count

        def look(extended: Claim, share: float, rounds: int | float) -> CheckReport:
            return _once(extended, count, seed, share, rounds, stored, None)

        options = {"sequences": count, "alpha": alpha, "effort": effort}
        report = sequential_check(claim, look, **options)
        return replace(report, seconds=time.perf_counter() - started)
    shares = [(claim.count if count is None else count, alpha)]
    if count is None and claim.rule.trials:
        shares = looks(claim.count, alpha)
    for trials, share in shares:
        report = _once(claim, trials, seed, share, effort, stored, program)
        # Trials of another look are other draws of the sampler, or more of them: the sum of all
        # error probabilities bounds that of the report.
        verdicts = (report.verdict, *(control.verdict for control in report.controls))
        if report.broken or not any(map(_is_open, verdicts)):
            break
    return replace(report, seconds=time.perf_counter() - started)


@refuse_unreadable
def search_effort(claim: Claim, challenge: int | float | None, effort: int | float = 1.0) -> float:
    """The effort of the search that belongs to the check of a claim.

    Args:
        challenge: searches of two processor seconds each; None for one, but none for the hundreds
            of claims of installed papers, unless the paper is the project of the working directory.
        effort: factor of two processor seconds.

    Raises:
        UserError: if the searches are fewer than none.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> claim = one_claim("julistiono2024optimizing/lemma-12")
        >>> search_effort(claim, None), search_effort(claim, 2, 0.5)
        (0.0, 1.0)
    """
    if challenge is None:
        challenge = int(_is_own(claim))
    if not 0 <= challenge < float("inf"):
        raise UserError(
            f"challenge={challenge} is no number of searches: give 1 or a part of it, 0 for none"
        )
    return float(challenge * effort)


def _is_own(claim: Claim) -> bool:
    """Whether a claim is of the project here, or of no installed paper."""
    from attlas.projects.installed import is_of_installed_paper
    from attlas.projects.project import project_here

    project, file = project_here(), claim.place[0]
    is_here = project is not None and Path(file).is_relative_to(project.root)
    return is_here or not is_of_installed_paper(file)


def _once(
    claim: Claim,
    count: int,
    seed: int,
    alpha: float,
    effort: int | float,
    stored: Witness | None,
    program: Program | None,
) -> CheckReport:
    """The report on so many instances."""
    started = time.perf_counter()
    _bound_compiled(claim.name)
    with FACTORISING, jax.enable_x64(True):  # claims may factorise
        program = compile_program(claim) if program is None else program
        batch = draw_batch(claim, seed, count)
        holds, sides = _evaluated(claim, program, batch, alpha=alpha, seed=seed)
        evidence = gather(claim, holds, sides[0], batch=batch)
        verdict, evidence = decided(claim, evidence, batch, alpha=alpha, seed=seed)
        if claim.kind.rule.scaled and verdict.outcome is Outcome.VIOLATED:
            verdict = _of_few(claim, program, batch, evidence, verdict, seed)
        verdict = _with_stored(claim, _with_witness(verdict, batch), program, batch, stored)
        verdict, exponents = _at_other_sizes(
            claim, verdict, evidence, batch, alpha=alpha, seed=seed
        )
        tried, controls = _controls(claim, program, batch, (holds, sides), alpha=alpha, seed=seed)
        places = uncontrolled(claim, evidence, controls, alpha)
        near = near_limits(claim, verdict, evidence, controls, tried, places, alpha)
        wrong = faults(claim, evidence, controls, places)
        undefined = _undefined(claim, batch, holds)
        search = _searched(claim, program, batch, effort, alpha=alpha, seed=seed)
        verdict = _on_average(claim, verdict)
    return CheckReport(
        claim=claim.name,
        verdict=verdict,
        controls=tried,
        expect=claim.expect.outcome,
        challenge=search,
        detection=detection_limits(claim, evidence, [sides for _, sides in controls]),
        exponents=exponents,
        faults=(*wrong, *undefined, *unattained(claim, verdict, search)),
        near=near,
        seconds=time.perf_counter() - started,
        statement=claim.statement,
        source=source_digest(claim.place[0], claim.home),
        nearest=nearest_control(claim, evidence, controls),
        far=far_constants(claim, evidence, controls),
        provenance=provenance_of(claim),
        shrunk=_shrunk(claim, verdict, search),
    )


def _of_few(
    claim: Claim, program: Program, batch: Batch, evidence: Evidence, verdict: Verdict, seed: int
) -> Verdict:
    """The verdict on a limit or rate that less than half of the instances contradict.

    At the scales at hand a slow instance of a true statement looks like one of a false statement:
    the set around it decides, as in a search, where it can be measured at the cost of one.
    """
    from attlas.verify.searchable import is_searchable
    from attlas.verify.trend_search import is_measurable, lines, trend_verdict

    numbers = verdict.statistics
    few = 2 * numbers["contradicting"] < evidence.applicable.sum()
    if not few or not is_searchable(claim):
        return verdict
    if claim.declared:
        # Of doubled scales a decision has to persist over many doublings already; it is that of a
        # transient still where after all of them others comply and as many have not settled.
        others = min(numbers["complying"], numbers["undecided"])
        return _not_settled(verdict) if others >= numbers["contradicting"] else verdict
    if not is_measurable(claim, program, batch):
        return verdict
    options = {"seed": seed, "evaluations": len(evidence.applicable), "program": program}
    tracks = lines(claim, batch, batch, seed)
    found = trend_verdict(claim, batch, evidence, tracks=tracks, **options)
    is_refused = found.outcome is Outcome.VIOLATED
    return replace(verdict, index=found.index) if is_refused else found


def _not_settled(verdict: Verdict) -> Verdict:
    """The verdict of doubled scales at which as many instances are open as contradict the claim."""
    against, undecided = (int(verdict.statistics[k]) for k in ("contradicting", "undecided"))
    why = (
        f"{against} instances contradict it at these scales, but {undecided} others have not "
        "settled: slow is not never"
    )
    return replace(verdict, outcome=Outcome.INCONCLUSIVE, reason=why, index=None)


def _evaluated(claim: Claim, program: Program, batch: Batch, *, alpha: float, seed: int) -> tuple:
    """What the program gives for a batch, with the terms that cancel where a trend stays open."""
    if not claim.kind.rule.scaled:
        return program(batch)
    from attlas.verify.cancellation import with_cancelled_terms

    return with_cancelled_terms(claim, program, batch, program(batch), alpha=alpha, seed=seed)


def _is_open(verdict: Verdict) -> bool:
    """Whether a confidence interval was computed and decided nothing."""
    return verdict.outcome is Outcome.INCONCLUSIVE and "low" in verdict.statistics


def looks(count: int, alpha: float) -> list[tuple[int, float]]:
    """The trials of each look at a statistical claim, and its share of the error probability.

    Examples:
        >>> looks(64, 0.008)
        [(64, 0.004), (256, 0.002), (1024, 0.001)]
    """
    return [(count * 4**k, alpha / 2 ** (k + 1)) for k in range(3)]


def _with_stored(
    claim: Claim, verdict: Verdict, program: Program, batch: Batch, stored: Witness | None
) -> Verdict:
    """The verdict after a stored instance was evaluated."""
    if stored is not None:
        from attlas.verify.stored import replayed, with_stored

        verdict = with_stored(claim, verdict, replayed(claim, program, batch, stored))
    return verdict


def _at_other_sizes(
    claim: Claim, verdict: Verdict, evidence: Evidence, batch: Batch, *, alpha: float, seed: int
) -> tuple[Verdict, dict[str, float | None]]:
    """The verdict after grown sizes, and the least change of each exponent that is detected."""
    if not claim.quantities:
        return verdict, {}
    from attlas.verify.exponents import at_grown_sizes, exponent_limits, with_grown

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


@refuse_failing_claim
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
    claim: Claim,
    program: Program,
    batch: Batch,
    effort: int | float,
    *,
    alpha: float,
    seed: int,
) -> ChallengeReport | None:
    """What the portfolio gave, None without an effort or anything to search."""
    if not effort:
        return None
    from attlas.verify.portfolio import searched

    return searched(claim, program, batch, effort=effort, seed=seed, alpha=alpha)


def _undefined(claim: Claim, batch: Batch, holds: Array | np.ndarray) -> tuple[str, ...]:
    """A sentence on each assumption that is NaN where it refuses; most claims assume nothing."""
    if not claim.assumptions:
        return ()
    from attlas.verify.undefined_assumptions import undefined_assumptions

    return undefined_assumptions(claim, batch, holds)


def _on_average(claim: Claim, verdict: Verdict) -> Verdict:
    """The verdict on a probability with parameters: drawn ones support it on average alone."""
    if not claim.parameters or verdict.outcome is not Outcome.SUPPORTED:
        return verdict
    names = ", ".join(domain.name for domain in claim.parameters)
    return replace(verdict, reason=f"{verdict.reason}, on average over the drawn {names}")


def _shrunk(
    claim: Claim, verdict: Verdict, search: ChallengeReport | None
) -> "ShrunkWitness | None":
    verdict = search.verdict if search and search.violated else verdict
    if verdict.outcome == claim.expect.outcome or verdict.outcome != "VIOLATED":
        return None
    # A violation that no single instance decides has nothing to make simpler.
    if not verdict.witness or claim.parameters:
        return None
    from attlas.verify.shrink.shrinking import shrunk

    return shrunk(claim, verdict.witness, seed=verdict.seed)
