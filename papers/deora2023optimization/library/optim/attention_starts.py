r"""Starts of multi-head attention: zero, one randomised step, Gaussian weights."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.core.errors import UserError
from attlas.core.ranges import is_finite
from attlas.models.attention.multi_head import MultiHead, make_multi_head
from attlas.optim.one_step import one_step_initialisation


def gaussian_heads(shape: MultiHead, deviation: float, seed: Sequence[int]) -> MultiHead:
    r"""Independent Gaussian entries in every U_h and W_h; one stream whatever the deviation.

    Args:
        shape: a model of the wanted sizes.
        deviation: standard deviation of the entries, not negative.
        seed: integers that seed the draw.

    Returns:
        The model, in the dtype of the given one.

    Examples:
        >>> zero = make_multi_head(2, 3, 4)
        >>> one, two = (gaussian_heads(zero, size, [0, 1]) for size in (1.0, 2.0))
        >>> two.U.shape, bool(jnp.all(two.U == 2 * one.U))
        ((2, 3, 4), True)
    """
    if not (deviation >= 0 and is_finite(deviation)):
        raise UserError(f"deviation = {deviation} is negative or not finite: choose another")
    rng = np.random.default_rng(list(seed))
    U, W = (jnp.asarray(deviation * rng.normal(size=a.shape), a.dtype) for a in (shape.U, shape.W))
    return MultiHead(U, W, shape.decoder)


def attention_starts(
    key: PRNGKeyArray,
    X: Float[Array, "n T d"],
    y: Float[Array, " n"],
    heads: int,
    deviations: Sequence[float],
    seed: Sequence[int],
) -> tuple[MultiHead, ...]:
    """Zero, one randomised step on the samples, and Gaussian weights of each deviation.

    Args:
        key: random key of the signs of the step, see `first_phase_steps`.
        X: samples of the first phase.
        y: labels, -1 or 1.
        heads: H, at least 1.
        deviations: standard deviations of the Gaussian entries; all scale the same draw.
        seed: integers that seed the Gaussian draw.

    Returns:
        Two models, and one for each deviation.

    Examples:
        >>> import jax
        >>> X, y = jnp.array([[[2.0]], [[-2.0]]]), jnp.array([1.0, -1.0])
        >>> zero, step, _ = attention_starts(jax.random.key(0), X, y, 1, [0.5], [0])
        >>> zero.U.tolist(), abs(step.U).tolist()
        ([[[0.0]]], [[[1.0]]])
    """
    _, T, d = X.shape
    zero = make_multi_head(heads, T, d, dtype=X.dtype)
    step = one_step_initialisation(key, X, y, heads)
    return zero, step, *(gaussian_heads(zero, size, seed) for size in deviations)
