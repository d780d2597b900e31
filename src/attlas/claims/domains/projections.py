r"""Euclidean projections onto simple sets, in closed form and differentiable almost everywhere.

Each gives argmin_{y in C} ||y - x||_2. Floating point may put the nearest point of a closed ball a
rounding outside of it: `inward` is the factor that keeps it in.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float


def inward(x: Array) -> Array:
    """The factor 1 - 4 n eps by which n squares added up in floating point stay below their bound.

    The array x, which is scaled, has any shape of n entries.

    Examples:
        >>> bool(1 - 1e-5 < inward(jnp.ones(3)) < 1)
        True
    """
    return jnp.asarray(1 - 4 * (x.size + 4) * jnp.finfo(x.dtype).eps, x.dtype)


def project_ball(x: Array, radius: Array) -> Array:
    """Onto ||x||_2 <= radius, over all entries of an x of any shape.

    Examples:
        >>> project_ball(jnp.array([3.0, 4.0]), jnp.asarray(1.0)).round(3).tolist()
        [0.6..., 0.8...]
    """
    squares = jnp.sum(jnp.square(x))
    norm = jnp.sqrt(jnp.where(squares > 0, squares, 1))
    outside = (squares > 0) & (norm > radius)
    return jnp.where(outside, x * (inward(x) * radius / norm), x)


def project_sphere(x: Array, radius: Array) -> Array:
    """Onto ||x||_2 = radius, for x of any shape; zero, equally far from it, goes to an axis.

    Examples:
        >>> project_sphere(jnp.zeros(2), jnp.asarray(2.0)).tolist()
        [2.0, 0.0]
    """
    squares = jnp.sum(jnp.square(x))
    first = jnp.zeros(x.size, x.dtype).at[0].set(1).reshape(x.shape)
    norm = jnp.sqrt(jnp.where(squares > 0, squares, 1))
    return radius * jnp.where(squares > 0, x / norm, first)


def project_simplex(x: Float[Array, " n"], total: Float[Array, ""]) -> Float[Array, " n"]:
    r"""Onto x >= 0, sum x = total: max(x - theta, 0), theta by sorting (Duchi et al., 2008).

    Examples:
        >>> project_simplex(jnp.array([1.0, 0.8, -1.0]), jnp.asarray(1.0)).round(3).tolist()
        [0.6..., 0.4..., 0.0]
    """
    falling = -jnp.sort(-x)
    above = (jnp.cumsum(falling) - total) / jnp.arange(1, len(x) + 1, dtype=x.dtype)
    theta = above[jnp.sum(falling > above) - 1]
    return jnp.maximum(x - theta, 0)


def project_l1_ball(x: Array, radius: Array) -> Array:
    """Onto sum |x| <= radius, for x of any shape.

    Examples:
        >>> project_l1_ball(jnp.array([2.0, -1.0]), jnp.asarray(1.0)).round(3).tolist()
        [1.0, -0.0]
    """
    size = jnp.abs(x)
    near = project_simplex(size.ravel(), inward(x) * radius).reshape(x.shape)
    return jnp.where(jnp.sum(size) > radius, jnp.sign(x) * near, x)


def project_ordered(x: Float[Array, " n"]) -> Float[Array, " n"]:
    r"""Onto x_1 <= ... <= x_n: isotonic regression, max_{j <= i} min_{k >= i} mean(x_j, ..., x_k).

    Examples:
        >>> project_ordered(jnp.array([1.0, 3.0, 2.0])).tolist()
        [1.0, 2.5, 2.5]
    """
    n = len(x)
    sums = jnp.concatenate([jnp.zeros(1, x.dtype), jnp.cumsum(x)])
    first, last = jnp.arange(n)[:, None], jnp.arange(n)[None, :]
    length = jnp.where(last >= first, last - first + 1, 1).astype(x.dtype)
    # A block of one entry is that entry: differences of sums would round it.
    mean = jnp.where(last == first, x[:, None], (sums[1:][None, :] - sums[:-1][:, None]) / length)
    mean = jnp.where(last >= first, mean, jnp.inf)
    # Row j, column i: the least mean of x_j..x_k over k >= i.
    least = jnp.flip(_running(jnp.flip(mean, 1), jnp.minimum), 1)
    levels = jnp.max(jnp.where(first <= last, least, -jnp.inf), axis=0)
    return _running(levels[None], jnp.maximum)[0]


def _running(rows: Array, pick) -> Array:
    """Running minimum or maximum along the last axis, by doubling: it differentiates."""
    n, step = rows.shape[-1], 1
    while step < n:
        rows = jnp.concatenate([rows[:, :step], pick(rows[:, step:], rows[:, :-step])], axis=1)
        step *= 2
    return rows


def project_singular_values(x: Float[Array, "m n"], project) -> Float[Array, "m n"]:
    r"""Onto a set of matrices that is given by their singular values: U diag(project(s)) V^T.

    Args:
        project: maps the falling singular values to the nearest allowed ones.

    Returns:
        The nearest matrix (von Neumann's trace inequality).

    Examples:
        >>> x = jnp.diag(jnp.array([3.0, 0.5]))
        >>> project_singular_values(x, lambda s: jnp.minimum(s, 1)).round(3).tolist()
        [[1.0, 0.0], [0.0, 0.5]]
    """
    u, s, vt = jnp.linalg.svd(x, full_matrices=False)
    return (u * project(s)[None, :]) @ vt


def project_eigenvalues(x: Float[Array, "n n"], project) -> Float[Array, "n n"]:
    r"""Onto a set of symmetric matrices that is given by their eigenvalues.

    Args:
        x: matrix; its symmetric part is what is nearest among symmetric ones.
        project: maps the rising eigenvalues to the nearest allowed ones.

    Returns:
        The nearest symmetric matrix, exactly symmetric.

    Examples:
        >>> x = jnp.diag(jnp.array([1.0, -2.0]))
        >>> project_eigenvalues(x, lambda s: jnp.maximum(s, 0)).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    s, v = jnp.linalg.eigh((x + x.T) / 2)
    y = (v * project(s)[None, :]) @ v.T
    return (y + y.T) / 2
