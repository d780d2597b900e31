r"""Search for the best margin that attention reaches with parameters of a given norm.

max_{||theta|| = radius} min_i y_i Phi(X_i; theta) is not concave, so many starts climb a smooth
minimum of growing sharpness on the sphere, all in one program. Phi is linear in the decoders U:
for the key-query matrices found, the best U is the kernel SVM of the attended tokens, exactly.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas._jax.loop_jit import loop_jit
from attlas.core.arrays import ArrayInput, as_float64
from attlas.core.errors import UserError
from attlas.core.memory import require_memory
from attlas.core.ranges import is_finite
from attlas.core.solution import Result, Solution
from attlas.models.attention.multi_head import Decoder, MultiHead, make_multi_head
from attlas.solvers.kernel_svm import kernel_svm_batch

# Sharpness of the smooth minimum, in units of one over the largest possible margin: from
# flatter than the spread of the margins to an error of log(n) / 3000.
_SHARPNESS = (3.0, 3000.0)
# First step as a share of the radius, over the root of the number of parameters.
_STEP = 0.1
# Starts that must reach the best value for it to count as found.
_AGREEING = 3
# Starts and steps that indices of 32 bits hold; no search comes near.
_MOST = 2**31 - 1
# Weights of the second of two samples in the upper bound.
_PAIR_WEIGHTS = np.linspace(0.0, 0.5, 11)


def global_margin(
    X: ArrayInput,
    y: ArrayInput,
    heads: int,
    decoder: Decoder = Decoder.FULL,
    *,
    radius: float = 2.0**0.5,
    starts: int = 16,
    steps: int = 1000,
    tolerance: float = 1e-3,
    key: PRNGKeyArray,
) -> Solution[Float[np.ndarray, ""]]:
    r"""Lower bound, by search, of the global margin of multi-head attention.

    $$\max_{\|\theta\|=r}\ \min_i\ y_i\,\Phi(X_i;\theta)$$

    The value is attained by the model returned; that none is better is not proved. The first
    start has W = 0, so the value is no less than the margin of uniform attention. Searched in
    float64, whatever the precision of the input and of JAX.

    Here H is `heads`.

    Args:
        X: tokens of the samples, [n, T, d].
        y: labels, +1 or -1, [n].
        decoder: "full", "pooled" or "last", the tokens that are decoded.
        radius: r, the norm of all parameters.
        starts: number of starts, at least 3.
        steps: ascent steps of each start.
        tolerance: relative distance within which the three best starts must agree.

    Returns:
        The margin. `Result.MAX_STEPS` if fewer than three starts agree on it, or if it is not
        positive. Certificate: `lower` (the value), `upper` (`margin_upper_bound`), `spread`
        (relative distance of the third best start). Stats: `model`, `values`, `agreeing`.

    Raises:
        UserError: if starts, steps or tolerance, or X, y, heads or radius, are out of range.

    Source: section 7 of deora2023optimization.

    Examples:
        >>> X = jnp.array([[[1.0, 0.0]], [[0.0, 1.0]]])
        >>> found = global_margin(X, jnp.array([1.0, -1.0]), 1, steps=50, key=jax.random.key(0))
        >>> print(f"{float(found.unwrap()):.6f}")
        1.000000
    """
    tokens, labels = _checked(X, y, heads, radius)
    if starts < _AGREEING or steps < 1:
        raise UserError(f"starts = {starts}, steps = {steps}: give at least {_AGREEING} and 1")
    if max(starts, steps) > _MOST:
        raise UserError(f"more than {_MOST} starts or steps: give fewer")
    if not 0 < tolerance < 1:
        raise UserError(f"tolerance = {tolerance} is not in (0, 1): it is a relative distance")
    ceiling = margin_upper_bound(tokens, labels, decoder, radius=radius)
    with jax.enable_x64(True):
        search = _search(tokens, labels, heads, decoder, radius, starts, steps, ceiling, key)
        return _best(*search, ceiling, tolerance)


def margin_upper_bound(
    X: ArrayInput,
    y: ArrayInput,
    decoder: Decoder = Decoder.FULL,
    *,
    radius: float = 2.0**0.5,
) -> float:
    r"""Upper bound of the global margin of multi-head attention, for any number of heads.

    $$\min_i y_i\Phi(X_i;\theta)\le r\,c\min_{i,j,\lambda}\max_{s,t}
    \|(1-\lambda)y_iX_{is}+\lambda y_jX_{jt}\|,\quad c=\sqrt T,\ T,\ 1$$

    for decoders that read all tokens, their sum, or the last: the least margin is at most any
    convex combination of two, attended tokens are convex combinations of tokens, a norm is
    largest at vertices, and sum_h ||U_h|| <= sqrt(H) ||U||. With lambda = 0 this is
    r c min_i max_t ||X_it||.

    Args:
        X: tokens of the samples, [n, T, d].
        y: labels, +1 or -1, [n].
        decoder: "full", "pooled" or "last", the tokens that are decoded.
        radius: r, the norm of all parameters.

    Returns:
        The bound, over lambda in {0, 0.05, ..., 1}.

    Raises:
        UserError: if an array is not finite or does not fit, labels are not +-1, the radius is not
            positive, or the products of all pairs of tokens fit no memory.

    Source: derived for section 7 of deora2023optimization.

    Examples:
        >>> X = jnp.array([[[2.0]], [[1.0]]])
        >>> margin_upper_bound(X, jnp.array([1.0, 1.0]), radius=1.0)
        1.0
        >>> margin_upper_bound(X, jnp.array([1.0, -1.0]), radius=1.0).__round__(12)
        0.05
    """
    X, y = _checked(X, y, 1, radius)
    tokens = X * y[:, None, None]
    n, T, _ = X.shape
    require_memory(
        3 * 8 * (n * T) ** 2, "the products of all pairs of tokens", "give fewer samples"
    )
    inner = np.einsum("isd,jtd->ijst", tokens, tokens)
    squares = np.einsum("isd,isd->is", tokens, tokens)
    first, second = squares[:, None, :, None], squares[None, :, None, :]
    least = min(
        float(((1 - w) ** 2 * first + w**2 * second + 2 * w * (1 - w) * inner)
              .max(axis=(2, 3)).min())
        for w in _PAIR_WEIGHTS
    )  # fmt: skip
    reads = {Decoder.FULL: T**0.5, Decoder.POOLED: float(T), Decoder.LAST: 1.0}
    if not np.isfinite(least):
        raise UserError("X holds entries whose squares overflow: scale it")
    return radius * reads[decoder] * max(least, 0.0) ** 0.5


def _checked(
    X: ArrayInput, y: ArrayInput, heads: int, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    tokens, labels = as_float64(X, "X", "n T d"), as_float64(y, "y", "n")
    if 0 in tokens.shape:
        raise UserError(f"X has shape {tokens.shape}: give at least one sample, token and feature")
    if len(labels) != len(tokens):
        raise UserError(f"y has shape {labels.shape}, X requires ({len(tokens)},) labels")
    if not np.isin(labels, (-1, 1)).all():
        raise UserError("y holds labels other than +1 and -1: recode them")
    if heads < 1:
        raise UserError(f"heads = {heads}: a model needs at least one head")
    if not (radius > 0 and is_finite(radius)):
        raise UserError(f"radius = {radius} is not in (0, inf): it is the norm of the parameters")
    return tokens, labels


def _search(
    tokens: np.ndarray,
    labels: np.ndarray,
    heads: int,
    decoder: Decoder,
    radius: float,
    starts: int,
    steps: int,
    ceiling: float,
    key: PRNGKeyArray,
) -> tuple[MultiHead, np.ndarray]:
    """The best model of every start, and its margin."""
    X, y = jnp.asarray(tokens), jnp.asarray(labels)
    models = _best_decoders(_first_models(X, heads, decoder, radius, starts, key), X, y, radius)
    models = _ascend(models, X, y, jnp.asarray(ceiling or 1.0), jnp.asarray(radius), steps)
    refined = _best_decoders(models, X, y, radius)
    models = _better(refined, models, _margins(refined, X, y) > _margins(models, X, y))
    return models, np.asarray(_margins(models, X, y))


def _first_models(
    X: Array, heads: int, decoder: Decoder, radius: float, starts: int, key: PRNGKeyArray
) -> MultiHead:
    """Random directions; the share of W in the norm grows from nothing to most of it."""
    _, T, d = X.shape
    model = make_multi_head(heads, T, d, decoder, X.dtype)
    rng = generator(key)
    U, W = (rng.normal(size=(starts, *leaf.shape)) for leaf in (model.U, model.W))
    share = np.linspace(0.0, 0.9, starts)
    U, W = (
        leaf / np.linalg.norm(leaf.reshape(starts, -1), axis=1).reshape(-1, *[1] * (leaf.ndim - 1))
        * (radius * weight).reshape(-1, *[1] * (leaf.ndim - 1))
        for leaf, weight in ((U, np.sqrt(1 - share**2)), (W, share))
    )  # fmt: skip
    stack = jax.vmap(lambda u, w: MultiHead(u, w, decoder))
    return stack(jnp.asarray(U, X.dtype), jnp.asarray(W, X.dtype))


def _best(
    models: MultiHead, values: np.ndarray, ceiling: float, tolerance: float
) -> Solution[Float[np.ndarray, ""]]:
    order = np.argsort(-values)
    best = values[order[0]]
    model: MultiHead = jax.tree.map(lambda leaf: leaf[order[0]], models)
    spread = (best - values[order[_AGREEING - 1]]) / abs(best) if best else np.inf
    converged = best > 0 and spread <= tolerance
    certificate = {"lower": best, "upper": ceiling, "spread": spread}
    stats = {
        "model": model,
        "values": values,
        "agreeing": int((values >= best - tolerance * abs(best)).sum()),
    }
    code = Result.CONVERGED if converged else Result.MAX_STEPS
    return Solution(np.asarray(best), np.asarray(code.value), certificate, stats)


@jax.jit
def _margins(models: MultiHead, X: Array, y: Array) -> Array:
    return jax.vmap(lambda model: jnp.min(y * jax.vmap(model)(X)))(models)


@jax.jit
def _attended(models: MultiHead, X: Array) -> Array:
    """Features of U: the gradient of Phi in U, which does not depend on U, [starts, n, ...]."""

    def output(U: Array, model: MultiHead, sample: Array) -> Array:
        return MultiHead(U, model.W, model.decoder)(sample)

    gradient = jax.vmap(jax.grad(output), (None, None, 0))
    return jax.vmap(lambda model: gradient(model.U, model, X))(models)


def _best_decoders(models: MultiHead, X: Array, y: Array, radius: float) -> MultiHead:
    """The best U for the W of every model, where it separates the samples."""
    features = np.asarray(_attended(models, X))
    starts, n = features.shape[:2]
    flat = features.reshape(starts, n, -1)
    labels = np.broadcast_to(np.asarray(y), (starts, n))
    svm = kernel_svm_batch(np.matmul(flat, flat.transpose(0, 2, 1)), labels)
    W = np.asarray(models.W)
    left = np.maximum(radius**2 - np.einsum("shde,shde->s", W, W), 0.0)
    theta = np.einsum("sn,snp->sp", svm.certificate["alpha"], flat) * np.sqrt(left)[:, None]
    finite = np.isfinite(theta).all(axis=1)
    U = np.where(finite[:, None], theta, np.asarray(models.U).reshape(starts, -1))
    U = jnp.asarray(U.reshape(models.U.shape))
    return eqx.tree_at(lambda model: model.U, models, U)


def _better(first: MultiHead, second: MultiHead, choice: Array) -> MultiHead:
    """One of two models for every start."""
    return jax.tree.map(
        lambda a, b: jnp.where(choice.reshape(-1, *[1] * (a.ndim - 1)), a, b), first, second
    )


@loop_jit(jit=eqx.filter_jit)
def _ascend(
    models: MultiHead, X: Array, y: Array, unit: Array, radius: Array, steps: int
) -> MultiHead:
    """The best point on the way of projected Adam from every start."""
    low, high = _SHARPNESS
    count = models.U[0].size + models.W[0].size
    optimizer = optax.adam(optax.cosine_decay_schedule(_STEP / count**0.5, steps))
    # Plain pairs (U, W), in units of the radius: what climbs is the sphere of radius one.
    Pair = tuple[Array, Array]

    def unfold(point: Pair) -> MultiHead:
        return MultiHead(radius * point[0], radius * point[1], models.decoder)

    def inner(a: Pair, b: Pair) -> Array:
        return jnp.sum(a[0] * b[0]) + jnp.sum(a[1] * b[1])

    def onto_sphere(point: Pair) -> Pair:
        norm = jnp.sqrt(inner(point, point))
        return point[0] / norm, point[1] / norm

    def smooth(point: Pair, sharpness: Array) -> tuple[Array, Array]:
        margins = y * jax.vmap(unfold(point))(X) / unit
        return jax.nn.logsumexp(-sharpness * margins) / sharpness, jnp.min(margins)

    def step(carry, position: Array):
        point, state, best, least = carry
        sharpness = low * (high / low) ** position
        slope, smallest = jax.grad(smooth, has_aux=True)(point, sharpness)
        best = jax.tree.map(lambda new, old: jnp.where(smallest > least, new, old), point, best)
        radial = inner(slope, point)
        tangent = jax.tree.map(lambda g, a: g - radial * a, slope, point)
        # optax raises a float to an integer power: strict promotion refuses that.
        with jax.numpy_dtype_promotion("standard"):
            move, state = optimizer.update(tangent, state)
        point = onto_sphere(jax.tree.map(jnp.add, point, move))
        return (point, state, best, jnp.maximum(least, smallest)), None

    def climb(model: MultiHead) -> MultiHead:
        point = onto_sphere((model.U, model.W))
        first = (point, optimizer.init(point), point, jnp.asarray(-jnp.inf, X.dtype))
        positions = jnp.linspace(0.0, 1.0, steps, dtype=X.dtype)
        return unfold(jax.lax.scan(step, first, positions)[0][2])

    return jax.vmap(climb)(models)
