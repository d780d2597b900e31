"""Token-selection problems of Gaussian tokens on the unit sphere, drawn on the host."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


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

    Args:
        T: tokens per sample.

    Examples:
        >>> drawn = draw_sphere_selection(np.random.default_rng(0), 2, 3, 4)
        >>> drawn.X.shape, np.linalg.norm(drawn.v).round(12).tolist()
        ((2, 3, 4), 1.0)
    """
    normals = [rng.normal(size=shape) for shape in ((n, T, d), (n, d), (d,))]
    X, z, v = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in normals)
    return SphereSelection(X, rng.choice([-1.0, 1.0], n), z, v)
