"""Challenge an inequality, limit or rate, by the methods of `attlas.verify.portfolio`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim
from attlas.claims.verdict import ChallengeReport, Verdict
from attlas.core.errors import UserError
from attlas.core.names import nearest
from attlas.verify.evidence import Batch, Program, compile_program, gather
from attlas.verify.portfolio import METHODS, Search, granted, methods_of, slopes
from attlas.verify.registry import one_claim, refuse_failing_claim
from attlas.verify.review import decided
from attlas.verify.searchable import is_searchable

INTERRUPTED = "interrupted"
_NOTHING = (
    "give evaluations, and something to search over: list arrays in `search_over`, or "
    "draw normal or uniform numbers from rng in the sampler"
)


@refuse_failing_claim
def challenge(
    claim: Claim | str,
    *,
    method: str = "auto",
    evaluations: int | None = None,
    seconds: float | None = None,
    effort: int | float = 1.0,
    seed: int = 0,
    program: Program | None = None,
    batch: Batch | None = None,
    keep: Callable[[ChallengeReport], None] | None = None,
) -> ChallengeReport:
    """Search for a violation of an inequality, limit or rate.

    Args:
        claim: an inequality, limit or rate, or its name.
        method: one of `METHODS`.
        evaluations: number of evaluations of the sides on one instance, in all rounds together.
        seconds: limit of wall time, checked after each move.
        effort: factor of two processor seconds, the budget without a limit of evaluations or
            seconds; see `attlas.verify.portfolio.granted`.
        seed: seed of the starting points of the first round.
        program: the claim's compiled program, where a check has it already.
        batch: starting points of the first round, where a check has drawn them already.
        keep: called with the best report whenever there is a better one, such as to store it.

    Returns:
        The tightest instance; its verdict is VIOLATED when the claim broke. An interrupted search
        (Ctrl-C) returns the best report so far, and `stopped` says so.

    Raises:
        UserError: if the claim offers nothing to challenge, or not by this method.
        KeyboardInterrupt: if it came before the first report.
    """
    claim = one_claim(claim)
    if method not in METHODS:
        raise UserError(f"there is no method '{method}': {nearest(method, METHODS)}")
    with FACTORISING, jax.enable_x64(True):
        program = program or compile_program(claim)
        batch = claim.draw(seed, claim.count) if batch is None else batch
    if claim.parameters:
        options = {"effort": effort, "evaluations": evaluations, "seconds": seconds}
        return _at_worst_parameter(claim, program, seed, keep, options)
    search = Search(claim, program, batch, seed, keep, seconds, is_timed=evaluations is None)
    methods = _methods(claim, method, batch, effort)
    if evaluations is None and seconds is None and is_searchable(claim):
        evaluations = granted(claim, program, batch, effort=effort, seed=seed)
    try:
        search.run(methods, np.inf if evaluations is None else evaluations)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        return replace(search.best, stopped=INTERRUPTED)
    if search.best is None:
        raise UserError(f"claim '{claim.name}' was not searched: {_NOTHING}")
    return search.best


def _at_worst_parameter(
    claim: Claim,
    program: Program,
    seed: int,
    keep: Callable[[ChallengeReport], None] | None,
    options: Mapping[str, Any],
) -> ChallengeReport:
    from attlas.verify.worst_parameter import worst_parameter

    report = worst_parameter(claim, program, seed=seed, **options)
    if keep is not None:
        keep(report)
    return report


def _methods(claim: Claim, method: str, batch: Batch, effort: int | float) -> tuple[str, ...]:
    """The methods in turn."""
    if method == "ascent" and not slopes(claim, batch):
        raise UserError(
            f"claim '{claim.name}' has no gradient to follow: list float arrays in search_over or "
            "domains, use differentiable operations, or choose another method"
        )
    if method == "sizes" and not claim.sizes:
        raise UserError(f"claim '{claim.name}' declares no sizes: give sizes={{'n': 4}}")
    return methods_of(claim, batch, effort=effort) if method == "auto" else (method,)


@refuse_failing_claim
def replay(claim: Claim | str, witness: dict[str, np.ndarray]) -> Verdict:
    """Re-evaluate a claim, or the claim of a name, on one stored instance.

    A probability with parameters is tested on fresh trials at the stored ones.

    Returns:
        The verdict on this instance alone: VIOLATED, NOT_APPLICABLE, or INCONCLUSIVE with
        its slack (one instance never supports a claim).
    """
    claim = one_claim(claim)
    if claim.parameters:
        from attlas.verify.worst_parameter import verdict_at

        return verdict_at(claim, compile_program(claim), witness)
    with FACTORISING, jax.enable_x64(True):
        batch = {name: on_device(np.asarray(value)[None]) for name, value in witness.items()}
        holds, sides = compile_program(claim)(batch)
        evidence = gather(claim, holds, sides[0])
        verdict, _ = decided(claim, evidence, batch)
    return replace(verdict, witness=dict(witness))
