r"""Attack an inequality: multi-start gradient ascent on its relative excess.

Maximises (lhs - rhs) / (|lhs| + |rhs| + scale) over the claim's free arrays by Adam, all
starts in one compiled program, projecting with the claim's `domain` after each move. Solver
outputs are frozen during the ascent and solved again on the end points.
"""

import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from attlas.core.claim import Claim, Instance
from attlas.core.errors import UserError
from attlas.core.verdict import ChallengeReport, Outcome, Verdict
from attlas.verify.decide import decide
from attlas.verify.evidence import Batch, Program, compile_program, complete, gather

STEPS = 150
STARTS = 32


def challenge(
    claim: Claim,
    *,
    seconds: float | None = None,
    rounds: int = 1,
    seed: int = 0,
    starts: int = STARTS,
    steps: int = STEPS,
) -> ChallengeReport:
    """Search for a violation of an inequality.

    Args:
        claim: an inequality with free arrays.
        seconds: keep starting new rounds until this much time has passed; else `rounds`.
        rounds: rounds of fresh starting points when `seconds` is None.
        seed: of the first round.
        starts: starting points of a round, moved together.
        steps: ascent steps of a round.

    Returns:
        The tightest instance found; its verdict is VIOLATED when the claim broke.

    Raises:
        UserError: if the claim offers nothing to challenge.
    """
    if not claim.free:
        raise UserError(
            f"claim '{claim.name}' has no free arrays: only inequalities are challenged"
        )
    deadline = None if seconds is None else time.perf_counter() + seconds
    # Adam mixes integer counts with floats, which strict promotion would refuse.
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        climb = jax.jit(jax.vmap(lambda instance: _ascend(claim, instance, steps)))
        program = compile_program(claim)
        best: ChallengeReport | None = None
        done = 0
        while best is None or (
            not best.violated
            and (done < rounds if deadline is None else time.perf_counter() < deadline)
        ):
            batch = claim.instances(jax.random.key(seed + done), starts)
            ended = climb(batch)
            if claim.resolve is not None:
                ended = claim.resolve(ended)
            report = _judge(claim, program, ended, seed + done, (starts, steps))
            best = _better(best, report)
            done += 1
    return best


def _excess(claim: Claim, instance: Instance) -> Array:
    """The challenged quantity; -inf outside the assumptions or where it is not a number."""
    sides = complete(claim.sides(instance))
    size = jnp.abs(sides.lhs) + jnp.abs(sides.rhs) + jnp.asarray(sides.scale)
    safe = jnp.where(size > 0, size, 1)
    return jnp.max((sides.lhs - sides.rhs) / safe)


def _allowed(claim: Claim, instance: Instance) -> Array:
    holds = [jnp.asarray(a.holds(instance), dtype=bool) for a in claim.assumptions]
    return jnp.all(jnp.stack(holds)) if holds else jnp.asarray(True)


def _ascend(claim: Claim, instance: Instance, steps: int) -> Instance:
    """Adam ascent from one instance; returns the best admissible point of the path."""
    frozen = {k: v for k, v in instance.items() if k not in claim.free}
    free = {k: instance[k] for k in claim.free}

    def place(moved: dict[str, Array]) -> Instance:
        whole = {**frozen, **moved}
        return whole if claim.domain is None else claim.domain(whole)

    # Each array moves relative to its own size, so that no unit has to be guessed.
    unit = {k: jnp.sqrt(jnp.mean(jnp.square(v))) for k, v in free.items()}
    unit = {k: jnp.where(v > 0, v, 1) for k, v in unit.items()}
    optimiser = optax.adam(optax.cosine_decay_schedule(0.1, steps))

    def value(moved: dict[str, Array]) -> Array:
        return -_excess(claim, place(moved))

    def step(carry, _):
        moved, state, best, score = carry
        loss, slope = jax.value_and_grad(value)(moved)
        usable = jnp.isfinite(loss) & _allowed(claim, place(moved))
        better = usable & (-loss > score)
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), moved, best)
        score = jnp.where(better, -loss, score)
        slope = {k: jnp.nan_to_num(v, posinf=0.0, neginf=0.0) * unit[k] for k, v in slope.items()}
        change, state = optimiser.update(slope, state)
        moved = {k: moved[k] + change[k] * unit[k] for k in moved}  # pyright: ignore
        moved = {k: v for k, v in place(moved).items() if k in claim.free}
        return (moved, state, best, score), None

    start = (free, optimiser.init(free), free, jnp.asarray(-jnp.inf))
    (_, _, best, _), _ = jax.lax.scan(step, start, None, length=steps)
    return place(best)


def _judge(
    claim: Claim, program: Program, batch: Batch, seed: int, size: tuple[int, int]
) -> ChallengeReport:
    holds, sides = program(batch)
    verdict = decide(claim, gather(claim, holds, sides[0]), seed=seed)
    if verdict.index is not None:
        witness = {k: np.asarray(v[verdict.index]) for k, v in batch.items()}
        verdict = replace(verdict, witness=witness)
    violated = verdict.outcome is Outcome.VIOLATED
    return ChallengeReport(verdict.tightness, violated, size[0], size[1], verdict)


def _better(old: ChallengeReport | None, new: ChallengeReport) -> ChallengeReport:
    if old is None or new.violated:
        return new
    return new if (new.ratio or -np.inf) > (old.ratio or -np.inf) else old


def replay(claim: Claim, witness: dict[str, np.ndarray]) -> Verdict:
    """Evaluate a claim again on one stored instance.

    Args:
        claim: the claim.
        witness: arrays by name, as a challenge or check stored them.

    Returns:
        The verdict on this instance alone: VIOLATED, NOT_APPLICABLE, or INCONCLUSIVE with
        its slack (one instance never supports a claim).
    """
    with jax.enable_x64(True):
        batch = {name: jnp.asarray(value)[None] for name, value in witness.items()}
        holds, sides = compile_program(claim)(batch)
        verdict = decide(claim, gather(claim, holds, sides[0]))
    return replace(verdict, witness=dict(witness))
