r"""Challenge an inequality: the attack without derivatives, then multi-start gradient ascent.

The ascent maximises (left - right) / (|left| + |right| + magnitude) + (left - right - tau) /
(|left| + |right| + tau) over the arrays of `search_over` by Adam, where tau is what rounding
allows. The first term has a slope everywhere, but is largest where both sides vanish against their
terms; the second is monotone in the tightness and lowest there. All starts run in one compiled
program, and the claim's `project` map is applied after each move. Solver outputs are frozen during
the ascent and solved again on the end points.
"""

import time
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from attlas.core.claim import Claim
from attlas.core.errors import UserError
from attlas.core.factorising import FACTORISING
from attlas.core.sampling import Instance
from attlas.core.verdict import ChallengeReport, Verdict
from attlas.verify.attack import attack, better, judge
from attlas.verify.decide import decide
from attlas.verify.evidence import Batch, Program, compile_program, complete, gather

STEPS = 150
"""Ascent steps of a round."""


def challenge(
    claim: Claim,
    *,
    seconds: float | None = None,
    rounds: int = 1,
    seed: int = 0,
    steps: int = STEPS,
    program: Program | None = None,
    batch: Batch | None = None,
) -> ChallengeReport:
    """Search for a violation of an inequality.

    Args:
        claim: an inequality; the ascent needs arrays of `search_over`.
        seconds: keep starting new rounds until this much time has passed; else `rounds`.
        rounds: rounds of fresh starting points when `seconds` is None.
        seed: of the starting points of the first round.
        steps: ascent steps of a round.
        program: the claim's compiled program, where a check has it already.
        batch: starting points of the first round, where a check has drawn them already.

    Returns:
        The tightest instance found; its verdict is VIOLATED when the claim broke.

    Raises:
        UserError: if the claim offers nothing to challenge.
    """
    started = time.perf_counter()
    program = program or compile_program(claim)
    best = attack(claim, rounds=rounds, seed=seed, program=program, batch=batch)
    if best is None:
        raise UserError(
            f"claim '{claim.name}' has nothing to move: an inequality needs search_over, or a "
            "sampler that draws normal or uniform numbers from rng"
        )
    if not claim.search_over:
        while seconds is not None and not best.violated and _spent(started) < seconds:
            seed += 1
            again = attack(claim, seconds=1.0, seed=seed, program=program)
            best = best if again is None else better(best, again)
        return best
    # Adam mixes integer counts with floats, which strict promotion would refuse.
    with FACTORISING, jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        climb = jax.jit(jax.vmap(lambda instance: _ascend(claim, instance, steps)))
        done = 0
        while not best.violated and (
            done < rounds if seconds is None else done == 0 or _spent(started) < seconds
        ):
            if batch is None:
                batch = claim.draw(seed + done, claim.count)
            best = better(best, judge(claim, program, climb(batch), seed + done, steps))
            batch = None
            done += 1
    return best


def _spent(started: float) -> float:
    return time.perf_counter() - started


def _excess(claim: Claim, instance: Instance) -> Array:
    """The challenged quantity, worst element."""
    sides = complete(claim.sides(instance))
    size, magnitude = jnp.abs(sides.left) + jnp.abs(sides.right), jnp.asarray(sides.magnitude)
    rounding = claim.roundings * jnp.finfo(size.dtype).eps * magnitude + sides.error
    allowed = jax.lax.stop_gradient(rounding)

    def part(excess: Array, whole: Array) -> Array:
        return excess / jnp.where(whole > 0, whole, 1)

    plain, certain = sides.left - sides.right, sides.left - sides.right - allowed
    return jnp.max(part(plain, size + magnitude) + part(certain, size + allowed))


def _holds(claim: Claim, instance: Instance) -> Array:
    holds = [jnp.asarray(a.holds(instance), dtype=bool) for a in claim.assumptions]
    return jnp.all(jnp.stack(holds)) if holds else jnp.asarray(True)


def _ascend(claim: Claim, instance: Instance, steps: int) -> Instance:
    """Adam ascent from one instance; returns the best admissible point of the path."""
    frozen = {k: v for k, v in instance.items() if k not in claim.search_over}
    free = {k: instance[k] for k in claim.search_over}
    # Each array moves relative to its own size, so that no unit has to be guessed; one flat
    # vector keeps the compiled program small.
    size = {k: jnp.sqrt(jnp.mean(jnp.square(v))) for k, v in free.items()}
    unit = {k: jnp.where(size[k] > 0, size[k], 1) for k in free}
    start, unravel = ravel_pytree({k: free[k] / unit[k] for k in free})

    def place(flat: Array) -> Instance:
        moved = unravel(flat)
        whole = {**frozen, **{k: moved[k] * unit[k] for k in moved}}
        return claim.moved_inside(whole)

    def score(flat: Array) -> tuple[Array, tuple[Array, Array]]:
        placed = place(flat)
        kept, _ = ravel_pytree({k: placed[k] / unit[k] for k in claim.search_over})
        return -_excess(claim, placed), (_holds(claim, placed), kept)

    optimiser = optax.adam(optax.cosine_decay_schedule(0.1, steps))

    def step(carry, _):
        flat, state, best, highest = carry
        (loss, (holds, placed)), slope = jax.value_and_grad(score, has_aux=True)(flat)
        better = jnp.isfinite(loss) & holds & (-loss > highest)
        best = jnp.where(better, placed, best)
        highest = jnp.where(better, -loss, highest)
        change, state = optimiser.update(jnp.nan_to_num(slope, posinf=0.0, neginf=0.0), state)
        return (placed + change, state, best, highest), None

    first = (start, optimiser.init(start), start, jnp.asarray(-jnp.inf))
    (_, _, best, _), _ = jax.lax.scan(step, first, None, length=steps)
    return place(best)


def replay(claim: Claim, witness: dict[str, np.ndarray]) -> Verdict:
    """Re-evaluate a claim on one stored instance.

    Args:
        claim: the claim.
        witness: arrays by name, as a challenge or check stored them.

    Returns:
        The verdict on this instance alone: VIOLATED, NOT_APPLICABLE, or INCONCLUSIVE with
        its slack (one instance never supports a claim).
    """
    with FACTORISING, jax.enable_x64(True):
        batch = {name: jnp.asarray(value)[None] for name, value in witness.items()}
        holds, sides = compile_program(claim)(batch)
        verdict = decide(claim, gather(claim, holds, sides[0]))
    return replace(verdict, witness=dict(witness))
