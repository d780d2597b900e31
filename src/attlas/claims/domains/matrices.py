"""Domains of matrices: by rank, by definiteness, by orthogonality."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.claims.domains.domain import Domain, per_element
from attlas.claims.domains.projections import project_eigenvalues, project_singular_values
from attlas.core.errors import UserError


def _rounding(x: Array) -> Array:
    """Relative error of singular values and eigenvalues: a few (m + n) eps."""
    return jnp.asarray(8 * (sum(x.shape) + 4) * jnp.finfo(x.dtype).eps, x.dtype)


def _gaussian(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> np.ndarray:
    """Gaussian matrices of sizes over four decades, every other one of size 1."""
    x = rng.normal(size=(count, *shape))
    size = 10 ** (2 * rng.uniform(-1, 1, size=count) * (np.arange(count) % 2))
    return x * per_element(size, x)


@dataclass(frozen=True)
class Rank(Domain):
    """Matrices of rank at most k: further singular values vanish up to rounding.

    Attributes:
        k: the rank, a number.

    Examples:
        >>> x = jnp.diag(jnp.array([3.0, 2.0, 1.0]))
        >>> jnp.linalg.svd(Rank("W", 1).project({"W": x}))[1].round(6).tolist()
        [3.0, 0.0, 0.0]
    """

    k: int

    element_axes: ClassVar[int | None] = 2

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.k, int) or self.k < 1:
            raise UserError(f"{self}: the rank {self.k!r} is not a positive whole number")

    def text(self, element: str, values: Mapping[str, str]) -> str:
        """The rank is at most k."""
        return rf"\operatorname{{rank}} {element} \le {self.k}"

    def contains(self, x: Array) -> Any:
        """Whether the singular values after the k-th are rounding of the first."""
        s = jnp.linalg.svd(x, compute_uv=False)
        return jnp.all(s[self.k :] <= _rounding(x) * s[0]) & jnp.all(jnp.isfinite(x))

    def nearest(self, x: Array) -> Array:
        """The k largest singular values (Eckart-Young)."""
        return project_singular_values(
            x, lambda s: jnp.where(jnp.arange(s.shape[0]) < self.k, s, 0)
        )

    def points(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> np.ndarray:
        """Products of Gaussian factors; of each third one, a factor has a single column."""
        k = min(self.k, *shape)
        left = _gaussian(rng, count, (shape[0], k)) / np.sqrt(k)
        left = np.where(per_element(np.arange(count) % 3 == 2, left) * (np.arange(k) > 0), 0, left)
        return left @ rng.normal(size=(count, k, shape[1]))


@dataclass(frozen=True)
class Semidefinite(Domain):
    """Symmetric matrices without negative eigenvalues, up to rounding.

    Examples:
        >>> x = jnp.diag(jnp.array([1.0, -2.0]))
        >>> Semidefinite("A").project({"A": x}).tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """

    element_axes: ClassVar[int | None] = 2

    def text(self, element: str, values: Mapping[str, str]) -> str:
        """A = A^T >= 0."""
        return rf"{element} = {element}^\top \succeq 0"

    def contains(self, x: Array) -> Any:
        """Whether it is exactly symmetric, and no eigenvalue is negative beyond rounding."""
        s = jnp.linalg.eigvalsh((x + x.T) / 2)
        return jnp.all(x == x.T) & (s[0] >= -_rounding(x) * jnp.max(jnp.abs(s)))

    def nearest(self, x: Array) -> Array:
        """The symmetric part without its negative eigenvalues."""
        return project_eigenvalues(x, lambda s: jnp.maximum(s, 0))

    def points(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> np.ndarray:
        """Gram matrices of Gaussian factors of all ranks."""
        x = _gaussian(rng, count, shape)
        rank = 1 + np.arange(count) // 2 % shape[1]
        x = x * (np.arange(shape[1]) < rank[:, None])[:, None, :]
        gram = x @ np.swapaxes(x, 1, 2)
        return (gram + np.swapaxes(gram, 1, 2)) / 2


@dataclass(frozen=True)
class Orthogonal(Domain):
    """Matrices with orthonormal columns, or rows where they are wide, up to rounding.

    Examples:
        >>> x = jnp.array([[0.0, 3.0], [2.0, 0.0]])
        >>> Orthogonal("Q").project({"Q": x}).round(12).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """

    element_axes: ClassVar[int | None] = 2

    def text(self, element: str, values: Mapping[str, str]) -> str:
        """Q^T Q = I."""
        return rf"{element}^\top {element} = I"

    def contains(self, x: Array) -> Any:
        """Whether the smaller Gram matrix is the identity up to rounding."""
        gram = x.T @ x if x.shape[0] >= x.shape[1] else x @ x.T
        return jnp.all(jnp.abs(gram - jnp.eye(len(gram), dtype=x.dtype)) <= _rounding(x))

    def nearest(self, x: Array) -> Array:
        """The orthogonal factor of the polar decomposition."""
        return project_singular_values(x, jnp.ones_like)

    def points(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> np.ndarray:
        """Orthogonal factors of Gaussian matrices, which are uniform."""
        u, _, vt = np.linalg.svd(rng.normal(size=(count, *shape)), full_matrices=False)
        return u @ vt
