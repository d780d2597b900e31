r"""Multi-start gradient ascent on the relative excess of an inequality.

Adam maximises the score of `attlas.verify.climb` over the arrays of `search_over`. All starts run
in one compiled program that applies the claim's `project` map after each step. Solver outputs are
frozen during the ascent.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from attlas.claims.claim import Claim
from attlas.claims.sampling import Instance
from attlas.claims.sides import Batch, complete
from attlas.verify.climb import relative_excess
from attlas.verify.trend_search import trend_of, trend_score

STEPS = 150
"""Ascent steps of a round."""


def ascend(claim: Claim, steps: int = STEPS) -> Callable[[Batch], Batch]:
    """One program from starting points to the best admissible points of their ascents."""
    return jax.jit(jax.vmap(lambda instance: _ascend(claim, instance, steps)))


def has_slope(claim: Claim, batch: Batch) -> bool:
    """Whether JAX differentiates the sides in the arrays of `search_over`.

    False for host computations, claims in plain NumPy, integer arrays and claims without
    `search_over`; of the batch only the shapes are used.
    """
    if not claim.search_over or claim.backend == "numpy":
        return False
    shapes = {k: jax.ShapeDtypeStruct(v.shape[1:], v.dtype) for k, v in batch.items()}
    moved = {name: shapes[name] for name in claim.search_over}

    def excess(free: Instance, fixed: Instance) -> Array:
        return _excess(claim, claim.project_instance({**fixed, **free}))

    try:
        jax.eval_shape(jax.grad(excess), moved, shapes)
    except (TypeError, ValueError, NotImplementedError):
        # JAX raises these for integers and host computations, for loops and callbacks, and for an
        # operation without a rule. The sides themselves were evaluated before.
        return False
    return True


def _excess(claim: Claim, instance: Instance) -> Array:
    """The challenged quantity, worst element."""
    sides = complete(claim.sides(instance))
    magnitude = jnp.asarray(sides.magnitude)
    if claim.kind.rule.scaled:
        return jnp.max(trend_score(trend_of(claim), sides, claim.roundings, jnp))
    rounding = claim.roundings * jnp.finfo(sides.left.dtype).eps * magnitude + sides.error
    allowed = jax.lax.stop_gradient(rounding)
    return jnp.max(relative_excess(sides.left, sides.right, magnitude, allowed, jnp))


def _holds(claim: Claim, instance: Instance) -> Array:
    holds = [jnp.asarray(a.holds(instance), dtype=bool) for a in claim.assumptions]
    return jnp.all(jnp.stack(holds)) if holds else jnp.asarray(True)


def _ascend(claim: Claim, instance: Instance, steps: int) -> Instance:
    """Adam ascent from one instance; returns the best admissible point of the path."""
    frozen = {k: v for k, v in instance.items() if k not in claim.search_over}
    free = {k: instance[k] for k in claim.search_over}
    # Each array moves relative to its norm, so that no unit has to be guessed; one flat
    # vector keeps the compiled program small.
    size = {k: jnp.sqrt(jnp.mean(jnp.square(v))) for k, v in free.items()}
    unit = {k: jnp.where(size[k] > 0, size[k], 1) for k in free}
    start, unravel = ravel_pytree({k: free[k] / unit[k] for k in free})

    def place(flat: Array) -> Instance:
        moved = unravel(flat)
        arrays = {**frozen, **{k: moved[k] * unit[k] for k in moved}}
        return claim.project_instance(arrays)

    def score(flat: Array) -> tuple[Array, tuple[Array, Array]]:
        placed = place(flat)
        projected, _ = ravel_pytree({k: placed[k] / unit[k] for k in claim.search_over})
        return -_excess(claim, placed), (_holds(claim, placed), projected)

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
