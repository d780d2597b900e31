r"""Minimise a smooth loss over a product of l_p balls, from many starts, with a certificate.

Every block lives on its sphere, W = R U / ||U||_p. For p >= 2 the unknown is U, for p < 2 its
mirror image Y with U = sign(Y) |Y|^{q-1}, which is the side where the map is smooth. The
certificate is the Frank-Wolfe gap, closed form on a ball: max_V <-G, V - W> = R ||G||_q + <G, W>.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.optimize import minimize

from attlas._jax.compilation import loop_options
from attlas.norms.entrywise import entrywise_norm

Blocks = tuple[Array, ...]


class Cone(NamedTuple):
    r"""The cone D_psi(C/||C||, W/||W||) <= width around a direction C, for the last block.

    Attributes:
        centre: C, any scale.
        width: mu.
    """

    centre: Array
    width: Array


class BallMinimum(NamedTuple):
    """The best stationary point found.

    Attributes:
        blocks: point on the spheres.
        relative_gap: largest over the blocks of 1 + <G, W> / (R ||G||_q), zero at stationary
            points; the Frank-Wolfe gap over R ||G||_q.
        frank_wolfe_gap: sum over the blocks of R ||G||_q + <G, W>, in units of the objective.
        cone_excess: D_psi / width - 1 if a cone was given, positive outside, else -1.
        starts_agreeing: starts that reached the best value to a relative 1e-6.
        evaluations: evaluations of value and gradient over all starts.
    """

    blocks: Blocks
    value: float
    relative_gap: float
    frank_wolfe_gap: float
    cone_excess: float
    starts_agreeing: int
    evaluations: int


def _flat_norm(x: Array, p: Array) -> Array:
    return entrywise_norm(x.ravel(), p)


def _on_spheres(unknowns: Blocks, radii: Array, p: Array) -> Blocks:
    """The point R U / ||U||_p of each block; unknowns U for p >= 2, else sign(U) |U|^{p-1}."""
    power = jnp.where(p < 2, 1 / (p - 1), 1.0)

    def lift(x: Array, radius: Array) -> Array:
        scaled = x / jnp.max(jnp.abs(x))
        # Not |x|^1 with its sign, whose derivative at zero is computed as zero.
        u = jnp.where(p < 2, jnp.sign(x) * jnp.abs(scaled) ** power, scaled)
        return radius * u / _flat_norm(u, p)

    return tuple(lift(x, radii[i]) for i, x in enumerate(unknowns))


def _cone_excess(cone: Cone | None, W: Array, p: Array) -> Array:
    """D_psi of the two directions over the width, minus one."""
    if cone is None:
        return jnp.full((), -1.0, W.dtype)
    unit = W / _flat_norm(W, p)
    centre = cone.centre / _flat_norm(cone.centre, p)
    size = jnp.abs(unit)
    # |u|^{p - 2} u, whose derivative at zero is 1 for p = 2; for p < 2, where it is infinite, zero.
    weight = jnp.where(size > 0, size, 1.0) ** (p - 2)
    slope = unit * jnp.where((size > 0) | (p == 2), weight, 0.0)
    return (1 - jnp.sum(slope * centre)) / cone.width - 1


def _penalised(blocks: Blocks, objective: Callable, p: Array, cone: Cone | None, weight: Array):
    outside = jnp.maximum(_cone_excess(cone, blocks[-1], p), 0)
    return objective(*blocks) + weight * outside**2


def _blocks(flat: Any, shapes: tuple[tuple[int, ...], ...]) -> tuple[Any, ...]:
    sizes = np.cumsum([math.prod(shape) for shape in shapes])
    starts = [0, *sizes[:-1]]
    return tuple(
        flat[start:end].reshape(shape)
        for start, end, shape in zip(starts, sizes, shapes, strict=True)
    )


# An evaluation takes less than its call: of one array, by a function that JAX itself dispatches.
@partial(jax.jit, static_argnames=("others", "shapes"), compiler_options=loop_options())
def _value_and_slope(flat: Array, weight: Array, arrays: Any, others: Any, shapes: Any):
    objective, radii, p, cone = eqx.combine(arrays, others)

    def of_unknowns(x):
        blocks = _on_spheres(_blocks(x, shapes), radii, p)
        return _penalised(blocks, objective, p, cone, weight)

    return jax.value_and_grad(of_unknowns)(flat)


@eqx.filter_jit
def _certificate(unknowns, objective, radii, p, cone, weight):
    blocks = _on_spheres(unknowns, radii, p)
    slopes = jax.grad(_penalised)(blocks, objective, p, cone, weight)
    q = p / (p - 1)
    pulls = jnp.stack([radii[i] * _flat_norm(g, q) for i, g in enumerate(slopes)])
    along = jnp.stack([jnp.sum(g * w) for g, w in zip(slopes, blocks, strict=True)])
    gaps = jnp.maximum(pulls + along, 0)
    relative = gaps / jnp.where(pulls > 0, pulls, 1)
    excess = _cone_excess(cone, blocks[-1], p)
    return blocks, objective(*blocks), jnp.max(relative), jnp.sum(gaps), excess


# Weights of the penalty outside the cone; its multiplier over twice the weight is the excess.
_PENALTIES = (1.0, 30.0, 1e3, 3e4)


def ball_minimum(
    objective: Callable[..., Any],
    starts: list[Blocks],
    radii: Array,
    p: float,
    max_steps: int,
    cone: Cone | None = None,
) -> BallMinimum:
    """Descend by L-BFGS from every start and keep the lowest end point.

    Args:
        objective: smooth scalar function of the blocks; a pytree (`equinox.Module`) carries
            its data as traced arrays.
        starts: directions, one tuple of blocks each.
        radii: one radius per block.
        p: exponent, 1 < p < inf.
        max_steps: L-BFGS steps of each descent.
        cone: restricts the last block to a cone.

    Returns:
        The best point. It is stationary to `relative_gap`; that it is the global minimum is
        not proved, and `starts_agreeing` says how often it was reached.

    Examples:
        >>> result = ball_minimum(jnp.sum, [(jnp.array([1.0, -2.0]),)], jnp.ones(1), 2.0, 50)
        >>> [round(float(x), 6) for x in result.blocks[0]], result.relative_gap < 1e-6
        ([-0.707107, -0.707107], True)
    """
    exponent = jnp.asarray(p, starts[0][0].dtype)
    ends = [_descend(objective, start, radii, exponent, max_steps, cone) for start in starts]
    inside = [end for end in ends if end.cone_excess <= CONE_SLACK] or ends
    best = min(inside, key=lambda end: end.value if np.isfinite(end.value) else np.inf)
    tolerance = 1e-6 * (1 + abs(best.value))
    agreeing = sum(abs(end.value - best.value) <= tolerance for end in inside)
    spent = sum(end.evaluations for end in ends)
    return best._replace(starts_agreeing=agreeing, evaluations=spent)


# A point counts as inside the cone up to this share of the width.
CONE_SLACK = 1e-3


def _descend(objective, start, radii, exponent, max_steps, cone) -> BallMinimum:
    power = jnp.where(exponent < 2, exponent - 1, 1.0)
    unknowns = tuple(jnp.sign(x) * jnp.abs(x) ** power for x in start)
    shapes, dtype = tuple(x.shape for x in unknowns), unknowns[0].dtype
    arrays, others = eqx.partition(
        (objective, radii, exponent, cone), lambda leaf: isinstance(leaf, (Array, np.ndarray))
    )
    evaluations = 0

    def split(flat: np.ndarray) -> Blocks:
        return tuple(jnp.asarray(part, dtype) for part in _blocks(flat, shapes))

    def value_and_slope(flat: np.ndarray, weight: Array) -> tuple[float, np.ndarray]:
        nonlocal evaluations
        evaluations += 1
        value, slope = _value_and_slope(flat.astype(dtype), weight, arrays, others, shapes)
        return float(value), np.asarray(slope, float)

    flat = np.concatenate([np.asarray(x, float).ravel() for x in unknowns])
    weight = jnp.zeros((), dtype)
    for penalty in _PENALTIES if cone is not None else (0.0,):
        weight = jnp.asarray(penalty, dtype)
        # The scale of the unknowns is free and grows along a descent: it is reset in between.
        for _ in range(2):
            flat = flat / np.abs(flat).max()
            options = {"maxiter": max_steps, "ftol": 1e-16, "gtol": 1e-14, "maxcor": 30}
            flat = minimize(
                value_and_slope, flat, (weight,), jac=True, method="L-BFGS-B", options=options
            ).x
        if cone is None or _excess_at(split(flat), radii, exponent, cone) <= CONE_SLACK:
            break
    blocks, value, relative, gap, excess = _certificate(
        split(flat), objective, radii, exponent, cone, weight
    )
    return BallMinimum(
        blocks, float(value), float(relative), float(gap), float(excess), 1, evaluations
    )


def _excess_at(unknowns: Blocks, radii: Array, p: Array, cone: Cone) -> float:
    return float(_cone_excess(cone, _on_spheres(unknowns, radii, p)[-1], p))
