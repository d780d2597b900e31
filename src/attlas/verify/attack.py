r"""Attack an inequality without derivatives, on the program that the check has compiled already.

Each instance of a batch climbs by itself: it accepts a random move of adaptive length where the
relative excess of its component grows and the assumptions hold. Moves change either the arrays of
`search_over`, projected by `project` and certified again by `recertify` at the end; or, where a
claim names none, the random numbers from which its sampler made the instances. The second never
leaves the sampler's support, so that every sampled inequality is attacked as it stands.

The budget is a number of evaluations of the sides on one instance, so that equal seeds give equal
results on equal machines.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np

from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim
from attlas.claims.verdict import ChallengeReport, Outcome
from attlas.core.names import call_by_name
from attlas.verify.climb import climb
from attlas.verify.coincidences import Coincidences
from attlas.verify.evidence import (
    Batch,
    Evidence,
    Program,
    compile_program,
    detection_limits,
    gather,
    instance_at,
)
from attlas.verify.proposals import Covariance, Extremes, Moves, Proposal
from attlas.verify.review import decided, with_certain_ratio
from attlas.verify.searchable import is_searchable
from attlas.verify.space import Blocks
from attlas.verify.trend_search import lines, trend_verdict

EVALUATIONS = 6400
"""Default evaluations of a round of moves: 100 moves of 64 instances."""
WITHOUT_SLOPES: dict[str, Callable[[int, np.random.Generator], Proposal]] = {
    "moves": Moves,
    "covariance": Covariance,
    "extremes": Extremes,
    "coincidences": Coincidences,
}
"""Methods that need no derivative, by name."""


def attack(
    claim: Claim,
    *,
    method: str = "moves",
    evaluations: int | None = None,
    seed: int = 0,
    program: Program | None = None,
    batch: Batch | None = None,
    stop: Callable[[], bool] | None = None,
) -> ChallengeReport | None:
    """Search for a violation of an inequality.

    Args:
        evaluations: number of evaluations of the sides on one instance; at least one move is made.
        seed: seed of the starting points.
        program: the claim's compiled program, where a check has it already.
        batch: starting points, where a check has drawn them already.
        stop: called after each move; the search ends where it is true.

    Returns:
        The tightest instance; its verdict is VIOLATED when the claim broke. None where nothing
        moves: see `attlas.verify.searchable`, and where the sampler draws no normal or uniform
        number.
    """
    if not is_searchable(claim):
        return None
    granted = granted_evaluations(claim) if evaluations is None else evaluations
    with FACTORISING, jax.enable_x64(True), np.errstate(all="ignore"):
        program = program or compile_program(claim)
        start = claim.draw(seed, claim.count) if batch is None else batch
        climbed = climb(
            claim,
            program,
            start,
            WITHOUT_SLOPES[method],
            seed=seed,
            moves=_moves(granted, start),
            stop=stop,
        )
        if not climbed.moves:
            return None
        origin = Origin(start, climbed.blocks)
        report = judge(claim, program, climbed.batch, seed, climbed.moves, origin)
        return replace(report, method=method)


def granted_evaluations(claim: Claim) -> int:
    """The evaluations of a round: the number that the claim declares, or the default."""
    return EVALUATIONS if claim.evaluations is None else claim.evaluations


class Origin(NamedTuple):
    """From which instances a search came, and the numbers at its end if it moved draws."""

    batch: Batch
    blocks: Blocks | None = None


def judge(
    claim: Claim,
    program: Program,
    batch: Batch,
    seed: int,
    steps: int,
    origin: Origin | None = None,
) -> ChallengeReport:
    """Solve again what a search froze, and decide on its end points after `steps` moves.

    Args:
        origin: without one the end points are the draws of the seed.
    """
    batch, evidence = settled(claim, program, batch)
    if claim.kind.rule.scaled:
        start = batch if origin is None else origin.batch
        tracks = lines(claim, start, batch, seed, None if origin is None else origin.blocks)
        options = {"seed": seed, "evaluations": (steps + 1) * len(evidence.applicable)}
        verdict = trend_verdict(claim, batch, evidence, program=program, tracks=tracks, **options)
    else:
        verdict, evidence = decided(claim, evidence, batch, seed=seed)
        start = evidence
        if origin is not None:
            holds, sides = program(origin.batch)
            start = gather(claim, holds, sides[0])
        verdict, evidence = with_certain_ratio(claim, verdict, evidence, batch, start)
    if verdict.index is not None:
        verdict = replace(verdict, witness=instance_at(batch, verdict.index))
    return ChallengeReport(
        verdict.tightness,
        verdict.outcome is Outcome.VIOLATED,
        verdict.tried,
        steps,
        verdict,
        evaluations=(steps + 1) * verdict.tried,
        detection=detection_limits(claim, evidence),
    )


def settled(claim: Claim, program: Program, batch: Batch) -> tuple[Batch, Evidence]:
    """The end points of a search with solver outputs solved again, and their evidence."""
    if claim.recertify is not None:
        batch = {**batch, **call_by_name(claim.recertify, batch)}
    holds, sides = program(batch)
    return batch, gather(claim, holds, sides[0], batch=batch)


def attacked(
    claim: Claim, program: Program, batch: Batch, *, seed: int, evaluations: int | None = None
) -> Evidence | None:
    """The sides at the end points of one round of moves, None where nothing moves."""
    if not is_searchable(claim):
        return None
    granted = granted_evaluations(claim) if evaluations is None else evaluations
    with np.errstate(all="ignore"):
        climbed = climb(claim, program, batch, Moves, seed=seed, moves=_moves(granted, batch))
    return settled(claim, program, climbed.batch)[1] if climbed.moves else None


def _moves(granted: int, batch: Batch) -> int:
    """Moves that a budget allows beside the evaluation of the end points."""
    return max(1, granted // len(next(iter(batch.values()))) - 1)


def better(old: ChallengeReport | None, new: ChallengeReport) -> ChallengeReport:
    """The report of a violation, else of the larger ratio, with the evaluations of both."""
    if old is None:
        return new
    more = new.violated or (new.ratio or -np.inf) > (old.ratio or -np.inf)
    return replace(
        new if more else old,
        evaluations=old.evaluations + new.evaluations,
        detection=smaller_limits(old.detection, new.detection),
    )


def smaller_limits(
    first: tuple[float | None, ...], second: tuple[float | None, ...]
) -> tuple[float | None, ...]:
    """The smaller detection limit of each component; `first` if the components differ.

    Examples:
        >>> smaller_limits((0.5, None), (0.75, 0.1))
        (0.5, 0.1)
    """
    if len(first) != len(second):
        return first or second
    return tuple(
        min((limit for limit in pair if limit is not None), default=None)
        for pair in zip(first, second, strict=True)
    )
