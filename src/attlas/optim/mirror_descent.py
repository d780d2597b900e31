r"""Mirror descent for the potential psi(w) = (1/p) sum |w|^p, as an optax transformation.

The mirror map is [grad psi(w)]_j = sign(w_j) |w_j|^{p-1}, and one step reads
grad psi(w+) = grad psi(w) - eta grad L(w) (l_p-AttGD of julistiono2024optimizing).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float

from attlas.core.errors import UserError
from attlas.core.norms.entrywise import dual_exponent, entrywise_norm

Exponent = float | Any | Callable[[Any], Any]
"""One p, or a pytree of p's as the parameters (prefixes allowed), or a function that makes one."""


def _signed_power(x: Array, exponent: float | Array) -> Array:
    """Sign(x) |x|^a, zero with zero derivative at zero entries."""
    if isinstance(exponent, float) and exponent == 1:
        return x
    size = jnp.where(x == 0, 1, jnp.abs(x))
    return jnp.where(x == 0, 0, jnp.sign(x) * size**exponent)


def require_mirror_exponent(p: float | Float[Array, ""]) -> None:
    """Refuse an exponent without a mirror map; a traced one cannot be seen and passes.

    Args:
        p: exponent.

    Raises:
        UserError: unless 1 < p < inf.

    Examples:
        >>> require_mirror_exponent(1.0)
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: exponent p = 1.0 has no mirror map: choose 1 < p < inf
    """
    if isinstance(p, float | int) and not 1 < p < float("inf"):
        raise UserError(f"exponent p = {p} has no mirror map: choose 1 < p < inf")


def potential(w: Float[Array, "*shape"], p: float | Float[Array, ""]) -> Float[Array, ""]:
    r"""The potential psi(w) = (1/p) sum |w|^p (Def. 1 of julistiono2024optimizing).

    Args:
        w: any shape.
        p: exponent, above 1.

    Returns:
        The scalar psi(w).

    Examples:
        >>> float(potential(jnp.array([3.0, -4.0]), 2.0))
        12.5
    """
    require_mirror_exponent(p)
    size = jnp.where(w == 0, 1, jnp.abs(w))
    return jnp.sum(jnp.where(w == 0, 0, size**p)) / p


def potential_gradient(
    w: Float[Array, "*shape"], p: float | Float[Array, ""]
) -> Float[Array, "*shape"]:
    r"""The mirror map u = grad psi(w) = sign(w) |w|^{p-1}, entrywise.

    Args:
        w: any shape.
        p: exponent, above 1.

    Returns:
        The dual variable, of the same shape.

    Examples:
        >>> potential_gradient(jnp.array([2.0, 0.0, -3.0]), 3.0).tolist()
        [4.0, 0.0, -9.0]
    """
    require_mirror_exponent(p)
    return _signed_power(w, p - 1)


def inverse_potential_gradient(
    u: Float[Array, "*shape"], p: float | Float[Array, ""]
) -> Float[Array, "*shape"]:
    r"""The inverse mirror map w = sign(u) |u|^{1/(p-1)}, entrywise.

    Args:
        u: dual variable, any shape.
        p: exponent, above 1.

    Returns:
        The primal variable, of the same shape.

    Examples:
        >>> inverse_potential_gradient(jnp.array([4.0, 0.0, -9.0]), 3.0).tolist()
        [2.0, 0.0, -3.0]
    """
    require_mirror_exponent(p)
    return _signed_power(u, 1 / (p - 1))


def bregman(
    w: Float[Array, "*shape"], v: Float[Array, "*shape"], p: float | Float[Array, ""]
) -> Float[Array, ""]:
    r"""Bregman divergence D(w, v) = psi(w) - psi(v) - <grad psi(v), w - v> (Def. 1).

    Entry by entry the terms are brought to one scale before they are subtracted: with
    r = w / v the term is |v|^p ((|r|^p - 1) / p - (r - 1)), and near r = 1 the bracket is summed
    by its binomial series, so that the relative error stays small as w -> v.

    Args:
        w: first point.
        v: second point.
        p: exponent, above 1.

    Returns:
        The divergence, never negative.

    Examples:
        >>> float(bregman(jnp.array([1.0, 2.0]), jnp.array([3.0, 2.0]), 2.0))
        2.0
    """
    require_mirror_exponent(p)
    step = w - v
    # The series' terms fall at least by |r - 1| max(1, p / 3) <= 1/16 each: 14 of them suffice.
    scale = jnp.where(v == 0, 1, v)
    t = jnp.where(v == 0, 1, step / scale)
    near = jnp.abs(t) * jnp.maximum(1.0, p / 3) <= 1 / 16
    small = jnp.where(near, t, 0)
    total, coefficient = jnp.zeros_like(w), jnp.ones_like(w)
    for j in range(2, 15):
        # Binomial coefficient (p choose j) / p, from (p-1)/2 upwards.
        coefficient = (p - 1) / 2 * jnp.ones_like(w) if j == 2 else coefficient * (p - j + 1) / j
        total = total + coefficient * small**j
    series = jnp.abs(scale) ** p * total
    size_w, size_v = jnp.where(w == 0, 1, jnp.abs(w)), jnp.abs(scale)
    psi_w = jnp.where(w == 0, 0, size_w**p) / p
    psi_v = jnp.where(v == 0, 0, size_v**p) / p
    direct = psi_w - psi_v - _signed_power(v, p - 1) * step
    return jnp.sum(jnp.maximum(jnp.where(near, series, direct), 0))


class MirrorDescentState(NamedTuple):
    """State of `mirror_descent`.

    Attributes:
        dual: the mirror variable u = grad psi(w), same structure as the parameters.
        stalled: whether the last gradient was below its floor, so that nothing moved.
    """

    dual: Any
    stalled: Bool[Array, ""]


def _exponents(p: Exponent, params: Any) -> Any:
    """One exponent a leaf, each checked."""
    given = p(params) if callable(p) else p
    tree = jax.tree.map(lambda e, sub: jax.tree.map(lambda _: float(e), sub), given, params)
    for exponent in jax.tree.leaves(tree):
        require_mirror_exponent(exponent)
    return tree


def _group_norms(gradient: Any, exponents: Any) -> Any:
    """For each leaf the dual norm over all leaves of its exponent."""
    leaves, structure = jax.tree.flatten(gradient)
    labels = jax.tree.leaves(exponents)
    norms = {}
    for label in set(labels):
        parts = [g for g, e in zip(leaves, labels, strict=True) if e == label]
        q = dual_exponent(label)
        each = jnp.stack([entrywise_norm(g, q) for g in parts])
        norms[label] = entrywise_norm(each, q)
    return jax.tree.unflatten(structure, [norms[label] for label in labels])


def _normalization(
    gradient: Any, exponents: Any, eps: float, floor: float | None
) -> tuple[Any, Array]:
    """Factor of each leaf, and whether some norm is too small to move at all."""
    norms = _group_norms(gradient, exponents)

    def low(norm: Array) -> Array:
        info = jnp.finfo(norm.dtype)
        return norm <= (float(info.tiny / info.eps) if floor is None else floor)

    stalled = jnp.any(jnp.stack([low(norm) for norm in jax.tree.leaves(norms)]))
    factors = jax.tree.map(
        lambda n: jnp.where(stalled, 0, 1 / (jnp.where(stalled, 1, n) + eps)), norms
    )
    return factors, stalled


def _move(w: Array, old: Array, new: Array, exponent: float) -> Array:
    return jnp.where(old == new, 0, inverse_potential_gradient(new, exponent) - w)


def mirror_descent(
    learning_rate: float,
    p: Exponent,
    normalized: bool = False,
    eps: float = 0.0,
    floor: float | None = None,
) -> optax.GradientTransformation:
    r"""l_p mirror descent, plain or dual-normalised (l_p-AttGD of julistiono2024optimizing).

    u+ = u - eta g, w+ = sign(u+) |u+|^{1/(p-1)}, with u = grad psi(w) kept in the state: for p
    near 1 a weight underflows long before its mirror variable does (p = 1.1: w = u^10), so that
    recomputing u from w would lose every gradient an entry has collected. The state is
    the truth: parameters changed by other hands are not read. An entry whose gradient is zero
    does not move, hence weights too small for u = |w|^{p-1} (p = 10 in float32: below 6e-5) are
    kept until a gradient reaches them.

    Dual-normalised: g is divided by ||g||_q + eps, q = p / (p - 1), the norm over all leaves that
    share one p. A gradient at or below `floor` does not move and sets `stalled`.

    Args:
        learning_rate: eta, above 0.
        p: exponent 1 < p < inf; or a pytree of exponents, or a function of the parameters.
        normalized: whether to divide by the dual norm.
        eps: added to that norm.
        floor: dual norm at or below which a normalised step does not move; the
            smallest normal number over its rounding unit when None (products have lost bits).

    Returns:
        An optax transformation; `update` needs the parameters.

    Examples:
        >>> step = mirror_descent(0.5, 3.0)
        >>> w = jnp.array([1.0, 0.0])
        >>> updates, _ = step.update(jnp.array([-6.0, 2.0]), step.init(w), w)
        >>> (w + updates).tolist()
        [2.0, -1.0]
    """

    def init(params: Any) -> MirrorDescentState:
        exponents = _exponents(p, params)
        return MirrorDescentState(
            jax.tree.map(potential_gradient, params, exponents), jnp.asarray(False)
        )

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, MirrorDescentState]:
        if params is None:
            raise UserError("mirror_descent needs the parameters: call update(grads, state, w)")
        exponents = _exponents(p, params)
        scale, stalled = jax.tree.map(jnp.ones_like, updates), jnp.asarray(False)
        if normalized:
            scale, stalled = _normalization(updates, exponents, eps, floor)
        dual = jax.tree.map(lambda u, g, s: u - learning_rate * s * g, state.dual, updates, scale)
        change = jax.tree.map(_move, params, state.dual, dual, exponents)
        return change, MirrorDescentState(dual, stalled)

    return optax.GradientTransformation(init, update)
