"""A violating instance is shrunk: simpler arrays are tried as long as one violates still.

The order is that of `attlas.verify.shrink.simplicity`: fewer entries, fewer nonzero ones, fewer
digits. Every instance that is accepted satisfies the assumptions, is a fixed point of the claim's
projection, lies in the supports of `attlas.verify.shrink.support` and, by exact arithmetic, in the
declared domains (`attlas.verify.shrink.membership`); the last one is confirmed in
digits, or else one before it. Where arrays are left that the sampler computes, the numbers that it
drew are shrunk instead, by `attlas.verify.shrink.drawn_numbers`.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim
from attlas.claims.kinds.inequality import Entrywise
from attlas.claims.shrunk_witness import ShrunkWitness
from attlas.claims.sides import Batch, Program, flat
from attlas.claims.verdict import ChallengeReport, Confirmation, Witness
from attlas.core.errors import UserError
from attlas.verify.digits.confirm import confirmed
from attlas.verify.evidence import compile_program, gather, instance_at
from attlas.verify.registry import refuse_failing_claim
from attlas.verify.shrink.membership import lies_in
from attlas.verify.shrink.simpler import PASSES, Change
from attlas.verify.shrink.simplicity import Cost, cost
from attlas.verify.shrink.sizes import smaller
from attlas.verify.shrink.support import Support, supports_of

if TYPE_CHECKING:  # most witnesses are arrays that were drawn as they are
    from attlas.verify.shrink.drawn_numbers import DrawnNumbers

EVALUATIONS = 20_000
"""Evaluations of the sides on one instance."""
SECONDS = 10.0
"""After which no further instance is tried."""
_ROWS = 32
_CONFIRMATIONS = 4
_NEAR = 1e-12
"""Relative change up to which an instance is a fixed point of a projection."""
Arrays = dict[str, np.ndarray]


@refuse_failing_claim
def shrunk(
    claim: Claim,
    witness: Witness,
    *,
    seed: int = 0,
    evaluations: int = EVALUATIONS,
    seconds: float = SECONDS,
) -> ShrunkWitness | None:
    r"""A simpler instance that violates a claim, confirmed in digits.

    Args:
        claim: of a kind whose sides are compared entry by entry.
        witness: an instance that violates it.
        seed: of the draws from which supports are read.
        evaluations: budget of evaluations of the sides on one instance.
        seconds: limit of time, checked between batches.

    Returns:
        None where the claim is decided by many instances, or no instance is confirmed.

    Raises:
        UserError: if the witness holds what is no array of numbers.

    Examples:
        >>> from attlas.claims.claim import Control
        >>> from attlas.claims.statement import inequality
        >>> def draw(rng, count):
        ...     return {"x": rng.uniform(-3, 3, size=(count, 8)), "y": rng.normal(size=count)}
        >>> @inequality(sample=draw, controls=[Control("half", factor=0.5)])
        ... def total(x, y, *, factor=1.0):
        ...     r"$$\sum_i x_i \le 2$$"
        ...     return x.sum() + 0 * y, factor * 2.0
        >>> witness = {"x": np.full(8, 0.8125), "y": np.array(1.2345678)}
        >>> small = shrunk(total, witness)
        >>> small.arrays["x"].tolist(), small.arrays["y"].tolist()
        ([3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0.0)
    """
    if not isinstance(claim.kind.rule, Entrywise) or claim.kind.rule.single_instance:
        return None
    start = {name: np.asarray(value) for name, value in witness.items()}
    _refuse_what_is_no_number(start)
    with FACTORISING, jax.enable_x64(True), np.errstate(all="ignore"):
        supports, kept = supports_of(claim, start, seed)
        if claim.recertify is not None:
            supports, kept = {}, set(start)  # outputs of a solver belong to the arrays as they are
        program = compile_program(replace(claim, controls=()))
        budget = _Budget(evaluations, time.perf_counter() + seconds)
        search = _Shrinking(claim, program, supports, budget, start)
        if supports:
            search.run(seed)
        if kept and claim.recertify is None:
            search = _by_numbers(search, seed) or search
        confirmation = search.settle()
    if confirmation is None:
        return None
    spent = evaluations - budget.evaluations
    sides = (confirmation.left, confirmation.right, confirmation.reason)
    arrays = search.instance(search.arrays)
    return ShrunkWitness(_found_by(claim), arrays, search.as_drawn(kept), *sides, spent)


@refuse_failing_claim
def shrunk_of(claim: Claim, report: ChallengeReport) -> ShrunkWitness | None:
    """A simpler instance than the one by which a search violated a claim.

    Returns:
        None where the search violated nothing, or none is confirmed in digits.

    Examples:
        >>> from attlas.claims.verdict import Outcome, Verdict
        >>> from attlas.verify.registry import one_claim, refuse_failing_claim
        >>> held = ChallengeReport(0.5, False, 64, 10, Verdict(Outcome.SUPPORTED, "held"))
        >>> shrunk_of(one_claim("julistiono2024optimizing/lemma-12"), held) is None
        True
    """
    if not report.violated or not report.verdict.witness:
        return None
    return shrunk(claim, report.verdict.witness, seed=report.verdict.seed)


def _refuse_what_is_no_number(arrays: Arrays) -> None:
    if strange := sorted(name for name, v in arrays.items() if v.dtype.kind not in "biufc"):
        raise UserError(f"'{strange[0]}' of the witness is no array of numbers: give one")


def _found_by(claim: Claim) -> str:
    """The name of a claim, or its place from here where a user's file or module defines it."""
    if not claim.home:
        return claim.name
    file = Path(claim.home)
    if file.is_absolute() and file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())
    return f"{file}:{claim.function.__name__}"


@dataclass
class _Budget:
    """What may still be spent."""

    evaluations: int
    until: float

    def ended(self) -> bool:
        return self.evaluations <= 0 or time.perf_counter() > self.until


def _by_numbers(search: "_Shrinking", seed: int) -> "_Shrinking | None":
    """A search on the numbers that the sampler drew, where that ends at a simpler instance."""
    from attlas.verify.shrink.drawn_numbers import drawn_numbers

    claim, first = search.claim, search.accepted[0]
    numbers = drawn_numbers(claim, first, seed, claim.count)
    if numbers is None or not numbers.start or numbers.count < _ROWS:
        return None
    start = (claim, search.program, numbers.supports, search.budget, numbers.start)
    by_draws = _Shrinking(*start, numbers=numbers)
    by_draws.images[_key(numbers.start)] = first
    by_draws.run(seed)
    simpler = cost(by_draws.instance(by_draws.arrays)) < cost(search.arrays)
    return by_draws if simpler else None


def _key(arrays: Arrays) -> tuple[bytes, ...]:
    return tuple(value.tobytes() for value in arrays.values())


@dataclass
class _Shrinking:
    """The instance so far, and those that were accepted before it.

    Where `numbers` are what the sampler drew, `arrays` are these, and each makes an instance.
    """

    claim: Claim
    program: Program
    supports: dict[str, Support]
    budget: _Budget
    arrays: Arrays
    accepted: list[Arrays] = field(default_factory=list)
    numbers: "DrawnNumbers | None" = None
    images: dict[tuple[bytes, ...], Arrays] = field(default_factory=dict)

    def __post_init__(self):
        self.accepted.append(self.arrays)
        self._project = None
        if self.claim.project is not None:
            project = jax.vmap(self.claim.project_instance)
            self._project = jax.jit(project, compiler_options=CHEAP_COMPILATION)

    def run(self, seed: int) -> None:
        """All passes, until none makes the instance simpler."""
        before = None
        while before != (now := cost(self.arrays)) and not self.budget.ended():
            before = now
            for simpler in PASSES:
                while self._improved(simpler(self.arrays, self.supports)):
                    pass
            while self.numbers is None and self._improved(
                smaller(self.claim, self.arrays, self.supports, seed)
            ):
                pass

    def as_drawn(self, names: set[str]) -> tuple[str, ...]:
        """The arrays of those names, in order; all are made anew where numbers are shrunk."""
        return tuple(sorted(names)) if self.numbers is None else ()

    def instance(self, arrays: Arrays) -> Arrays:
        """The instance that arrays are, or that the sampler made of numbers."""
        return arrays if self.numbers is None else self.images[_key(arrays)]

    def settle(self) -> Confirmation | None:
        """The confirmation of the simplest accepted instance that digits confirm."""
        last = self.accepted[1:][::-1]
        places = [*last[:: max(1, len(last) // (_CONFIRMATIONS - 1))], self.accepted[0]]
        for arrays in places:
            confirmation = confirmed(self.claim, self.instance(arrays))
            if confirmation.violates:
                self.arrays = arrays
                return confirmation
        return None

    def _improved(self, changes: Iterable[Change]) -> bool:
        """Whether one of the changes was accepted: the simplest of the first batch that has one."""
        admitted = self._admitted(changes)
        while some := list(islice(admitted, _ROWS)):
            if self.budget.ended():
                return False
            groups: dict[Any, list[Arrays]] = {}
            for arrays in some:
                shapes = tuple(value.shape for value in arrays.values())
                groups.setdefault(shapes, []).append(arrays)
            good = [each for group in groups.values() for each in self._violating(group)]
            if good:
                self.arrays = min(good, key=self._cost)
                self.accepted.append(self.arrays)
                return True
        return False

    def _cost(self, arrays: Arrays) -> Cost:
        return cost({name: arrays[name] for name in self.supports})

    def _admitted(self, changes: Iterable[Change]) -> Iterator[Arrays]:
        """Instances that are simpler, different from each other, and inside the supports."""
        now, tried = self._cost(self.arrays), set()
        for simple in changes:
            change = {name: np.asarray(value) for name, value in simple.items()}
            inside = all(
                np.all(np.isfinite(value)) and self.supports[name].contains(value)
                for name, value in change.items()
            )
            arrays = {**self.arrays, **change}
            key = tuple(value.tobytes() for value in change.values())
            if inside and (*change, key) not in tried and self._cost(arrays) < now:
                tried.add((*change, key))
                yield arrays

    def _violating(self, instances: list[Arrays]) -> list[Arrays]:
        """The simplest instance that violates in floats where the assumptions hold, if one does.

        One that a projection moves is taken where it ends, if that is simpler still.
        """
        self.budget.evaluations -= len(instances)
        batch = self._batch(instances)
        if batch is None:
            return []
        if self._project is not None:
            batch = _inside(batch, self._project(batch))
        holds, sides = self.program(batch)
        evidence = gather(self.claim, holds, sides[0])
        numbers = (evidence.left, evidence.right, evidence.magnitude, evidence.error)
        floats = [value for value in map(np.asarray, batch.values()) if value.dtype.kind in "fc"]
        sure = [np.isfinite(flat(array)).all(axis=1) for array in (*numbers, *floats)]
        finite = np.all(sure, axis=0)
        broken = self.claim.kind.rule.violating(evidence, self.claim.roundings)
        good = np.flatnonzero((broken & evidence.applicable & finite)[: len(instances)])
        instances_of = {int(k): instance_at(batch, int(k)) for k in good}
        drawn = self.numbers is not None
        arrays_of = {k: instances[k] for k in instances_of} if drawn else instances_of
        for k in sorted(instances_of, key=lambda k: self._cost(arrays_of[k])):
            simpler = self._cost(arrays_of[k]) < self._cost(self.arrays)
            if simpler and self._is_declared(instances_of[k]):
                self.images[_key(arrays_of[k])] = instances_of[k]
                return [arrays_of[k]]
        return []

    def _is_declared(self, instance: Arrays) -> bool:
        """Whether the arrays that were changed lie in their domains, by exact arithmetic."""
        first = self.instance(self.accepted[0])
        return all(
            lies_in(domain, instance)
            for domain in self.claim.domains
            if not np.array_equal(instance[domain.name], first[domain.name])
        )

    def _batch(self, instances: list[Arrays]) -> Batch | None:
        """Instances as one batch, of one size for a compiled program."""
        if self.numbers is not None:
            return self.numbers.instances(instances)
        rows = len(instances) if self.claim.backend == "numpy" else _ROWS
        padded = instances + instances[:1] * (rows - len(instances))
        return {name: np.stack([each[name] for each in padded]) for name in padded[0]}


def _inside(batch: Batch, projected: Batch) -> Batch:
    """Arrays where a projection leaves them, or as they are where it moves them by rounding."""
    result = {}
    for name, value in batch.items():
        before, after = np.asarray(value), np.asarray(projected[name])
        same = _same(before, after).reshape(-1, *(1,) * (before.ndim - 1))
        result[name] = np.where(same, before, after)
    return result


def _same(before: Any, after: Any) -> np.ndarray:
    """On which instances a projection moves an array by no more than rounding."""
    before, after = flat(np.asarray(before)), flat(np.asarray(after))
    size = np.abs(before).max(axis=1, initial=0)
    return np.abs(after - before).max(axis=1, initial=0) <= _NEAR * np.maximum(size, 1.0)
