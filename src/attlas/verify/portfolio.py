r"""One portfolio of searches, for check, pytest and challenge alike.

============ ======================================================================================
Method       What it does
============ ======================================================================================
moves        random moves of adaptive length; integers are drawn again and exchanged
draws        fresh instances of the sampler and nothing else, where what is rare is not near
evolution    CMA-ES with restarts and growing populations, of which each instance is a member
covariance   evolution strategy with covariance adaptation, of each instance by itself
extremes     coordinates at the ends of their ranges
coincidences next to sets on which arrays, rows or entries coincide, where both sides may be equal
ascent       gradient ascent with restarts, where the sides have a slope in `search_over`
sizes        random moves on larger instances, where the claim declares `sizes`
auto         all of these that apply, in turn; covariance where evolution cannot copy instances
parameters   the worst parameter of a probability, confirmed by fresh trials; its only method
============ ======================================================================================

The budget is a number of evaluations of the sides on one instance (a step of the ascent counts as
one), divided among the methods in rounds that double: equal seeds and numbers of evaluations give
equal results on equal machines, whatever else these do. By default it is what two seconds of
processor time allow, by the measured cost of a batch. Draws of a slow sampler then have the time of
the moves and not their number. Both are rounded to powers of two: the clock decides how much is
searched and never what. Reports count the evaluations.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import jax
import numpy as np

from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim
from attlas.claims.sampling import seconds_to_draw
from attlas.claims.verdict import ChallengeReport
from attlas.verify.attack import WITHOUT_SLOPES, Origin, attack, better, judge
from attlas.verify.certify import proved
from attlas.verify.climb import climb
from attlas.verify.evidence import Batch, Program
from attlas.verify.evolution import evolved
from attlas.verify.fresh import drawn_afresh
from attlas.verify.growth import grow
from attlas.verify.proposals import Moves
from attlas.verify.searchable import is_searchable

SECONDS = 2.0
"""Processor seconds of a search at effort 1, without compilation."""
SHARES = {
    "moves": 9,
    "draws": 8,
    "evolution": 9,
    "extremes": 2,
    "coincidences": 2,
    "ascent": 6,
    "sizes": 4,
}
"""Shares of a round; draws have at least a fifth."""
METHODS = (*WITHOUT_SLOPES, "ascent", "evolution", "sizes", "draws", "auto")
_LEAST = {
    "moves": 2,
    "draws": 1,
    "evolution": 16,
    "extremes": 4,
    "coincidences": 4,
    "ascent": 2,
    "sizes": 18,
}
"""Batches below which a method is left out of a round, beside others."""
_WORTHWHILE = 0.5
"""Effort from which ascents and larger sizes are tried, whose programs take a second to compile."""
_FIRST = 100
"""Batches of the first round."""
_ALONE = 400
"""Batches of the first round of one method."""
_DOUBLINGS = 6
"""Rounds that double, after which they stay as long as they are."""
_POPULATIONS = 4
"""Sizes of the populations, each twice the one before; the smallest comes again after the last."""
_BATCHES = (4, 2**13)
"""Least and largest number of batches that a measured budget grants."""


def granted(
    claim: Claim, program: Program, batch: Batch, *, effort: int | float, seed: int = 0
) -> int:
    """Evaluations of a search: what the claim declares, or what the effort's seconds allow.

    Args:
        program: the claim's program, compiled already.
        batch: instances on which the cost is measured.
        effort: factor of two processor seconds, or of the declared number.
        seed: the seed of the batch.

    Returns:
        The effort's part of the number that the claim declares, and at least two batches of it;
        else the instances of a batch times a power of two.
    """
    if claim.evaluations is not None:
        # A move or a batch of draws, and its evaluation at the end, where so many are declared.
        lowest = min(claim.evaluations, 2 * len(next(iter(batch.values()))))
        return max(lowest, int(claim.evaluations * effort))
    least, most = _BATCHES
    allowed = SECONDS * effort / _cost(claim, program, batch, seed)
    batches = 2 ** int(np.clip(np.round(np.log2(allowed)), np.log2(least), np.log2(most)))
    return batches * len(next(iter(batch.values())))


def _cost(claim: Claim, program: Program, batch: Batch, seed: int) -> float:
    """Processor seconds of a move of all instances, with their proposals and evaluation."""
    cost = np.inf
    with FACTORISING, jax.enable_x64(True), np.errstate(all="ignore"):
        for moves in (1, 3):  # the first may compile a projection
            started = time.process_time()
            made = climb(claim, program, batch, Moves, seed=seed, moves=moves).moves
            cost = min(cost, (time.process_time() - started) / (1 + made))
    return max(cost, 1e-6)


def shares(methods: Sequence[str], budget: int | float, count: int) -> dict[str, int]:
    """Evaluations of each method in a round.

    Where a share is too small, the longest method but the first is left out.

    Args:
        methods: names, each with its entry in `SHARES`.
        budget: evaluations of the round.
        count: instances of a batch.

    Examples:
        >>> shares(["moves", "draws", "evolution"], 64 * 140, 64)
        {'moves': 3101, 'draws': 2756, 'evolution': 3101}
        >>> shares(["moves", "draws", "evolution"], 64 * 9, 64)
        {'moves': 304, 'draws': 271}
    """
    if len(methods) == 1:
        return dict.fromkeys(methods, int(budget))
    fit = list(methods)
    while len(fit) > 1:
        total = sum(SHARES[name] for name in fit)
        if all(budget * SHARES[n] / total >= _LEAST[n] * count for n in fit):
            break
        fit.remove(max(fit[1:], key=lambda name: _LEAST[name]))
    total = sum(SHARES[name] for name in fit)
    return {name: int(budget * SHARES[name] / total) for name in fit}


@dataclass
class Search:
    """One search of a claim: its compiled programs, and when it must stop."""

    claim: Claim
    program: Program
    batch: Batch
    seed: int = 0
    keep: Callable[[ChallengeReport], None] | None = None
    seconds: float | None = None
    is_timed: bool = True
    """Whether a clock says how many draws take as long as the moves, else they are as many."""
    started: float = field(default_factory=time.perf_counter)
    best: ChallengeReport | None = None
    _batch_seconds: float = 0.0
    _climbs: dict[int, Callable[[Batch], Batch]] = field(default_factory=dict)
    _unfit: set[str] = field(default_factory=set)

    def run(self, methods: Sequence[str], evaluations: int | float) -> ChallengeReport | None:
        """Search by some methods in turn, until the budget or the time is used up.

        Args:
            methods: names; of one alone, that one has the whole budget.
            evaluations: of the sides on one instance, in all rounds; infinite where seconds end it.

        Returns:
            The best report; None where nothing could be searched.
        """
        count = len(next(iter(self.batch.values())))
        left, first = evaluations, _FIRST if len(methods) > 1 else _ALONE
        for done in itertools.count():
            fit = [name for name in methods if name not in self._unfit]
            budget = min(first * count * 2 ** min(done, _DOUBLINGS), left)
            portions = shares(fit, budget, count)
            for name, part in portions.items():
                if self._ended() or (self.best is not None and left < count):
                    return self.best
                left -= self._stage(name, done, min(part, left))
            if self.best is None or not portions:
                return self.best
        return None

    def _late(self) -> bool:
        return self.seconds is not None and time.perf_counter() - self.started >= self.seconds

    def _ended(self) -> bool:
        return self.best is not None and (self.best.violated or self._late())

    def _stage(self, name: str, done: int, part: int | float) -> int:
        """One method for one round, after `done` rounds; the evaluations that it made."""
        report = self._report(name, done, part)
        if report is None:
            self._unfit.add(name)
            substitute = {"moves": "draws", "evolution": "covariance"}.get(name)
            if substitute is None or (report := self._report(substitute, done, part)) is None:
                return 0
        report = proved(self.claim, report)
        new = better(self.best, report)
        is_other = self.best is None or new.verdict is not self.best.verdict
        if self.keep is not None and is_other:
            self.keep(new)
        self.best = new
        return report.evaluations

    def _report(self, name: str, done: int, part: int | float) -> ChallengeReport | None:
        claim, seed, granted = self.claim, self.seed + done, int(min(part, 2**62))
        if name == "draws":
            return self._afresh(seed, granted)
        if name == "sizes":
            return grow(claim, evaluations=granted, seed=seed, stop=self._late)
        # The sampler may be what takes long: later rounds alone begin at other instances.
        batch = self.batch if done == 0 else claim.draw(seed, claim.count)
        options = {"seed": seed, "evaluations": granted, "stop": self._late}
        if name == "evolution":
            larger = done % _POPULATIONS
            return evolved(claim, self.program, batch, doublings=larger, **options)
        if name == "ascent":
            return self._ascent(batch, seed, granted)
        started = time.process_time()
        report = attack(claim, method=name, program=self.program, batch=batch, **options)
        if report is not None:
            self._batch_seconds = (time.process_time() - started) / (report.steps + 1)
        return report

    def _afresh(self, seed: int, granted: int) -> ChallengeReport | None:
        """Fresh draws for the time that as many moves take, in a power of two of batches."""
        claim = self.claim
        if self.is_timed and self._batch_seconds:
            drawing = seconds_to_draw(claim.sampler(), self.seed, claim.count)
            share = self._batch_seconds / (self._batch_seconds + drawing)
            # A power of two: the noise of a clock must not change what equal seeds find.
            batches = granted / claim.count * 2.0 ** np.round(np.log2(share))
            if batches < 1:
                return None
            granted = claim.count * 2 ** int(np.log2(batches))
        return drawn_afresh(claim, self.program, seed=seed, evaluations=granted, stop=self._late)

    def _ascent(self, batch: Batch, seed: int, granted: int) -> ChallengeReport:
        # Adam mixes integer counts with floats, which strict promotion would refuse.
        from attlas.verify.ascent import STEPS, ascend

        claim = self.claim
        with FACTORISING, jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
            # Few lengths, each of which is a program.
            steps = min(STEPS, max(1, granted // claim.count - 1))
            steps = STEPS if steps == STEPS else 2 ** int(np.log2(steps))
            if steps not in self._climbs:
                self._climbs[steps] = ascend(claim, steps)
            ended = self._climbs[steps](batch)
            report = judge(claim, self.program, ended, seed, steps, Origin(batch))
            return replace(report, method="ascent")


def methods_of(claim: Claim, batch: Batch, *, effort: int | float = 1.0) -> tuple[str, ...]:
    """The methods of `auto` that a claim allows, the compiled ones above half of an effort."""
    fit = ["moves", "draws", "evolution", "extremes", "coincidences"]
    if effort < 1 and claim.evaluations is not None and not claim.search_over:
        # To move the numbers of a sampler that takes long it runs twice, for draws once.
        fit[:2] = ["draws", "moves"]
    if effort >= _WORTHWHILE:
        fit += ["ascent"] if slopes(claim, batch) else []
        fit += ["sizes"] if claim.sizes else []
    return tuple(fit)


def affordable(
    claim: Claim, program: Program, batch: Batch, effort: int | float, seed: int
) -> bool:
    """Whether the least search of a limit or rate fits into its effort.

    A sequence may take minutes on one batch, such as a path that its sampler solves.
    """
    started = time.process_time()
    program(batch)
    cost = time.process_time() - started
    if not claim.search_over:
        cost += seconds_to_draw(claim.sampler(), seed, claim.count)
    return cost * _BATCHES[0] <= SECONDS * effort


def slopes(claim: Claim, batch: Batch) -> bool:
    """Whether the sides have a gradient in `search_over`."""
    if not claim.search_over:
        return False
    from attlas.verify.ascent import has_slope

    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        return has_slope(claim, batch)


def searched(
    claim: Claim,
    program: Program,
    batch: Batch,
    *,
    effort: int | float,
    seed: int,
    alpha: float = 1e-3,
) -> ChallengeReport | None:
    """The search of a check: all methods within the evaluations that an effort allows.

    Args:
        program: the claim's compiled program.
        batch: the instances of the check, from which the search starts.
        effort: factor of two processor seconds.
        seed: the seed of the batch.
        alpha: error probability of fresh trials of a probability at its worst parameter.
    """
    if claim.parameters:
        from attlas.verify.worst_parameter import worst_parameter

        return worst_parameter(claim, program, seed=seed, effort=effort, alpha=alpha)
    if not is_searchable(claim):
        return None
    if claim.kind.rule.scaled and not affordable(claim, program, batch, effort, seed):
        return None
    evaluations = granted(claim, program, batch, effort=effort, seed=seed)
    methods = methods_of(claim, batch, effort=effort)
    return Search(claim, program, batch, seed).run(methods, evaluations)
