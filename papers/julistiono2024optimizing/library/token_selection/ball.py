r"""Mirror descent that stays on a ball's sphere: points of the regularisation path, many at once.

On ||W||_{p,p} = R a stationary point has grad psi(W) in the direction of -grad L(W). The
mirror variable u of unit dual norm is moved towards that direction and W is R times the unit
matrix with grad psi(W) along u. For the joint path the value head v does the same on its own
sphere. Gradients enter by direction only, formed in log space, so that exp(-R) may underflow;
p and R are arrays, so that one program serves all.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from attlas.core.arrays import ArrayInput, own_precision, precision_of
from attlas.core.errors import UserError
from attlas.data.token_selection import TokenSelection, validate
from attlas.losses.margin_loss import margin_loss
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.arguments import nonnegative, require_mirror_exponent
from attlas.optim.mirror_descent import inverse_potential_gradient, potential_gradient
from julistiono2024optimizing.library.token_selection.gradient import scaled_gradient


class BallPoint(NamedTuple):
    """A point on the spheres, with its certificate.

    Attributes:
        W: key-query matrix, ||W||_{p,p} = R.
        v: value head, of norm r if it was trained.
        relative_gap: largest over the blocks of 1 + <G, W> / (R ||G||_q), the relative
            Frank-Wolfe gap: zero at stationary points and nowhere else.
    """

    W: Float[Array, "d d"]
    v: Float[Array, " d"]
    relative_gap: Float[Array, ""]


def _unit(u: Array, exponent: Array) -> Array:
    return u / entrywise_norm(u, exponent)


def _head_gradient(v: Array, W: Array, data: TokenSelection, loss: str) -> Array:
    """Gradient of the risk in v up to a positive factor."""
    attention = jax.nn.softmax(jnp.einsum("ntd,nd->nt", data.X, data.z @ W.T), axis=1)
    features = data.y[:, None] * jnp.einsum("nt,ntd->nd", attention, data.X)
    weight = jax.nn.softmax(margin_loss(loss).log_slope(features @ v))
    return -weight @ features


class _Ball(NamedTuple):
    """The loss on the sphere(s), seen from the mirror variables."""

    data: TokenSelection
    p: Array
    radius: Array
    head_radius: Array | None
    loss: str

    @property
    def q(self) -> Array:
        return self.p / (self.p - 1)

    def dual_direction(self, start: Array) -> Array:
        return _unit(potential_gradient(_unit(start, self.p), self.p), self.q)

    def place(self, dual: tuple[Array, Array]) -> tuple[Array, Array]:
        """The points W and v of two mirror variables."""

        def lift(u: Array, size: Array) -> Array:
            return size * _unit(inverse_potential_gradient(u, self.p), self.p)

        head = self.data.v if self.head_radius is None else lift(dual[1], self.head_radius)
        return lift(dual[0], self.radius), head

    def look(self, dual: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        """Directions of steepest descent in the dual, and the relative gap."""
        data = self.data
        W, v = self.place(dual)
        scores = data.y[:, None] * (data.X @ v)
        G, _ = scaled_gradient(W, data.X, data.z, scores, margin_loss(self.loss))
        aim_W = -_unit(G, self.q)
        gap = 1 - jnp.sum(aim_W * W) / self.radius
        if self.head_radius is None:
            return (aim_W, dual[1]), gap
        aim_v = -_unit(_head_gradient(v, W, data, self.loss), self.q)
        return (aim_W, aim_v), jnp.maximum(gap, 1 - jnp.sum(aim_v * v) / self.head_radius)


def descend_in_ball(
    data: TokenSelection,
    W0: ArrayInput,
    *,
    p: float | Float[Array, ""],
    radius: float | Float[Array, ""],
    steps: int,
    head_radius: float | Float[Array, ""] | None = None,
    loss: str = "logistic",
    implicit_steps: int = 0,
) -> BallPoint:
    r"""Descend to a stationary point of the loss on ||W||_{p,p} = R, or on ||v||_p = r as well.

    u+ = (1 - tau) u - tau G / ||G||_q, scaled back to unit norm; tau halves when the relative gap
    rises, down to 0.1 / steps, and grows by a twentieth when it falls. Local: other starts lead to
    other points, a far start may end with a large gap, and the lowest of several points is only a
    candidate for the minimiser W(R).

    Args:
        data: samples and value head (the start of it where it is trained).
        W0: start, [d, d], not zero; a list, or an array of NumPy, JAX or torch, traced or not.
        p: exponent, 1 < p < inf.
        radius: radius R of the ball.
        head_radius: r, where the value head is trained as well.
        implicit_steps: steps after these of (1 + tau) u+ = u + tau a(u+), linearised, a the
            direction of -grad L: at large R, where explicit steps of tau > 1 / R diverge, they
            reach the rounding of the gap. Each solves a system in all entries.

    Returns:
        The point of the smallest relative gap that was met, infinite where no point has a
        gradient; map over problems with `jax.vmap`.

    Examples:
        >>> from attlas.data.token_selection import make_support_selection
        >>> data = make_support_selection(jax.random.key(0))
        >>> result = descend_in_ball(data, jnp.eye(4), p=2.0, radius=10.0, steps=200)
        >>> print(f"{float(jnp.linalg.norm(result.W)):.6f}", bool(result.relative_gap < 1e-9))
        10.000000 True
    """
    validate(data)
    require_mirror_exponent(p)
    nonnegative(radius, "radius", zero=False)
    if head_radius is not None:
        nonnegative(head_radius, "head_radius", zero=False)
    if steps < 1:
        raise UserError(f"steps = {steps}: take at least one")
    nonnegative(implicit_steps, "implicit_steps")
    with precision_of(data), own_precision("d d, n T d", W0=W0, X=data.X) as (start, _):
        # A traced start is compared as it runs, where it can no longer be refused.
        if hasattr(start, "block_until_ready") and not start.any():
            raise UserError("W0 is zero and has no direction: start elsewhere")
        return _descend(data, start, p, radius, (steps, implicit_steps), head_radius, loss)


def _descend(
    data: TokenSelection,
    W0: Array,
    p: float | Array,
    radius: float | Array,
    counts: tuple[int, int],
    head_radius: float | Array | None,
    loss: str,
) -> BallPoint:
    (steps, implicit_steps), dtype = counts, W0.dtype
    sizes = jnp.asarray(radius, dtype), None if head_radius is None else jnp.asarray(head_radius)
    ball = _Ball(data, jnp.asarray(p, dtype), *sizes, loss)
    start = ball.dual_direction(W0), ball.dual_direction(data.v)
    worst = jnp.full((), jnp.inf, dtype)

    def advance(_: Array, state):
        dual, tau, last, best, lowest = state
        aim, gap = ball.look(dual)
        better = gap < lowest
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), dual, best)
        tau = jnp.where(
            gap <= last, jnp.minimum(1.05 * tau, 1.0), jnp.maximum(tau / 2, 0.1 / steps)
        )
        dual = tuple(_unit(u + tau * (a - u), ball.q) for u, a in zip(dual, aim, strict=True))
        return dual, tau, gap, best, jnp.minimum(gap, lowest)

    state = (start, jnp.full((), 0.02, dtype), worst, start, worst)
    _, _, _, best, lowest = jax.lax.fori_loop(0, steps, advance, state)
    best, lowest = _implicit(ball, best, lowest, implicit_steps)
    W, v = ball.place(best)
    return BallPoint(W, v, lowest)


def _implicit(
    ball: _Ball, dual: tuple[Array, Array], gap: Array, steps: int
) -> tuple[tuple[Array, Array], Array]:
    """Linearly implicit steps that lower the gap: Newton's for long times tau."""
    start, unravel = ravel_pytree(dual)
    if steps == 0:
        return dual, gap

    def missing(u: Array) -> tuple[Array, tuple[Array, Array]]:
        aim, reached = ball.look(unravel(u))
        left = ravel_pytree(aim)[0] - u
        return left, (left, reached)

    # A trial is looked at once, for its gap and for the step from it: each look is much to compile.
    def advance(_: Array, state):
        trial, tau, best = state
        slope, (left, reached) = jax.jacfwd(missing, has_aux=True)(trial)
        better = reached < best[-1]
        tried = trial, slope, left, reached
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), tried, best)
        tau = jnp.where(better, 4 * tau, tau / 4)
        u, slope, left, _ = best
        matrix, head = unravel(
            u + jnp.linalg.solve(jnp.eye(len(u), dtype=u.dtype) / tau - slope, left)
        )
        moved = _unit(matrix, ball.q), _unit(head, ball.q)
        return ravel_pytree(moved)[0], tau, best

    # The first trial is the start, from which the first step has tau = 1.
    none = jnp.zeros((start.size, start.size), start.dtype), jnp.zeros_like(start)
    state = start, jnp.full((), 0.25, start.dtype), (start, *none, jnp.full_like(gap, jnp.inf))
    u, _, _, gap = jax.lax.fori_loop(0, steps + 1, advance, state)[-1]
    return unravel(u), gap
