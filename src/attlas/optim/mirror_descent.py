r"""Mirror descent for the potential psi(w) = (1/p) sum |w|^p, as an optax transformation.

The mirror map is [grad psi(w)]_j = sign(w_j) |w_j|^{p-1}, and one step reads
grad psi(w+) = grad psi(w) - eta grad L(w) (l_p-AttGD of julistiono2024optimizing).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attlas.core.argument_validation import validate_record_arguments
from attlas.core.arrays import ArrayInput, own_precision
from attlas.core.errors import UserError
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.arguments import (
    Exponent,
    exponent_of_each_leaf,
    in_dtype_of,
    mirror_exponents,
    nonnegative,
    require_mirror_exponent,
)

if TYPE_CHECKING:  # a tenth of a second, which the maps and divergences below do not need
    import optax

LearningRate = float | Callable[[Any], Any] | Any
"""One eta, or a function of the step number."""


def _signed_power(x: Array, exponent: float | Array) -> Array:
    """Sign(x) |x|^a, zero with zero derivative at zero entries."""
    if isinstance(exponent, float) and exponent == 1:
        return x
    size = jnp.where(x == 0, 1, jnp.abs(x))
    return jnp.where(x == 0, 0, jnp.sign(x) * size**exponent)


@validate_record_arguments
def potential(w: Float[Array, "*shape"], p: float | Float[Array, ""]) -> Float[Array, ""]:
    r"""The potential psi(w) = (1/p) sum |w|^p, p > 1 (Def. 1 of julistiono2024optimizing).

    Examples:
        >>> float(potential(jnp.array([3.0, -4.0]), 2.0))
        12.5
    """
    require_mirror_exponent(p)
    size = jnp.where(w == 0, 1, jnp.abs(w))
    return jnp.sum(jnp.where(w == 0, 0, size**p)) / p


@validate_record_arguments
def potential_gradient(
    w: Float[Array, "*shape"], p: float | Float[Array, ""]
) -> Float[Array, "*shape"]:
    r"""The mirror map u = grad psi(w) = sign(w) |w|^{p-1}, p > 1, entrywise.

    Examples:
        >>> potential_gradient(jnp.array([2.0, 0.0, -3.0]), 3.0).tolist()
        [4.0, 0.0, -9.0]
    """
    require_mirror_exponent(p)
    return _signed_power(w, p - 1)


@validate_record_arguments
def inverse_potential_gradient(
    u: Float[Array, "*shape"], p: float | Float[Array, ""]
) -> Float[Array, "*shape"]:
    r"""The inverse mirror map w = sign(u) |u|^{1/(p-1)}, entrywise.

    Args:
        u: dual variable, any shape.
        p: exponent, above 1.

    Examples:
        >>> inverse_potential_gradient(jnp.array([4.0, 0.0, -9.0]), 3.0).tolist()
        [2.0, 0.0, -3.0]
    """
    require_mirror_exponent(p)
    return _signed_power(u, 1 / (p - 1))


@validate_record_arguments
def mirror_step(
    w: Float[Array, "*shape"],
    gradient: Float[Array, "*shape"],
    learning_rate: float | Float[Array, ""],
    p: float | Float[Array, ""],
) -> Float[Array, "*shape"]:
    r"""One plain step grad psi(w+) = grad psi(w) - eta g; every argument may be traced.

    Here eta is `learning_rate`.

    Args:
        gradient: g, of the same shape.
        p: exponent, above 1.

    Examples:
        >>> mirror_step(jnp.array([1.0, 0.0]), jnp.array([-6.0, 2.0]), 0.5, 3.0).tolist()
        [2.0, -1.0]
    """
    return inverse_potential_gradient(potential_gradient(w, p) - learning_rate * gradient, p)


def bregman(w: ArrayInput, v: ArrayInput, p: float | Float[Array, ""]) -> Float[Array, ""]:
    r"""Bregman divergence D(w, v) = psi(w) - psi(v) - <grad psi(v), w - v> (Def. 1).

    Entry by entry the terms are brought to one scale before they are subtracted: with
    r = w / v the term is |v|^p ((|r|^p - 1) / p - (r - 1)), and near r = 1 the bracket is summed
    by its binomial series, so that the relative error stays small as w -> v.

    Args:
        w: first point; a list, or an array of NumPy, JAX or torch, traced or not.
        v: second point, of the same shape; the wider of the two types is computed in.
        p: exponent, above 1.

    Returns:
        The divergence, never negative; infinite where it overflows.

    A `UserError` names a p not above 1, an array that is not finite, or shapes that differ.

    Examples:
        >>> float(bregman(jnp.array([1.0, 2.0]), jnp.array([3.0, 2.0]), 2.0))
        2.0
    """
    require_mirror_exponent(p)
    with own_precision("*s, *s", w=w, v=v) as (first, second):
        return bregman_sum(first, second, p)


@validate_record_arguments
def bregman_sum(
    w: Float[Array, "*shape"], v: Float[Array, "*shape"], p: float | Float[Array, ""]
) -> Float[Array, ""]:
    """`bregman` of arrays of any shape that were read already; NaN where one is.

    Args:
        v: second point, of the same shape and type.
        p: exponent, above 1.

    Examples:
        >>> float(bregman_sum(jnp.array([1.0, 2.0]), jnp.array([3.0, 2.0]), 2.0))
        2.0
    """
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
    """State of `mirror_descent`; its trees have the structure of the parameters.

    The state holds the mirror variable because for p near 1 a weight underflows long before it does
    (p = 1.1: w = u^10): recomputed from w, it would lose every gradient an entry has collected.

    Attributes:
        dual: the mirror variable u = grad psi(w).
        point: the parameters w that `dual` belongs to, where the last step put them.
        exponents: the p that `dual` belongs to, one scalar per leaf.
        count: steps taken, the argument of a schedule.
        stalled: whether the last gradient was at or below its floor, so that nothing moved.
    """

    dual: Any
    point: Any
    exponents: Any
    count: Int[Array, ""]
    stalled: Bool[Array, ""]


def _group_norms(gradient: Any, exponents: Any) -> Any:
    """For each leaf the dual norm over all leaves of its exponent."""
    leaves, structure = jax.tree.flatten(gradient)
    exponents_of_leaves = jax.tree.leaves(exponents)
    dual_norms = [_dual_norm(g, p) for g, p in zip(leaves, exponents_of_leaves, strict=True)]
    keys = [p if isinstance(p, float) else id(p) for p in exponents_of_leaves]

    def of_group(p: float | Array) -> Array:
        sizes = []
        for norm, exponent in zip(dual_norms, exponents_of_leaves, strict=True):
            same = exponent is p or exponent == p
            # Whether traced exponents agree is seen late: those that do not add zero.
            if same is not False:
                sizes.append(norm if same is True else jnp.where(same, norm, 0))
        return _dual_norm(jnp.stack(sizes), p)

    norms = {
        key: of_group(p) for key, p in dict(zip(keys, exponents_of_leaves, strict=True)).items()
    }
    return jax.tree.unflatten(structure, [norms[key] for key in keys])


def _dual_norm(g: Array, p: float | Array) -> Array:
    p = in_dtype_of(g, p)
    return entrywise_norm(g, p / (p - 1))


def _normalization(
    gradient: Any, exponents: Any, eps: float | Array, floor: float | Array | None
) -> tuple[Any, Array]:
    """Factor of each leaf, and whether some norm is too small to move at all."""
    norms = _group_norms(gradient, exponents)

    def low(norm: Array) -> Array:
        info = jnp.finfo(norm.dtype)
        least = float(info.tiny / info.eps) if floor is None else floor
        return norm <= jnp.asarray(least, norm.dtype)

    stalled = jnp.any(jnp.stack([low(norm) for norm in jax.tree.leaves(norms)]))
    factors = jax.tree.map(
        lambda n: jnp.where(stalled, 0, 1 / (jnp.where(stalled, 1, n) + jnp.asarray(eps, n.dtype))),
        norms,
    )
    return factors, stalled


class _Rule(NamedTuple):
    """The arguments of `mirror_descent`, checked, and the transformation they define."""

    learning_rate: LearningRate
    p: Exponent
    normalized: bool
    eps: float | Array
    floor: float | Array | None
    weight_decay: float | Array

    def checked(self) -> "_Rule":
        rate, floor = self.learning_rate, self.floor
        if not callable(rate):
            # A schedule may begin at 0, and `inject_hyperparams` hands its value on as an array.
            rate = nonnegative(rate, "learning_rate", zero=isinstance(rate, jax.Array))
        return _Rule(
            rate,
            mirror_exponents(self.p),
            self.normalized,
            nonnegative(self.eps, "eps"),
            None if floor is None else nonnegative(floor, "floor"),
            nonnegative(self.weight_decay, "weight_decay"),
        )

    def init(self, params: Any) -> MirrorDescentState:
        exponents = exponent_of_each_leaf(self.p, params)
        dual = jax.tree.map(_gradient_map, params, exponents)
        # Copies: parameters and state may both be donated to a compiled step.
        dual, point = jax.tree.map(jnp.copy, (dual, params))
        scalars = jax.tree.map(_scalar, params, exponents)
        return MirrorDescentState(
            dual, point, scalars, jnp.zeros((), jnp.int32), jnp.asarray(False)
        )

    def update(
        self, updates: Any, state: Any, params: Any = None
    ) -> tuple[Any, MirrorDescentState]:
        import optax

        if params is None:
            raise UserError("mirror_descent needs the parameters: call update(grads, state, w)")
        exponents = exponent_of_each_leaf(self.p, params)
        scale, stalled = jax.tree.map(jnp.ones_like, updates), jnp.asarray(False)
        if self.normalized:
            scale, stalled = _normalization(updates, exponents, self.eps, self.floor)
        rate, decay = self.learning_rate, self.weight_decay
        rate = rate(state.count) if callable(rate) else rate

        def advance(u: Array, g: Array, s: Array) -> Array:
            eta = jnp.asarray(rate, u.dtype)
            if not (isinstance(decay, float) and decay == 0):
                u = u * jnp.where(stalled, 1, 1 - eta * jnp.asarray(decay, u.dtype))
            return u - eta * s * g

        old = jax.tree.map(_dual_of, params, exponents, state.dual, state.point, state.exponents)
        new = jax.tree.map(advance, old, updates, scale)
        change = jax.tree.map(_move, params, old, new, exponents)
        point, scalars = (
            optax.apply_updates(params, change),
            jax.tree.map(_scalar, params, exponents),
        )
        count = jnp.asarray(optax.safe_increment(state.count))
        return change, MirrorDescentState(new, point, scalars, count, stalled)


def _scalar(w: Array, p: float | Array) -> Array:
    return jnp.full_like(w, in_dtype_of(w, p), shape=())


def _gradient_map(w: Array, p: float | Array) -> Array:
    return potential_gradient(w, in_dtype_of(w, p))


def _dual_of(w: Array, p: float | Array, dual: Array, point: Array, of: Array) -> Array:
    """The stored mirror variable where w and p are as the last step left them, else a new one."""
    unchanged = (w == point) & (_scalar(w, p) == of)

    def take_anew() -> Array:
        return jnp.where(unchanged, dual, _gradient_map(w, p))

    # The powers cost as much as the step itself, and are seldom needed.
    return jax.lax.cond(jnp.all(unchanged), lambda: dual, take_anew)


def _move(w: Array, old: Array, new: Array, p: float | Array) -> Array:
    return jnp.where(old == new, 0, inverse_potential_gradient(new, in_dtype_of(w, p)) - w)


def mirror_descent(
    learning_rate: LearningRate,
    p: Exponent,
    normalized: bool = False,
    eps: float | Array = 0.0,
    floor: float | Array | None = None,
    weight_decay: float | Array = 0.0,
) -> "optax.GradientTransformation":
    r"""l_p mirror descent, plain or dual-normalised (l_p-AttGD of julistiono2024optimizing).

    u+ = (1 - eta lambda) u - eta g, w+ = sign(u+) |u+|^{1/(p-1)}, with u = grad psi(w) and weight
    decay lambda. Dual-normalised: g is divided by ||g||_q + eps, q = p / (p - 1), the norm over
    all leaves that share one p. An entry whose u does not change does not move, hence weights too
    small for u = |w|^{p-1} (p = 10 in float32: below 6e-5) stay until a gradient reaches them.

    In a chain, what comes before acts on the gradient: clipping, momentum, decay of w. What comes
    after acts on the displacement w+ - w, which has its sign and eta already, and is never undone:
    where a parameter, or p, is not what the last step left (`optax.scale`, a projection, a
    reset), that entry takes up u = grad psi(w) anew.

    Args:
        learning_rate: eta above 0, or a schedule: a function of the number of steps taken.
        p: exponent 1 < p < inf; or a pytree of exponents, a prefix of the parameters' tree; or a
            function of the parameters that makes one (`optax.inject_hyperparams` requires it in
            `static_args`). Numbers may be traced; an exponent out of range then gives NaN.
        normalized: whether to divide by the dual norm.
        eps: added to that norm.
        floor: dual norm at or below which a normalised step moves nothing, decay included; the
            smallest normal number over its rounding unit when None (products have lost bits).
        weight_decay: lambda, at least 0; at p = 2 that of `optax.add_decayed_weights`.

    Returns:
        An optax transformation; `update` needs the parameters.

    Raises:
        UserError: for an argument that is not a number or out of range, for a p that does not fit
            the parameters, and for `update` without them.

    Examples:
        At p = 2 it is `optax.sgd`. At p = 3 a gradient clipped to (0, 1) moves u to (1, -1/4).

        >>> import optax
        >>> w, g = jnp.array([1.0, 0.0]), jnp.array([0.0, 2.0])
        >>> def step(*rules):
        ...     return optax.chain(*rules).update(g, optax.chain(*rules).init(w), w)[0].tolist()
        >>> step(mirror_descent(0.25, 2.0)), step(optax.sgd(0.25))
        ([0.0, -0.5], [-0.0, -0.5])
        >>> step(optax.clip_by_global_norm(1.0), mirror_descent(0.25, 3.0))
        [0.0, -0.5]
    """
    import optax

    rule = _Rule(learning_rate, p, normalized, eps, floor, weight_decay).checked()
    return optax.GradientTransformation(rule.init, rule.update)
