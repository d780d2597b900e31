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
from jaxtyping import Array, Float

from attlas.core.norms import entrywise_norm
from attlas.data.token_selection import TokenSelection
from attlas.losses.margin_loss import margin_loss
from attlas.optim.mirror_descent import inverse_potential_gradient, potential_gradient
from attlas.training.selection_gradient import scaled_gradient


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


def descend_in_ball(
    data: TokenSelection,
    W0: Float[Array, "d d"],
    *,
    p: float | Float[Array, ""],
    radius: float | Float[Array, ""],
    steps: int,
    head_radius: float | Float[Array, ""] | None = None,
    loss: str = "logistic",
) -> BallPoint:
    r"""Descend to a stationary point of the loss on ||W||_{p,p} = R, or on ||v||_p = r as well.

    u+ = (1 - tau) u - tau G / ||G||_q, scaled back to unit norm; tau halves when the relative gap
    rises, down to 0.1 / steps, and grows by a twentieth when it falls. Local: other starts lead to
    other points, a far start may end with a large gap, and the lowest of several points is only a
    candidate for the minimiser W(R).

    Args:
        data: samples and value head (the start of it where it is trained).
        W0: start, any nonzero size.
        p: exponent, 1 < p < inf.
        radius: R.
        steps: number of steps.
        head_radius: r, where the value head is trained as well.
        loss: name of a margin loss.

    Returns:
        The point of the smallest relative gap that was met; map over problems with `jax.vmap`.

    Examples:
        >>> from attlas.data.token_selection import make_support_selection
        >>> data = make_support_selection(jax.random.key(0))
        >>> found = descend_in_ball(data, jnp.eye(4), p=2.0, radius=10.0, steps=200)
        >>> print(f"{float(jnp.linalg.norm(found.W)):.6f}", bool(found.relative_gap < 1e-9))
        10.000000 True
    """
    p = jnp.asarray(p, W0.dtype)
    q = p / (p - 1)
    radii = (jnp.asarray(radius), None if head_radius is None else jnp.asarray(head_radius))

    def lift(u: Array, size: Array) -> Array:
        return size * _unit(inverse_potential_gradient(u, p), p)

    def place(dual: tuple[Array, Array]) -> tuple[Array, Array]:
        return lift(dual[0], radii[0]), data.v if radii[1] is None else lift(dual[1], radii[1])

    def look(dual: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        """Directions of steepest descent in the dual, and the relative gap."""
        W, v = place(dual)
        scores = data.y[:, None] * (data.X @ v)
        G, _ = scaled_gradient(W, data.X, data.z, scores, margin_loss(loss))
        aim_W = -_unit(G, q)
        gap = 1 - jnp.sum(aim_W * W) / radii[0]
        if radii[1] is None:
            return (aim_W, dual[1]), gap
        aim_v = -_unit(_head_gradient(v, W, data, loss), q)
        return (aim_W, aim_v), jnp.maximum(gap, 1 - jnp.sum(aim_v * v) / radii[1])

    def advance(_: Array, state):
        dual, tau, last, best, lowest = state
        aim, gap = look(dual)
        better = gap < lowest
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), dual, best)
        tau = jnp.where(
            gap <= last, jnp.minimum(1.05 * tau, 1.0), jnp.maximum(tau / 2, 0.1 / steps)
        )
        dual = tuple(_unit(u + tau * (a - u), q) for u, a in zip(dual, aim, strict=True))
        return dual, tau, gap, best, jnp.minimum(gap, lowest)

    start_W = _unit(potential_gradient(_unit(W0, p), p), q)
    start = (start_W, _unit(potential_gradient(_unit(data.v, p), p), q))
    worst = jnp.full((), jnp.inf, W0.dtype)
    state = (start, jnp.full((), 0.02, W0.dtype), worst, start, worst)
    _, _, _, best, lowest = jax.lax.fori_loop(0, steps, advance, state)
    W, v = place(best)
    return BallPoint(W, v, lowest)
