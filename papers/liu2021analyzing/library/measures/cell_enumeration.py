r"""The cells of a hyperplane arrangement themselves, each with a point inside it.

No linear program is solved. Where the count shows that the arrangement is simple (no more than s
hyperplanes meet in a point, and every s do), each cell has a vertex, and the 2^s cells around every
vertex are all of them. Else hyperplanes are added one by one: the cells that a new one cuts are the
cells of the older ones on it, an arrangement of one dimension less. Points are found in floating
point and prove by their signs that their cells exist; the exact count of
`liu2021analyzing.library.measures.linear_regions` proves that none is missing.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np

from attlas.core.solution import Result, Solution
from liu2021analyzing.library.measures.linear_regions import (
    Matrix,
    Vector,
    arrangement,
    count_cells,
)


class Cells(NamedTuple):
    """The cells of an arrangement of n hyperplanes in s dimensions.

    Attributes:
        signs: one row per cell: 1 where w_i . x + b_i > 0, -1 where < 0, and 0 for a hyperplane
            with w_i = 0 and b_i = 0.
        points: a point of each cell.
    """

    signs: np.ndarray
    points: np.ndarray


def enumerate_cells(W: Matrix, b: Vector | None = None, *, most: int = 10**6) -> Solution[Cells]:
    r"""All sign vectors of an arrangement, with witnesses.

    Args:
        W: normals, one per row.
        b: offsets; zero when None.
        most: refuse what may have more cells.

    Returns:
        The cells. Certificate: `count`, the exact number of cells; `clearance`, the least
        |w_i . x + b_i| over its own rounding, above 1 for every point. Code PRECISION where
        cells are so thin that a point inside them was not found.

    Examples:
        >>> found = enumerate_cells(np.eye(2)).unwrap()
        >>> sorted(found.signs.tolist())
        [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    """
    count = count_cells(W, b, most=most)
    normals, offsets = arrangement(W, b)
    cutting = np.any(normals != 0, axis=1)
    lengths = np.linalg.norm(normals[cutting], axis=1)
    points = _points(normals[cutting] / lengths[:, None], offsets[cutting] / lengths, count)
    values = points @ normals.T + offsets[None, :]
    size = np.abs(points) @ np.abs(normals).T + np.abs(offsets)[None, :]
    rounding = (normals.shape[1] + 2) * np.finfo(float).eps * size
    ratio = np.abs(values[:, cutting]) / np.maximum(rounding[:, cutting], np.finfo(float).tiny)
    clearance = ratio.min(axis=1, initial=np.inf)
    signs = np.sign(values).astype(np.int8)
    # A sign of 0 is that of a hyperplane without normal: it is 0 in every cell.
    unlike = np.unique(np.packbits(signs[clearance > 1] > 0, axis=1), axis=0).shape[0]
    complete = unlike == count == points.shape[0]
    return Solution(
        Cells(signs, points),
        np.asarray((Result.CONVERGED if complete else Result.PRECISION).value),
        {"count": np.asarray(count), "clearance": np.asarray(clearance.min(initial=np.inf))},
    )


_BYTES = 20_000_000
"""Of the largest array that points beside vertices are computed with."""


def _points(normals: np.ndarray, offsets: np.ndarray, count: int) -> np.ndarray:
    """One point of each of `count` cells; normals are unit vectors."""
    n, s = normals.shape
    if n >= s > 0 and count == sum(math.comb(n, k) for k in range(s + 1)):
        points = _beside_vertices(normals, offsets)
        if len(points) == count:
            return points
    return _witnesses(normals, offsets)


def _beside_vertices(normals: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """One point of each cell of a simple arrangement, near one of the cell's vertices."""
    n, s = normals.shape
    sides = np.array(list(itertools.product((-1.0, 1.0), repeat=s)))
    vertices = np.array(list(itertools.combinations(range(n), s)))
    points: dict[bytes, np.ndarray] = {}
    width = max(1, _BYTES // (8 * len(sides) * n))
    for first in range(0, len(vertices), width):
        meeting = vertices[first : first + width]
        try:
            inverse = np.linalg.inv(normals[meeting])
        except np.linalg.LinAlgError:  # singular to rounding, though not exactly
            return np.empty((0, s))
        corners = -np.matmul(inverse, offsets[meeting][..., None])[..., 0]
        values = np.abs(corners @ normals.T + offsets)
        np.put_along_axis(values, meeting, np.inf, axis=1)
        directions = sides @ inverse.transpose(0, 2, 1)
        slopes = np.abs(directions @ normals.T)
        # Half the way to the next hyperplane, and at most 1.
        with np.errstate(divide="ignore"):
            steps = np.min(values[:, None] / slopes, axis=2, initial=2.0) / 2
        beside = (corners[:, None] + steps[..., None] * directions).reshape(-1, s)
        signs = np.packbits(beside @ normals.T + offsets > 0, axis=1)
        for key, point in zip(map(bytes, signs), beside, strict=True):
            points.setdefault(key, point)
    return np.stack(list(points.values()))


def _witnesses(normals: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """One point of each cell; normals are unit vectors or their parts in a hyperplane."""
    normals, offsets = _different(normals, offsets)
    n, s = normals.shape
    if n == 0:
        return np.zeros((1, s))
    if s == 1:
        at = np.sort(-offsets * normals[:, 0])
        return np.r_[at[0] - 1, (at[1:] + at[:-1]) / 2, at[-1] + 1][:, None]
    cells = {b"": np.zeros(s)}
    for i, (normal, offset) in enumerate(zip(normals, offsets, strict=True)):
        older, heights = normals[:i], offsets[:i]
        basis, origin = _complement(normal), -offset * normal
        flat = _witnesses(older @ basis, heights + older @ origin)
        on_plane = origin[None, :] + flat @ basis.T
        values = on_plane @ older.T + heights[None, :]
        # Half the distance to the next hyperplane, normals being unit vectors, and at most 1.
        step = 0.5 * np.min(np.abs(values), axis=1, initial=2.0)
        cut = {row.tobytes(): (x, h) for row, x, h in zip(values > 0, on_plane, step, strict=True)}
        after = {}
        for signs, point in cells.items():
            if signs in cut:
                x, h = cut[signs]
                after[signs + b"\x01"], after[signs + b"\x00"] = x + h * normal, x - h * normal
            else:
                after[signs + (b"\x01" if normal @ point + offset > 0 else b"\x00")] = point
        cells = after
    return np.stack(list(cells.values()))


def _different(normals: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit normals of the hyperplanes, those equal up to rounding once."""
    s = normals.shape[1]
    tolerance = 64 * (s + 1) * np.finfo(float).eps
    sizes = np.linalg.norm(normals, axis=1)
    # What restriction to a parallel hyperplane leaves of a unit normal is rounding.
    real = sizes > tolerance
    rows = np.c_[normals, offsets][real] / sizes[real, None]
    distinct: list[int] = []
    for k, row in enumerate(rows):
        others = rows[distinct]
        scale = 1 + abs(row[-1])
        gap = np.minimum(
            np.abs(others - row).max(axis=1, initial=0), np.abs(others + row).max(axis=1, initial=0)
        )
        if not np.any(gap <= tolerance * scale):
            distinct.append(k)
    return rows[distinct, :-1], rows[distinct, -1]


def _complement(normal: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the hyperplane through 0, as columns: a Householder reflection."""
    mirror = normal.copy()
    mirror[0] += np.copysign(1.0, normal[0])
    reflection = np.eye(normal.size) - np.outer(mirror, mirror) / (abs(normal[0]) + 1)
    return reflection[:, 1:]
