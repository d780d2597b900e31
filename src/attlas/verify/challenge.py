r"""Challenge an inequality by several methods behind one call.

========== ========================================================================================
Method     What it does
========== ========================================================================================
moves      random moves of adaptive length, the attack of a check
ascent     gradient ascent with restarts, where the sides have a slope in `search_over`
evolution  CMA-ES with restarts and growing populations, of which each instance is a member
covariance evolution strategy with covariance adaptation, of each instance by itself
extremes   coordinates at the ends of their ranges
sizes      random moves on larger instances, where the claim declares `sizes`
draws      fresh instances of the sampler and nothing else, where what is rare is not near
auto       all of these that apply, in turn
========== ========================================================================================

The budget is a number of evaluations of the sides on one instance (a step of the ascent counts as
one): equal seeds and budgets give equal results on equal machines. Seconds only end a search
earlier, and the report counts the evaluations, so that anybody can repeat them.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import jax
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim
from attlas.claims.verdict import ChallengeReport, Verdict
from attlas.core.errors import UserError
from attlas.core.names import nearest
from attlas.verify.ascent import STEPS, ascend, has_slope
from attlas.verify.attack import WITHOUT_SLOPES, attack, better, granted_evaluations, judge
from attlas.verify.certify import proved
from attlas.verify.evidence import Batch, Program, compile_program, gather
from attlas.verify.evolution import evolved
from attlas.verify.fresh import drawn_afresh
from attlas.verify.growth import grow
from attlas.verify.registry import one_claim
from attlas.verify.review import decided

METHODS = (*WITHOUT_SLOPES, "ascent", "evolution", "sizes", "draws", "auto")
_ORDER = ("moves", "draws", "ascent", "sizes", "evolution", "extremes", "covariance")
_LENGTH = {"covariance": 8, "evolution": 4, "draws": 4}
"""Rounds of moves that a round of another method lasts: covariances are learnt slowly, and fresh
draws have a fifth of all evaluations."""
_DOUBLINGS = 4
"""Rounds after which the populations of the evolution are small again."""
INTERRUPTED = "interrupted"
_NOTHING = (
    "give rounds or evaluations, and something to search over: list arrays in `search_over`, or "
    "draw normal or uniform numbers from rng in the sampler"
)


def challenge(
    claim: Claim | str,
    *,
    method: str = "auto",
    evaluations: int | None = None,
    seconds: float | None = None,
    rounds: int = 1,
    seed: int = 0,
    program: Program | None = None,
    batch: Batch | None = None,
    keep: Callable[[ChallengeReport], None] | None = None,
) -> ChallengeReport:
    """Search for a violation of an inequality.

    Args:
        claim: an inequality, or its name.
        method: one of `METHODS`.
        evaluations: number of evaluations of the sides on one instance, in all rounds together;
            rounds of fresh starting points follow until they are used up.
        seconds: limit of wall time, checked after each move.
        rounds: number of rounds without a limit of evaluations or seconds.
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
    left = np.inf if evaluations is None else evaluations
    search = _Search(claim, program, batch, keep, time.perf_counter(), seconds, left)
    endless = evaluations is not None or seconds is not None
    stages = itertools.count() if endless else range(rounds)
    methods = _methods(claim, method, batch)
    try:
        for done, name in ((done, name) for done in stages for name in methods):
            if search.ended() or (done and search.best is None):
                break
            search.stage(name, seed, done)
    except KeyboardInterrupt:
        if search.best is None:
            raise
        return replace(search.best, stopped=INTERRUPTED)
    if search.best is None:
        raise UserError(f"claim '{claim.name}' was not searched: {_NOTHING}")
    return search.best


def _methods(claim: Claim, method: str, batch: Batch) -> tuple[str, ...]:
    """The methods in turn."""
    slope = method in ("ascent", "auto") and _slope(claim, batch)
    if method == "ascent" and not slope:
        raise UserError(
            f"claim '{claim.name}' has no gradient to follow: list float arrays in search_over or "
            "domains, use differentiable operations, or choose another method"
        )
    if method == "sizes" and not claim.sizes:
        raise UserError(f"claim '{claim.name}' declares no sizes: give sizes={{'n': 4}}")
    if method != "auto":
        return (method,)
    unfit = {name for name, fits in (("ascent", slope), ("sizes", claim.sizes)) if not fits}
    return tuple(name for name in _ORDER if name not in unfit)


def _slope(claim: Claim, batch: Batch) -> bool:
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        return has_slope(claim, batch)


@dataclass
class _Search:
    """One challenge: its compiled programs, and when it must stop."""

    claim: Claim
    program: Program
    batch: Batch
    keep: Callable[[ChallengeReport], None] | None
    started: float
    seconds: float | None
    left: int | float
    best: ChallengeReport | None = None
    climbs: dict[int, Callable[[Batch], Batch]] = field(default_factory=dict)

    def late(self) -> bool:
        """Whether the time is over."""
        return self.seconds is not None and time.perf_counter() - self.started >= self.seconds

    def ended(self) -> bool:
        """Whether the claim is violated, or the budget used up; one stage always runs."""
        spent = self.late() or self.left < self.claim.count
        return self.best is not None and (self.best.violated or spent)

    def stage(self, name: str, seed: int, done: int) -> None:
        """One round of one method, after `done` rounds; the first starts from the check's batch."""
        report = self._round(name, seed + done, done)
        if report is None:
            return
        self.left -= report.evaluations
        report = proved(self.claim, report)
        new = better(self.best, report)
        is_other = self.best is None or new.verdict is not self.best.verdict
        if self.keep is not None and is_other:
            self.keep(new)
        self.best = new

    def _round(self, name: str, seed: int, done: int) -> ChallengeReport | None:
        first = done == 0
        claim, granted = self.claim, granted_evaluations(self.claim)
        granted = int(min(granted * _LENGTH.get(name, 1), self.left))
        if name == "draws":
            return drawn_afresh(claim, self.program, seed=seed, evaluations=granted, stop=self.late)
        if name == "evolution":
            return evolved(
                claim,
                self.program,
                self.batch if first else claim.draw(seed, claim.count),
                seed=seed,
                evaluations=granted,
                doublings=done % _DOUBLINGS,
                stop=self.late,
            )
        if name == "sizes":
            return grow(claim, evaluations=granted, seed=seed, stop=self.late)
        if name != "ascent":
            return attack(
                claim,
                method=name,
                evaluations=granted,
                seed=seed,
                program=self.program,
                batch=self.batch if first else None,
                stop=self.late,
            )
        # Adam mixes integer counts with floats, which strict promotion would refuse.
        with FACTORISING, jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
            start = self.batch if first else claim.draw(seed, claim.count)
            steps = int(min(STEPS, max(1, self.left // claim.count - 1)))
            if steps not in self.climbs:
                self.climbs[steps] = ascend(claim, steps)
            ended = self.climbs[steps](start)
            return replace(judge(claim, self.program, ended, seed, steps), method="ascent")


def replay(claim: Claim | str, witness: dict[str, np.ndarray]) -> Verdict:
    """Re-evaluate a claim, or the claim of a name, on one stored instance.

    Returns:
        The verdict on this instance alone: VIOLATED, NOT_APPLICABLE, or INCONCLUSIVE with
        its slack (one instance never supports a claim).
    """
    claim = one_claim(claim)
    with FACTORISING, jax.enable_x64(True):
        batch = {name: on_device(np.asarray(value)[None]) for name, value in witness.items()}
        holds, sides = compile_program(claim)(batch)
        evidence = gather(claim, holds, sides[0])
        verdict, _ = decided(claim, evidence, batch)
    return replace(verdict, witness=dict(witness))
