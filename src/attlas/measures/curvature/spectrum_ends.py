r"""Both ends of several spectra at once, from a fixed number of products, with enclosures."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.core.axes import require_axes
from attlas.core.errors import UserError
from attlas.core.ranges import whole_number
from attlas.measures.curvature.lanczos_bound import largest_eigenvalue_bound

_ASKED = 20
"""Products after which it is asked whether they are enough."""


class SpectrumEnds(NamedTuple):
    """Extreme eigenvalues of B symmetric matrices, the smallest before the largest.

    Attributes:
        residuals: |H v - theta v|: an eigenvalue lies that near.
        low: lower ends of intervals that hold the extreme eigenvalue.
        steps: products per matrix.
    """

    values: Float[np.ndarray, "B 2"]
    residuals: Float[np.ndarray, "B 2"]
    low: Float[np.ndarray, "B 2"]
    high: Float[np.ndarray, "B 2"]
    steps: int


def spectrum_ends(
    products: Callable[[np.ndarray], np.ndarray],
    count: int,
    size: int,
    *,
    steps: int = 40,
    failure: float = 1e-6,
    seed: int = 0,
    progress: Callable[[], None] = lambda: None,
    suffices: Callable[[SpectrumEnds], bool] | None = None,
) -> SpectrumEnds:
    r"""Lanczos on B symmetric matrices in step, with all vectors kept orthogonal.

    A Rayleigh quotient never exceeds the end of the spectrum. How far the end lies beyond the best
    value of a Krylov space from a random start follows from the recurrence of the run, see
    `largest_eigenvalue_bound`. The intervals hold without convergence: fewer products make them
    wider. Matrices of at most `steps` rows are formed completely.

    Args:
        products: the rows H_b v_b of rows v_b, [B, size] to [B, size], in its own precision.
        size: number of rows of each matrix.
        steps: K, products per matrix; 2 K B vectors are held in memory.
        failure: probability with which an interval may fail.
        progress: called after each product.
        suffices: asked after every 20 products whether they do; all answers share the failure.

    Returns:
        Ends and intervals; NaN if a product is not finite. Rounding is estimated as the larger of
        sqrt(size) eps |theta| and the asymmetry of the products.

    Raises:
        UserError: if a setting is out of its range.

    Examples:
        >>> H = np.stack([np.diag([-1.0, 0.0, 3.0]), np.eye(3)])
        >>> found = spectrum_ends(lambda v: np.einsum("bij,bj->bi", H, v), 2, 3)
        >>> found.values.round(12).tolist()
        [[-1.0, 3.0], [1.0, 1.0]]
    """
    _require_settings(count, size, steps, failure)
    is_complete = size <= steps
    number = size if is_complete else steps
    part = failure / 2 / (1 if suffices is None else 1 + number // _ASKED)
    draws = np.random.default_rng(seed)
    basis, images = (np.zeros((count, number, size), np.float32) for _ in range(2))
    for step in range(number):
        unit = np.broadcast_to(np.eye(1, size, step), (count, size))
        rows = unit if is_complete else _next(basis[:, :step], images[:, :step], draws)
        image = products(rows)
        require_axes("B size, B size", {"rows": rows.shape, "products of rows": np.shape(image)})
        if step == 0:
            basis, images = (array.astype(image.dtype) for array in (basis, images))
        basis[:, step], images[:, step] = rows, image
        progress()
        if suffices is None or is_complete or (step + 1) % _ASKED or step + 1 == number:
            continue
        ends = _every(basis[:, : step + 1], images[:, : step + 1], part)
        if suffices(ends):
            return ends
    return _every(basis, images, part)


def _require_settings(count: int, size: int, steps: int, failure: float) -> None:
    """Check that the settings are in their ranges."""
    for name, rows in {"count": count, "size": size}.items():
        whole_number(rows, name, 1, 2**40)
    if steps < 2 or not 0 < failure < 1:
        raise UserError(
            f"count = {count}, size = {size}, steps = {steps}, failure = {failure}: choose count "
            "and size of at least 1, steps of at least 2 and failure between 0 and 1"
        )


def _every(
    basis: Float[np.ndarray, "B K P"], images: Float[np.ndarray, "B K P"], failure: float
) -> SpectrumEnds:
    """The ends of every matrix, each wrong with a probability."""
    ends = [_ends(Q, W, failure) for Q, W in zip(basis, images, strict=True)]
    columns = (np.stack(array) for array in zip(*ends, strict=True))
    return SpectrumEnds._make([*columns, basis.shape[1]])


def _next(
    basis: Float[np.ndarray, "B k P"],
    images: Float[np.ndarray, "B k P"],
    draws: np.random.Generator,
) -> Float[np.ndarray, "B P"]:
    """The last images, made orthogonal to the basis; drawn afresh if nothing remains."""
    fresh = draws.standard_normal((basis.shape[0], basis.shape[2]))
    if not basis.shape[1]:
        return fresh / np.linalg.norm(fresh, axis=1, keepdims=True)
    image = images[:, -1].astype(float)
    before = np.linalg.norm(image, axis=1)
    left = _orthogonal(basis, image)
    # A remainder of the size of a product's rounding after the first pass is noise.
    rounding = np.finfo(basis.dtype).eps * np.sqrt(basis.shape[2])
    spent = ~(np.linalg.norm(left, axis=1) > rounding * before)
    left[spent] = _orthogonal(basis[spent], fresh[spent])
    left = _orthogonal(basis, left / np.linalg.norm(left, axis=1, keepdims=True))
    return left / np.linalg.norm(left, axis=1, keepdims=True)


def _orthogonal(basis: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows less their parts in the span of the basis."""
    components = np.matmul(basis, rows[:, :, None].astype(basis.dtype))
    return rows - np.matmul(np.swapaxes(basis, 1, 2), components)[:, :, 0]


def _ends(
    basis: Float[np.ndarray, "K P"], images: Float[np.ndarray, "K P"], failure: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Values, residuals and intervals of one matrix by Rayleigh-Ritz in the span of the basis."""
    small = (basis @ images.T).astype(float)
    if not np.all(np.isfinite(small)):
        nothing = np.full(2, np.nan)
        return nothing, nothing, nothing, nothing
    values, vectors = np.linalg.eigh((small + small.T) / 2)
    coefficients = vectors[:, [0, -1]].T.astype(basis.dtype)
    ends = values[[0, -1]]
    misses = coefficients @ images - ends[:, None] * (coefficients @ basis)
    eps, scale = np.finfo(basis.dtype).eps, np.abs(ends).max()
    asymmetry = float(np.linalg.norm(small - small.T, 2))
    rounding = max(float(np.sqrt(basis.shape[1]) * eps * scale), asymmetry)
    low, high = ends - rounding, ends + rounding
    if len(basis) < basis.shape[1]:
        low[0], high[1] = _beyond(basis, images, small, rounding, failure)
    return ends, np.linalg.norm(misses, axis=1), low, high


def _beyond(
    basis: Float[np.ndarray, "K P"],
    images: Float[np.ndarray, "K P"],
    small: Float[np.ndarray, "K K"],
    rounding: float,
    failure: float,
) -> tuple[float, float]:
    """Bounds on the smallest and the largest eigenvalue, from the run's own recurrence."""
    diagonal, inner = np.diag(small), np.diag(small, 1)
    remainder = images[-1] - small[:, -1].astype(basis.dtype) @ basis
    off = np.append(np.abs(inner), np.linalg.norm(remainder))
    # The recurrence is exact for a matrix this far away (twice, for a symmetric change): its misses
    # of the images, and the rounding of the products.
    tridiagonal = np.diag(diagonal) + np.diag(inner, 1) + np.diag(inner, -1)
    missed = images - tridiagonal.astype(basis.dtype) @ basis
    missed[-1] -= remainder
    drift = 2 * (np.linalg.norm(missed) + np.sqrt(len(basis)) * rounding)
    # Beyond an invariant space the basis was drawn afresh: the start's polynomials end there.
    spent = np.flatnonzero(off <= rounding)
    size_used = int(spent[0]) + 1 if len(spent) else len(off)
    diagonal, off, size = diagonal[:size_used], off[:size_used], basis.shape[1]
    return (
        float(-largest_eigenvalue_bound(-diagonal, off, size, failure) - drift),
        float(largest_eigenvalue_bound(diagonal, off, size, failure) + drift),
    )
