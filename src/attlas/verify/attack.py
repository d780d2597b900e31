r"""Attack an inequality without derivatives, on the program that the check has compiled already.

Each instance of a batch climbs by itself: random moves of adaptive length are kept where the
relative excess of its component grows and the assumptions hold. What moves is either the arrays of
`search_over`, brought back by `project` and certified again by `recertify` at the end; or, where a
claim names none, the random numbers from which its sampler made the instances. The second never
leaves the sampler's support, so that every sampled inequality is attacked as it stands.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.core.claim import Claim, Sides
from attlas.core.errors import UserError
from attlas.core.factorising import FACTORISING
from attlas.core.generator import generator
from attlas.core.moved_draws import MovedGenerator, within
from attlas.core.named_call import call_by_name
from attlas.core.verdict import ChallengeReport, Outcome
from attlas.verify.decide import decide
from attlas.verify.evidence import Batch, Program, compile_program, gather
from attlas.verify.searchable import is_searchable

STEPS = 200
"""Moves of a round, if its time suffices."""
SECONDS = 0.15
"""Processor time of a round: 300 inequalities are attacked in less than a minute."""
_PLAN = ("all", "few", "again", "one", "again", "between", "size", "again")
"""The moves in turn; `again` repeats what helped an instance last, half as far once more."""
_BROKEN = 10.0
"""Added to the score of a violation, so that none is left again for a better ratio."""


def attack(
    claim: Claim,
    *,
    rounds: int = 1,
    seconds: float = SECONDS,
    seed: int = 0,
    program: Program | None = None,
    batch: Batch | None = None,
) -> ChallengeReport | None:
    """Search for a violation of an inequality.

    Args:
        claim: an inequality.
        rounds: rounds of fresh starting points.
        seconds: processor time of a round; at least one move is made.
        seed: of the starting points of the first round.
        program: the claim's compiled program, where a check has it already.
        batch: starting points of the first round, where a check has drawn them already.

    Returns:
        The tightest instance found; its verdict is VIOLATED when the claim broke. None where
        nothing moves: see `attlas.verify.searchable`, and where the sampler makes its instances
        of no normal or uniform number.
    """
    if not is_searchable(claim):
        return None
    best: ChallengeReport | None = None
    with FACTORISING, jax.enable_x64(True), np.errstate(all="ignore"):
        program = program or compile_program(claim)
        for done in range(rounds):
            start = batch if done == 0 and batch is not None else None
            start = claim.draw(seed + done, claim.count) if start is None else start
            ended, steps = _climb(claim, program, start, seed + done, seconds)
            if not steps:
                return None
            best = better(best, judge(claim, program, ended, seed + done, steps))
            if best.violated:
                break
    return best


def judge(claim: Claim, program: Program, batch: Batch, seed: int, steps: int) -> ChallengeReport:
    """Solve again what a search froze, and decide on its end points.

    Args:
        claim: an inequality.
        program: its compiled program.
        batch: end points.
        seed: of the starting points.
        steps: moves that were made.

    Returns:
        The report with its witness.
    """
    if claim.recertify is not None:
        batch = {**batch, **call_by_name(claim.recertify, batch)}
    holds, sides = program(batch)
    verdict = decide(claim, gather(claim, holds, sides[0], batch=batch), seed=seed)
    if verdict.index is not None:
        witness = {k: np.asarray(v[verdict.index]) for k, v in batch.items()}
        verdict = replace(verdict, witness=witness)
    violated = verdict.outcome is Outcome.VIOLATED
    return ChallengeReport(verdict.tightness, violated, verdict.tried, steps, verdict)


def better(old: ChallengeReport | None, new: ChallengeReport) -> ChallengeReport:
    """The report that says more: a violation, else the larger ratio.

    Args:
        old: of earlier rounds.
        new: of this one.

    Returns:
        One of them.
    """
    if old is None or new.violated:
        return new
    return new if (new.ratio or -np.inf) > (old.ratio or -np.inf) else old


@dataclass(frozen=True)
class _Block:
    """Numbers that move together: their first axis runs over `rows`, instances of the batch."""

    values: np.ndarray
    rows: np.ndarray
    law: str = "free"


_Blocks = dict[Any, _Block]


class _Space(Protocol):
    """What a search moves."""

    blocks: _Blocks

    def batch(self, blocks: _Blocks) -> Batch | None:
        """The instances at moved numbers, or None where there are none."""
        ...

    def settled(self, blocks: _Blocks, batch: Mapping[str, np.ndarray]) -> _Blocks:
        """The numbers of instances as they came out."""
        ...


class _Arrays:
    """The arrays of `search_over`, each in units of its own size on the instance."""

    def __init__(self, claim: Claim, batch: Batch):
        self._start = dict(batch)
        self._inside = jax.jit(jax.vmap(claim.moved_inside)) if claim.project else None
        self._unit, self.blocks = {}, {}
        for name in claim.search_over:
            value = np.asarray(batch[name])
            size = np.sqrt(np.mean(value**2, axis=tuple(range(1, value.ndim)), keepdims=True))
            self._unit[name] = np.where(size > 0, size, 1.0)
            self.blocks[name] = _Block(value / self._unit[name], np.arange(len(value)))

    def batch(self, blocks: _Blocks) -> Batch | None:
        whole = self._start | {
            name: jnp.asarray(block.values * self._unit[name]) for name, block in blocks.items()
        }
        return whole if self._inside is None else self._inside(whole)

    def settled(self, blocks: _Blocks, batch: Mapping[str, np.ndarray]) -> _Blocks:
        return {
            name: replace(block, values=batch[name] / self._unit[name])
            for name, block in blocks.items()
        }


class _Draws:
    """The normal and uniform numbers that the claim's sampler draws."""

    def __init__(self, claim: Claim, batch: Batch, seed: int):
        self._claim, self._seed, self._like = claim, seed, batch
        self._count = len(next(iter(batch.values())))
        first = self._generator({})
        claim.sample(first, self._count)
        self.blocks = {
            place: _Block(value, np.arange(self._count), first.law(place))
            for place, value in first.numbers.items()
            if value.ndim and len(value) == self._count
        }
        # Where a sampler draws instance by instance, its calls come in equal shares.
        others = [place for place in first.numbers if place not in self.blocks]
        if others and len(others) % self._count == 0:
            share = len(others) // self._count
            self.blocks |= {
                place: _Block(first.numbers[place][None], np.array([k // share]), first.law(place))
                for k, place in enumerate(others)
            }

    def _generator(self, numbers: dict[int, np.ndarray]) -> MovedGenerator:
        return MovedGenerator(generator(jax.random.key(self._seed)), numbers)

    def batch(self, blocks: _Blocks) -> Batch | None:
        numbers = {
            place: block.values if len(block.rows) == self._count else block.values[0]
            for place, block in blocks.items()
        }
        try:
            found = self._claim.sample(self._generator(numbers), self._count)
        except (ArithmeticError, ValueError, RuntimeError, UserError):
            # A solver of the sampler may not converge on an extreme instance: not a move.
            return None
        found = {name: jnp.asarray(value) for name, value in found.items()}
        same = all(
            found[name].shape == value.shape and found[name].dtype == value.dtype
            for name, value in self._like.items()
        )
        return found if same else None

    def settled(self, blocks: _Blocks, batch: Mapping[str, np.ndarray]) -> _Blocks:
        del batch
        return blocks


def _climb(
    claim: Claim, program: Program, batch: Batch, seed: int, seconds: float
) -> tuple[Batch, int]:
    """The end points of one round, and how many moves were made."""
    deadline = time.process_time() + seconds
    space: _Space = _Arrays(claim, batch) if claim.search_over else _Draws(claim, batch, seed)
    blocks, rng = space.blocks, np.random.default_rng([seed, STEPS])
    score = _scores(claim, *program(batch))
    length, last = np.full(len(score), 0.3), None
    ended = {name: np.asarray(value) for name, value in batch.items()}
    done = 0
    while blocks and done < STEPS and (done == 0 or time.process_time() < deadline):
        move = _PLAN[done % len(_PLAN)]
        proposed = _moved(blocks, move, length, last, rng)
        found = space.batch(proposed)
        done += 1
        if found is None:
            length *= 0.7
            continue
        if done == 1 and not _differ(found, batch):
            return batch, 0
        new = _scores(claim, *program(found))
        gained = new > score
        last = _change(blocks, proposed, gained, last)
        ended = {
            name: np.where(_spread(gained, value), np.asarray(found[name]), value)
            for name, value in ended.items()
        }
        blocks = space.settled(_chosen(blocks, proposed, gained), ended)
        score = np.where(gained, new, score)
        length = np.clip(length * np.where(gained, 1.6, 0.85), 1e-8, 4.0)
    return {name: jnp.asarray(value) for name, value in ended.items()}, done


def _differ(one: Batch, other: Batch) -> bool:
    return any(bool(np.any(np.asarray(one[k]) != np.asarray(v))) for k, v in other.items())


def _scores(claim: Claim, holds: Array, sides: tuple[Sides, ...]) -> np.ndarray:
    """The relative excess that each instance raises: of one component in turn, or the worst."""
    own = sides[0]
    left, right, magnitude, error = (
        np.asarray(part).reshape(len(holds), -1)
        for part in (own.left, own.right, own.magnitude, own.error)
    )
    size, excess = np.abs(left) + np.abs(right), left - right
    allowed = claim.roundings * np.finfo(float).eps * magnitude + error
    score = excess / np.where(size + magnitude > 0, size + magnitude, 1)
    score = score + (excess - allowed) / np.where(size + allowed > 0, size + allowed, 1)
    score = score + _BROKEN * (excess > allowed)
    finite = np.isfinite(score).all(axis=1) & np.asarray(holds).all(axis=1)
    count, entries = score.shape
    worst = score.max(axis=1)
    if 1 < entries <= count // 4:
        own_entry = score[np.arange(count), np.arange(count) % entries]
        worst = np.where(worst >= _BROKEN / 2, worst, own_entry)
    return np.where(finite, worst, -np.inf)


def _spread(mask: np.ndarray, like: np.ndarray) -> np.ndarray:
    return mask.reshape(-1, *(1,) * (like.ndim - 1))


def _moved(
    blocks: _Blocks,
    move: str,
    length: np.ndarray,
    last: dict[Any, np.ndarray] | None,
    rng: np.random.Generator,
) -> _Blocks:
    """All numbers after one move, of each instance's own length."""
    if move == "again" and last is None:
        move = "all"
    names = list(blocks)
    chosen = rng.integers(len(names), size=len(length))
    moved = {}
    for k, (name, block) in enumerate(blocks.items()):
        x = block.values
        far = _spread(length[block.rows], x) * (0.5 if block.law == "uniform" else 1.0)
        noise = far * rng.standard_normal(x.shape)
        if move == "few":
            noise = 2 * noise * (rng.random(x.shape) < max(0.15, 1 / max(1, x[0].size)))
        elif move == "one":
            noise = noise * _spread(chosen[block.rows] == k, x)
        elif move == "again" and last is not None:
            noise = 1.5 * last[name] + 0.1 * noise
        elif move == "between" and len(x) > 3:
            one, other = (rng.permutation(len(x)) for _ in range(2))
            noise = np.minimum(far, 1.0) * (x[one] - x[other]) + 0.1 * noise
        elif move == "size":
            noise = x * np.expm1(far * _spread(rng.standard_normal(len(x)), x))
        moved[name] = replace(block, values=within(x + noise, block.law))
    return moved


def _chosen(blocks: _Blocks, proposed: _Blocks, gained: np.ndarray) -> _Blocks:
    return {
        name: replace(
            block,
            values=np.where(
                _spread(gained[block.rows], block.values), proposed[name].values, block.values
            ),
        )
        for name, block in blocks.items()
    }


def _change(
    blocks: _Blocks, proposed: _Blocks, gained: np.ndarray, last: dict[Any, np.ndarray] | None
) -> dict[Any, np.ndarray]:
    """The change that helped each instance last; half of it where it did not help again."""
    return {
        name: np.where(
            _spread(gained[block.rows], block.values),
            proposed[name].values - block.values,
            0.5 * (0 if last is None else last[name]),
        )
        for name, block in blocks.items()
    }
