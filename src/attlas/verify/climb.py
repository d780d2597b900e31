r"""The loop of a search without gradients: an instance accepts a proposal where its score grows.

The score is (left - right) / (|left| + |right| + magnitude) + (left - right - tau) / (|left| +
|right| + tau), where tau is what rounding allows. The first term has a slope everywhere, but is
largest where both sides vanish against their terms; the second is monotone in the tightness and
lowest there. Of a limit or rate it is that of `attlas.verify.trend_search`. It is of one component
per instance in turn, or of the worst.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array

from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Claim, Sides
from attlas.verify.evidence import Batch, Program, gather
from attlas.verify.proposals import Proposal
from attlas.verify.space import Blocks, select_gained, space_of
from attlas.verify.trend_search import contradiction, trend_of, trend_score

BROKEN = 10.0
"""Added to the score of a violation, so that no better ratio replaces it."""


class Climbed(NamedTuple):
    """End points of a search, one per instance, the moves that led there, and their numbers."""

    batch: Batch
    moves: int
    blocks: Blocks


def climb(
    claim: Claim,
    program: Program,
    batch: Batch,
    make: Callable[[int, np.random.Generator], Proposal],
    *,
    seed: int,
    moves: int,
    stop: Callable[[], bool] | None = None,
) -> Climbed:
    """Let each instance of a batch climb by itself.

    Args:
        make: makes the proposal, from the number of instances and a generator.
        seed: seed from which the starting points were drawn.
        moves: largest number of moves; each evaluates every instance once.
        stop: called after each move; the search ends where it is true.

    Returns:
        The end points; zero moves where the claim offers nothing to move.
    """
    space = space_of(claim, batch, seed)
    score = scores(claim, *program(batch))
    proposal = make(len(score), np.random.default_rng([seed, 200]))
    blocks = space.blocks
    ended = {name: np.array(value) for name, value in batch.items()}
    done = 0
    while blocks and done < moves and not (done and stop is not None and stop()):
        proposed = proposal.propose(blocks)
        moved = space.batch(proposed)
        done += 1
        if moved is None:
            proposal.learn(blocks, proposed, None)
            continue
        if done == 1 and not _differ(moved, batch):
            return Climbed(batch, 0, blocks)
        new = scores(claim, *program(moved))
        gained = new > score
        proposal.learn(blocks, proposed, gained)
        if gained.any():
            for name, value in ended.items():
                value[gained] = np.asarray(moved[name])[gained]
            blocks = space.settled(select_gained(blocks, proposed, gained), ended)
            score = np.where(gained, new, score)
    return Climbed({name: on_device(value) for name, value in ended.items()}, done, blocks)


def _differ(first: Batch, second: Batch) -> bool:
    return any(bool(np.any(np.asarray(first[k]) != np.asarray(v))) for k, v in second.items())


def relative_excess(left: Any, right: Any, magnitude: Any, allowed: Any, xp: ModuleType) -> Any:
    """The score that a search maximises, elementwise: see the head of this module.

    Args:
        magnitude: size of the terms that were added up to reach the sides.
        xp: `numpy`, or `jax.numpy` for a gradient.

    Examples:
        >>> float(relative_excess(3.0, 1.0, 4.0, 0.0, np))
        0.75
    """
    size, excess = xp.abs(left) + xp.abs(right), left - right
    plain, certain = size + magnitude, size + allowed
    ratio = excess / xp.where(plain > 0, plain, 1)
    return ratio + (excess - allowed) / xp.where(certain > 0, certain, 1)


def scores(
    claim: Claim,
    holds: Array | np.ndarray,
    sides: tuple[Sides, ...],
    turn: np.ndarray | None = None,
) -> np.ndarray:
    """The score of each instance: of one component in turn, or of the worst.

    Args:
        holds: truth of each assumption, shape (count, assumptions).
        sides: those of the claim first, then those of its controls.
        turn: a number of each instance, whose component is that of this number modulo their count;
            its place in the batch by default.

    Returns:
        Array of shape (count,); -inf where an assumption fails or a side is not finite.
    """
    score = _scores_of_sequences if claim.kind.rule.scaled else _scores_of_entries
    score = score(claim, sides[0]).reshape(len(holds), -1)
    finite = np.isfinite(score).all(axis=1) & np.asarray(holds).all(axis=1)
    count, entries = score.shape
    worst = score.max(axis=1)
    if 1 < entries <= count // 4:
        turn = np.arange(count) if turn is None else turn
        own_entry = score[np.arange(count), turn % entries]
        worst = np.where(worst >= BROKEN / 2, worst, own_entry)
    return np.where(finite, worst, -np.inf)


def _scores_of_entries(claim: Claim, sides: Sides) -> np.ndarray:
    left, right, magnitude, error = map(np.asarray, sides[:4])
    allowed = claim.roundings * np.finfo(float).eps * magnitude + error
    score = relative_excess(left, right, magnitude, allowed, np)
    return score + BROKEN * (left - right > allowed)


def _scores_of_sequences(claim: Claim, sides: Sides) -> np.ndarray:
    evidence = gather(claim, np.ones((len(sides.left), 1), dtype=bool), sides)
    score = trend_score(trend_of(claim), evidence, claim.roundings, np)
    broken = contradiction(claim, evidence)
    return np.asarray(score).reshape(broken.shape) + BROKEN * broken
