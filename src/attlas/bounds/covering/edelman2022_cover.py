r"""The log T cover of Edelman et al. (2022), Lemma 4.6, with an explicit constant.

Matrices W of k rows with sum_i ||W_i||_2 <= B, inputs ||x||_2 <= B_x at N given points. The proof
runs a perceptron in each row (papers/trauger2023sequence/proofs/covers.md); theta is the ratio of
the grid on which the norms of the rows are described.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.covering.dudley import Number
from attlas.core.errors import UserError
from attlas.core.ranges import require_at_least, require_positive

MOST_UPDATES = 1e9

GRID_RATIOS = tuple(float(ratio) for ratio in 1 + np.geomspace(0.01, 1, 25))


@closed_form
def edelman2022_cover(
    norm: Number, B_x: Number, points: Number, k: int, m: Number
) -> Float[Array, ""]:
    r"""The coefficient C of log N <= C / eps^2, for entropies up to m / 2.

    $$C=B^2B_x^2\ \text{for}\ k=1:\ \ln(2N+1),\qquad\text{else}\
    \min_\theta\Big(\theta\ln(2kN+1)+\ln\big\lceil\log_\theta\tfrac m2\big\rceil\Big)$$

    Args:
        norm: B, the sum of the norms of the rows.
        B_x: largest norm of an input.
        points: N; m T for all tokens, m for the [CLS] tokens alone.
        m: samples; finer covers than m / 2 never pay in a chain.

    Source: Lemma 3.5 of trauger2023sequence (found, constant hidden); constant derived.

    Examples:
        >>> print(f"{float(edelman2022_cover(1.0, 1.0, 100, 1, 300)):.4f}")  # ln 201
        5.3033
        >>> print(f"{float(edelman2022_cover(1.0, 1.0, 100, 2, 300)):.4f}")
        10.4847
    """
    require_at_least(0, norm=norm, B_x=B_x)
    require_at_least(1, points=points, k=k, m=m)
    square = (jnp.asarray(norm) * B_x) ** 2
    if k == 1:
        return square * jnp.log(jnp.asarray(2 * points + 1, square.dtype))
    size = jnp.log(jnp.asarray(2 * k * points + 1, square.dtype))
    cells = jnp.log(jnp.maximum(jnp.asarray(m, square.dtype) / 2, 2.0))
    grid = jnp.asarray(GRID_RATIOS, square.dtype)
    lengths = jnp.log(jnp.ceil(cells / jnp.log(grid)))
    return square * jnp.min(grid * size + lengths)


@closed_form
def perceptron_cover(
    w: Float[np.ndarray, " d"], X: Float[np.ndarray, "N d"], epsilon: float
) -> tuple[Float[np.ndarray, " d"], int]:
    r"""The centre that covers one linear function on given points, and its updates.

    $$u\leftarrow u+\frac\epsilon{B_x^2}\,{\rm sign}((w-u)^\top x_t)\,x_t\quad\text{while}\quad
    |(w-u)^\top x_t|>\epsilon$$

    Each update lowers ||w - u||^2 by more than eps^2 / B_x^2, so that there are fewer than
    ||w||^2 B_x^2 / eps^2 of them, and a centre is named by its updates.

    Args:
        X: points, one per row.
        epsilon: distance wanted, above 0.

    Returns:
        The centre u with max_t |(w - u)^T x_t| <= epsilon, and the number of updates.

    Raises:
        UserError: for an epsilon with ||w||^2 B_x^2 / eps^2 of 10^9 and more.

    Source: derived, papers/trauger2023sequence/proofs/covers.md.

    Examples:
        >>> centre, updates = perceptron_cover(np.array([1.0, 0.0]), np.diag([2.0, 1.0]), 0.5)
        >>> centre.tolist(), updates
        ([0.75, 0.0], 3)
        >>> perceptron_cover(np.array([1.0, 0.0]), np.zeros((3, 2)), 0.5)[1]  # nothing to describe
        0
    """
    require_positive(epsilon=epsilon)
    centre, updates = np.zeros_like(w), 0
    largest = float(np.max(np.sum(X**2, axis=1)))
    if largest == 0:
        return centre, updates
    if not (most := float(w @ w) * largest / epsilon**2) < MOST_UPDATES:
        raise UserError(f"epsilon = {epsilon}: up to {most:.0e} updates, give a larger one")
    step = epsilon / largest
    while True:
        error = X @ (w - centre)
        worst = int(np.argmax(np.abs(error)))
        if abs(error[worst]) <= epsilon:
            return centre, updates
        centre = centre + step * math.copysign(1.0, error[worst]) * X[worst]
        updates += 1
