r"""Gradient descent on the factors of W = K Q', whose bias is the nuclear norm."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.core.ranges import is_finite
from attlas.data.token_selection import TokenSelection, token_scores, validate
from attlas.losses.margin_loss import margin_loss
from attlas.training.course import record_along
from attlas.training.trajectory import Trajectory, recording_schedule
from julistiono2024optimizing.library.token_selection.gradient import scaled_gradient


class SphereSelection(NamedTuple):
    """One problem, or several along leading axes.

    Attributes:
        X: tokens of norm one.
        y: labels of the samples, +1 or -1.
        z: queries of norm one.
        v: value head of norm one.
    """

    X: Float[np.ndarray, "*b n T d"]
    y: Float[np.ndarray, "*b n"]
    z: Float[np.ndarray, "*b n d"]
    v: Float[np.ndarray, "*b d"]


def draw_sphere_selection(rng: np.random.Generator, n: int, T: int, d: int) -> SphereSelection:
    """One problem: uniform directions for tokens, queries and value head, random labels.

    Examples:
        >>> drawn = draw_sphere_selection(np.random.default_rng(0), 2, 3, 4)
        >>> drawn.X.shape, np.linalg.norm(drawn.v).round(12).tolist()
        ((2, 3, 4), 1.0)
    """
    normals = [rng.normal(size=shape) for shape in ((n, T, d), (n, d), (d,))]
    X, z, v = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in normals)
    return SphereSelection(X, rng.choice([-1.0, 1.0], n), z, v)


@functools.partial(jax.jit, static_argnames=("loss", "normalized"))
def _train(
    data: TokenSelection,
    factors: tuple[Array, Array],
    rate: Array,
    lengths: Array,
    *,
    loss: str,
    normalized: bool,
) -> tuple[Array, ...]:
    scores = token_scores(data)

    def gradient(factors: tuple[Array, Array]) -> tuple[Array, Array, Array, Array]:
        K, Q = factors
        G, scale = scaled_gradient(K @ Q.T, data.X, data.z, scores, margin_loss(loss))
        along_K, along_Q = G @ Q, G.T @ K
        norm = jnp.sqrt(jnp.sum(along_K**2) + jnp.sum(along_Q**2))
        return along_K, along_Q, norm, scale

    def advance(factors: tuple[Array, Array]) -> tuple[Array, Array]:
        along_K, along_Q, norm, scale = gradient(factors)
        size = 1 / jnp.where(norm > 0, norm, 1) if normalized else jnp.exp(scale)
        return factors[0] - rate * size * along_K, factors[1] - rate * size * along_Q

    def observe(factors: tuple[Array, Array]) -> tuple[Array, ...]:
        _, _, norm, scale = gradient(factors)
        return *factors, factors[0] @ factors[1].T, scale + jnp.log(norm)

    return record_along(advance, observe, factors, lengths)[1]


def train_factored(
    data: TokenSelection,
    K0: Float[Array, "d m"],
    Q0: Float[Array, "d m"],
    *,
    learning_rate: float,
    steps: int,
    record_at: Sequence[int] | None = None,
    loss: str = "logistic",
    normalized: bool = True,
) -> Trajectory:
    r"""Gradient descent on (K, Q) with W = K Q': grad_K = G Q, grad_Q = G' K, G = grad_W L.

    Small starts lead to the nuclear-norm attention SVM where descent on W leads to the Frobenius
    one (Tarzanagh et al. 2023); both factors at zero is a stationary point.

    Args:
        record_at: increasing step numbers; log-spaced when None.
        normalized: divide by the joint Frobenius norm of both gradients.

    Returns:
        The recorded factors K and Q; observed are W = K Q' and log_gradient_norm, the log of the
        norm of the gradient in (K, Q).

    Examples:
        >>> from attlas.data.token_selection import make_support_selection
        >>> data = make_support_selection(jax.random.key(0))
        >>> start = 0.1 * jnp.eye(4)
        >>> path = train_factored(
        ...     data, start, start, learning_rate=0.1, steps=500, record_at=(500,))
        >>> values = jnp.linalg.svd(path.W[0], compute_uv=False)
        >>> bool(values[1] < 0.01 * values[0])
        True
    """
    validate(data)
    if K0.shape != Q0.shape or K0.shape[:1] != (data.X.shape[2],):
        raise UserError(
            f"K0 has shape {K0.shape} and Q0 {Q0.shape}: give d x m twice, d = {data.X.shape[2]}"
        )
    if not (learning_rate > 0 and is_finite(learning_rate)):
        raise UserError(f"learning_rate = {learning_rate} is not positive and finite")
    schedule = recording_schedule(steps, record_at)
    lengths = jnp.asarray(np.diff(schedule, prepend=0), jnp.int32)
    bare = TokenSelection(data.X, data.y, data.z, data.v)
    rate = jnp.asarray(learning_rate, K0.dtype)
    K, Q, W, log_norm = _train(bare, (K0, Q0), rate, lengths, loss=loss, normalized=normalized)
    params, observed = {"K": K, "Q": Q}, {"W": W, "log_gradient_norm": log_norm}
    last = jax.tree.map(lambda a: a[-1], params)
    return Trajectory(jnp.asarray(schedule, jnp.int32), params, last, observed=observed)
