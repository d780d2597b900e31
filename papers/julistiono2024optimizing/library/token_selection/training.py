r"""Train token selection by mirror descent: one model, or an ensemble in cache-sized chunks.

The inner loop works on a batch of problems with the gradient of Lemma 17 in closed form; W is
kept transposed, so that all four products are contiguous. Scores enter relative to that of the
most attended token and coefficients relative to the largest one, so that the sums do not cancel
where a sample is saturated, and q-th powers neither overflow nor underflow.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas._jax.device_arrays import entry
from attlas._jax.loop_jit import loop_jit
from attlas.core.arrays import ArrayInput, own_precision, precision_of
from attlas.core.errors import UserError
from attlas.core.ranges import is_finite
from attlas.core.solution import Result
from attlas.data.token_selection import TokenSelection, validate
from attlas.losses.margin_loss import margin_loss
from attlas.norms.entrywise import dual_exponent
from attlas.optim.mirror_descent import require_mirror_exponent
from attlas.training.course import record_along
from attlas.training.ensemble import accelerator_width, core_share, in_chunks, on_cpu
from attlas.training.trajectory import Trajectory, recording_schedule
from julistiono2024optimizing.library.token_selection.rational_power import rational_power

CACHE_BYTES = 2**20
"""What the data of one chunk may take on a CPU: half of a usual second-level cache."""


class _Rule(NamedTuple):
    """What a compiled program depends on besides shapes."""

    p: float
    loss: str
    normalized: bool
    joint: bool


class _Problem(NamedTuple):
    """A batch of problems, prepared for the inner loop."""

    X: Array
    z: Array
    z_columns: Array
    y: Array
    size: Array
    rate: Array
    eps: Array


class _Carry(NamedTuple):
    """Mirror variables of W' and v, whether the problem moves, and for how long it did."""

    dual: Array
    dual_v: Array
    moving: Array
    moved: Array


def _primal(dual: Array, p: float) -> Array:
    return dual if p == 2 else jnp.sign(dual) * rational_power(jnp.abs(dual), 1 / (p - 1))


def _norm(array: Array, exponent: float) -> Array:
    """Entrywise norm over all axes but the first, kept; entries must be of moderate size."""
    axes = tuple(range(1, array.ndim))
    if exponent == 2:
        return jnp.sqrt(jnp.sum(array * array, axes, keepdims=True))
    # A product with ones: inside a sum XLA takes the powers one after the other.
    powers = rational_power(jnp.abs(array), exponent).reshape(len(array), -1)
    total = jnp.expand_dims(powers @ jnp.ones(powers.shape[1], powers.dtype), axes)
    return total ** (1 / exponent)


class _Gradient(NamedTuple):
    """Gradient of W' up to `scale`, with what is computed on the way."""

    G: Array
    scale: Array
    noise: Array
    weights: Array
    slope: Array
    margin: Array


def _gradient(W: Array, v: Array, problem: _Problem, rule: _Rule) -> _Gradient:
    """Lemma 17 for a batch; `W` is transposed."""
    scores = problem.y[:, :, None] * jnp.einsum("bntd,bd->bnt", problem.X, v)
    h = jnp.einsum("bntd,bnd->bnt", problem.X, problem.z @ W)
    below = h - jnp.max(h, axis=2, keepdims=True)
    weights = jnp.exp(below)
    weights = weights / jnp.sum(weights, axis=2, keepdims=True)
    # Relative to the most attended token, saturated samples cancel nowhere; relative to the
    # best token they would leave rounding noise wherever another token is selected.
    held = jnp.max(jnp.where(below == 0, scores, -jnp.inf), axis=2, keepdims=True)
    gap = scores - held
    mean = jnp.sum(weights * gap, axis=2, keepdims=True)
    margin = (held + mean)[:, :, 0]
    slope = margin_loss(rule.loss).derivative(margin) / h.shape[1]
    coefficient = slope[:, :, None] * weights * (gap - mean)
    size = jnp.abs(coefficient)
    scale = jnp.max(size, axis=(1, 2), keepdims=True)
    scale = jnp.where(scale > 0, scale, 1)
    features = jnp.einsum("bnt,bntd->bnd", coefficient / scale, problem.X)
    # First-order rounding error: each coefficient carries that of its exponent, |h| eps.
    logit_size = 4 - jnp.min(below, axis=(1, 2), keepdims=True)
    noise = jnp.sum(size * problem.size, axis=(1, 2), keepdims=True) * logit_size / scale
    noise = noise * jnp.finfo(h.dtype).eps
    return _Gradient(problem.z_columns @ features, scale, noise, weights, slope, margin)


def _step(carry: _Carry, v: Array, problem: _Problem, rule: _Rule) -> _Carry:
    """One step of every problem of the batch."""
    q = dual_exponent(rule.p)
    v = _primal(carry.dual_v, rule.p) if rule.joint else v
    gradient = _gradient(_primal(carry.dual, rule.p), v, problem, rule)
    rate = problem.rate
    if rule.normalized:
        norm = _norm(gradient.G, q)
        clear = norm > gradient.noise
        factor = jnp.where(clear, rate / (norm + problem.eps / gradient.scale), 0)
    else:
        clear = jnp.isfinite(gradient.scale)
        factor = rate * gradient.scale
    dual_v = carry.dual_v
    if rule.joint:
        pull = jnp.einsum(
            "bn,bnt,bntd->bd", gradient.slope * problem.y, gradient.weights, problem.X
        )
        size = jnp.max(jnp.abs(pull), axis=1, keepdims=True)
        size = jnp.where(size > 0, size, 1)
        pull = pull / size
        norm_v = _norm(pull, q)
        unit = jnp.where(norm_v > 0, pull / (norm_v + problem.eps[:, :, 0] / size), 0)
        change = unit if rule.normalized else pull * size
        dual_v = dual_v - rate[:, :, 0] * change
        # Attention has no gradient at v = 0; the head that moves will give it one.
        clear = clear | (norm_v[:, :, None] > 0)
    moving = carry.moving & clear
    dual = jnp.where(moving, carry.dual - factor * gradient.G, carry.dual)
    dual_v = jnp.where(moving[:, :, 0], dual_v, carry.dual_v)
    return _Carry(dual, dual_v, moving, carry.moved + moving.astype(carry.moved.dtype))


def _observe(carry: _Carry, v: Array, problem: _Problem, rule: _Rule) -> tuple[Array, ...]:
    """What is recorded of every problem of the batch."""
    v = _primal(carry.dual_v, rule.p) if rule.joint else v
    W = _primal(carry.dual, rule.p)
    gradient = _gradient(W, v, problem, rule)
    norm = (_norm(gradient.G, dual_exponent(rule.p)) * gradient.scale)[:, 0, 0]
    loss = jnp.mean(margin_loss(rule.loss).value(gradient.margin), axis=1)
    return jnp.swapaxes(W, 1, 2), loss, norm, gradient.weights, v


@loop_jit(static_argnames="rule")
def _train(
    data: TokenSelection, W0: Array, v0: Array, rates: Array, lengths: Array, *, rule: _Rule
) -> tuple[tuple[Array, ...], _Carry]:
    """All records of a batch, problems along the leading axis."""
    q = dual_exponent(rule.p)
    norms = [jnp.sum(rational_power(jnp.abs(a), q), axis=-1) ** (1 / q) for a in (data.X, data.z)]
    rate, eps = (jnp.broadcast_to(r, (W0.shape[0], 1, 1)) for r in rates)
    size = norms[0] * norms[1][:, :, None]
    problem = _Problem(data.X, data.z, jnp.swapaxes(data.z, 1, 2), data.y, size, rate, eps)

    def dual(w: Array) -> Array:
        return w if rule.p == 2 else jnp.sign(w) * rational_power(jnp.abs(w), rule.p - 1)

    batch = W0.shape[0]
    start = _Carry(
        dual(jnp.swapaxes(W0, 1, 2)),
        dual(v0),
        jnp.ones((batch, 1, 1), bool),
        jnp.zeros((batch, 1, 1), lengths.dtype),
    )

    last, records = record_along(
        functools.partial(_step, v=data.v, problem=problem, rule=rule),
        functools.partial(_observe, v=data.v, problem=problem, rule=rule),
        start,
        lengths,
    )
    return jax.tree.map(lambda a: jnp.swapaxes(a, 0, 1), records), last


def _package(
    records: tuple[Array, ...], last: _Carry, schedule: np.ndarray, rule: _Rule
) -> Trajectory:
    W, loss, norm, attention, v = records
    finite = jnp.all(jnp.isfinite(loss), axis=1)
    ended = jnp.where(
        last.moving[:, 0, 0], Result.MAX_STEPS.value, Result.GRADIENT_BELOW_ROUNDING.value
    )
    params = {"W": W, "v": v if rule.joint else None}
    return Trajectory(
        jnp.asarray(schedule, jnp.int32),
        params,
        jax.tree.map(lambda a: entry(a, (slice(None), -1)), params),
        loss,
        norm,
        {"attention": attention},
        jnp.where(finite, ended, Result.NOT_FINITE.value).astype(jnp.int32),
        last.moved[:, 0, 0],
    )


def _rule(p: float, rates: tuple[float, float], loss: str, normalized: bool, joint: bool) -> _Rule:
    require_mirror_exponent(p)
    rate, eps = rates
    if not (rate > 0 and is_finite(rate)):
        raise UserError(f"learning_rate = {rate} is not positive and finite: choose another")
    if not (eps >= 0 and is_finite(eps)):
        raise UserError(f"eps = {eps} is negative or not finite: choose 0, or a small number")
    margin_loss(loss)
    return _Rule(float(p), loss, normalized, joint)


def train_selection(
    data: TokenSelection,
    W0: ArrayInput,
    *,
    p: float,
    learning_rate: float,
    steps: int,
    record_at: Sequence[int] | None = None,
    loss: str = "logistic",
    normalized: bool = True,
    eps: float = 0.0,
    joint: bool = False,
    v0: ArrayInput | None = None,
) -> Trajectory:
    r"""Mirror descent on W (l_p-AttGD) or on v and W (l_p-JointGD), julistiono2024optimizing.

    Normalised steps divide each gradient by its own dual norm, that of v and that of W apart.
    They stop, with the code GRADIENT_BELOW_ROUNDING, where ||grad||_q is at most its first-order
    rounding error; plain steps never stop. The cost is steps x n T d, the memory that of
    the records.

    Args:
        W0: start, [d, d]; a list, or an array of NumPy, JAX or torch, as v0.
        p: exponent, 1 < p < inf.
        record_at: increasing step numbers; log-spaced when None.
        normalized: dual-normalised steps, as the released synthetic code; else plain ones.
        eps: added to the dual norm; the released code has one, which stalls W at a finite norm.
        joint: train v as well, from v0.
        v0: start of the value head in joint training; zero when None.

    Returns:
        The trajectory, in the dtype of the data.

    A `UserError` names data or settings that cannot be used.

    Examples:
        >>> from attlas.data.token_selection import make_support_selection
        >>> data = make_support_selection(jax.random.key(0))
        >>> path = train_selection(
        ...     data, jnp.zeros((4, 4)), p=2.0, learning_rate=0.1, steps=100, record_at=(0, 100))
        >>> print(f"{float(jnp.linalg.norm(path.W[1])):.6f}")
        10.000000
    """
    validate(data)
    schedule = recording_schedule(steps, record_at)
    rule = _rule(p, (learning_rate, eps), loss, normalized, joint)
    with precision_of(data):
        bare = _bare(data)
        W, v = _start(W0, "W0", (data.X.shape[2],) * 2, bare), _head(bare, v0)
        alone = jax.tree.map(lambda a: a[None], (bare, W, v))
        rates = jnp.asarray((learning_rate, eps), W.dtype)
        records, last = _train(*alone, rates, _lengths(schedule), rule=rule)
        return _package(records, last, schedule, rule).member(0)


def _start(value: ArrayInput, name: str, shape: tuple[int, ...], data: TokenSelection) -> Array:
    """Where a training starts, in the type of the data."""
    with own_precision("*s", **{name: value}) as (checked,):
        if checked.shape != shape:
            raise UserError(f"{name} has shape {checked.shape}: give {shape}, as the data have")
    return checked.astype(data.X.dtype)


def _head(data: TokenSelection, v0: ArrayInput | None) -> Array:
    return jnp.zeros_like(data.v) if v0 is None else _start(v0, "v0", data.v.shape, data)


def _bare(data: TokenSelection) -> TokenSelection:
    fields = (data.X, data.y, data.z, data.v)
    return TokenSelection(*(jnp.asarray(field, jnp.result_type(data.X)) for field in fields))


def _lengths(schedule: np.ndarray) -> Array:
    return jnp.asarray(np.diff(schedule, prepend=0), jnp.int32)


def _cache_chunk(data: TokenSelection) -> int:
    """How many problems of an ensemble fit the cache together, or fill an accelerator."""
    n, T, d = data.X.shape[-3:]
    # Tokens, queries in both orders, W, G and the rows of attention.
    entries = n * T * d + 2 * n * d + 3 * d * d + 4 * n * T
    size = entries * data.X.dtype.itemsize
    return max(1, CACHE_BYTES // size) if on_cpu() else accelerator_width(size)


def _width(data: TokenSelection, chunk: int | None) -> int:
    """Problems a chunk, of an ensemble that can be trained."""
    validate(data, ensemble=True)
    e = len(data.v)
    if e == 0:
        raise UserError(f"X has shape {data.X.shape}: give at least one problem")
    if chunk is not None and chunk < 1:
        raise UserError(f"chunk = {chunk} is below 1: train at least one problem at a time")
    return min(core_share(e), _cache_chunk(data)) if chunk is None else min(e, chunk)


def train_selection_ensemble(
    data: TokenSelection,
    W0: ArrayInput,
    *,
    p: float,
    learning_rate: float,
    steps: int,
    record_at: Sequence[int] | None = None,
    loss: str = "logistic",
    normalized: bool = True,
    eps: float = 0.0,
    joint: bool = False,
    v0: ArrayInput | None = None,
    chunk: int | None = None,
) -> Trajectory:
    r"""`train_selection` in chunks that fit the cache; they change results by rounding only.

    Args:
        data: problems along a leading axis of every array.
        W0: starts, [e, d, d].
        p: exponent, 1 < p < inf.
        record_at: increasing step numbers; log-spaced when None.
        normalized: dual-normalised steps; else plain ones.
        eps: added to the dual norm.
        joint: train v as well, from v0.
        v0: starts of the value heads, [e, d]; zero when None.
        chunk: problems per chunk; when None what fits the cache, and a part for each core.

    Returns:
        The trajectories along a leading axis.

    Examples:
        >>> from attlas.data.token_selection import make_support_selection
        >>> keys = jax.random.split(jax.random.key(0), 3)
        >>> data = jax.vmap(make_support_selection)(keys)
        >>> path = train_selection_ensemble(
        ...     data, jnp.zeros((3, 4, 4)), p=2.0, learning_rate=0.1, steps=9, record_at=(9,))
        >>> path.W.shape
        (3, 1, 4, 4)
    """
    schedule = recording_schedule(steps, record_at)
    rule = _rule(p, (learning_rate, eps), loss, normalized, joint)
    width = _width(data, chunk)
    with precision_of(data):
        bare, (e, d) = _bare(data), data.v.shape
        W, v = _start(W0, "W0", (e, d, d), bare), _head(bare, v0)
        rates, lengths = jnp.asarray((learning_rate, eps), W.dtype), _lengths(schedule)
        records, last = in_chunks(
            lambda part: _train(*part, rates, lengths, rule=rule), (bare, W, v), width
        )
        return _package(records, last, schedule, rule)
