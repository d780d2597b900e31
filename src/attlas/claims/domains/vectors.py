"""Domains of arrays taken entry by entry or as vectors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.claims.domains.domain import Domain, directions, per_element
from attlas.claims.domains.projections import (
    inward,
    project_ball,
    project_l1_ball,
    project_ordered,
    project_simplex,
    project_singular_values,
    project_sphere,
)
from attlas.core.errors import UserError
from attlas.core.ranges import is_finite

_TALL = 3.0
"""Decades over which sizes of unbounded arrays are drawn, up and down."""


@dataclass(frozen=True)
class Real(Domain):
    """Any finite real numbers.

    Examples:
        >>> Real("x", shape=3).draw(np.random.default_rng(0), 2, {}, {}).shape
        (2, 3)
    """

    def text(self, element: str, values: Mapping[str, str]) -> str:
        """The entries are real."""
        return rf"{element} \in \mathbb{{R}}"

    def contains(self, x: Array) -> Any:
        """Whether all entries are finite."""
        return jnp.all(jnp.isfinite(x))

    def nearest(self, x: Array) -> Array:
        """The array itself."""
        return x

    def points(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> np.ndarray:
        """Directions of all sizes, every other one of size about 1."""
        x = directions(rng, count, shape) * np.sqrt(max(1, int(np.prod(shape))))
        size = 10 ** (_TALL * rng.uniform(-1, 1, size=count) * (np.arange(count) // 2 % 2))
        return x * per_element(size, x)


@dataclass(frozen=True)
class Box(Domain):
    r"""Entries between two ends; an end may be infinite.

    Examples:
        >>> box = Box("p", 1.0, 2.0, shape=())
        >>> float(box.project({"p": jnp.asarray(3.0)})), box.condition()
        (2.0, '$1 \\le p \\le 2$')
    """

    low: int | float | str
    high: int | float | str

    parameters: ClassVar[tuple[str, ...]] = ("low", "high")

    def __post_init__(self):
        super().__post_init__()
        numbers = [v for v in (self.low, self.high) if not isinstance(v, str)]
        if len(numbers) == 2 and not numbers[0] <= numbers[1]:
            raise UserError(f"{self}: low={self.low} is above high={self.high}")

    def text(self, element: str, values: Mapping[str, str]) -> str:
        """Between the ends, without infinite ones."""
        low = "" if self.low == -np.inf else rf"{values['low']} \le "
        high = "" if self.high == np.inf else rf" \le {values['high']}"
        return f"{low}{element}{high}"

    def contains(self, x: Array, low: Any, high: Any) -> Any:
        """Whether all entries lie between the ends."""
        return jnp.all((x >= low) & (x <= high) & jnp.isfinite(x))

    def nearest(self, x: Array, low: Any, high: Any) -> Array:
        """Entries clipped."""
        return jnp.clip(x, low, high)

    def points(
        self, rng: np.random.Generator, count: int, shape: tuple[int, ...], low: Any, high: Any
    ) -> np.ndarray:
        """Uniform entries; a fourth of the elements are corners, a fourth near one end."""
        u = rng.uniform(size=(count, *shape))
        family = np.arange(count) % 4
        corner = per_element(family == 1, u) * (rng.uniform(size=u.shape) < 0.8)
        u = np.where(corner, np.round(u), u)
        u = np.where(per_element(family == 3, u), u**8, u)
        low, high = (np.broadcast_to(per_element(end, u), u.shape) for end in (low, high))
        bounded = np.isfinite(low) & np.isfinite(high)
        # An unbounded side is drawn over decades, from the finite end where there is one.
        far = 10 ** (_TALL * (2 * u - 1))
        near = np.where(np.isfinite(low), low + far, np.where(np.isfinite(high), high - far, 0.0))
        two_sided = np.where(u < 0.5, -1, 1) * 10 ** (2 * _TALL * (np.abs(2 * u - 1) - 0.5))
        free = np.where(np.isfinite(low) | np.isfinite(high), near, two_sided)
        with np.errstate(invalid="ignore"):
            inner = low + (high - low) * u
        return np.clip(np.where(bounded, inner, free), low, high)


@dataclass(frozen=True)
class Positive(Box):
    """Entries above zero, at least `low`: an open set has no nearest point.

    Examples:
        >>> float(Positive("rate").project({"rate": jnp.asarray(-1.0)})) > 0
        True
    """

    low: int | float | str = float(np.finfo(float).eps)
    high: int | float | str = float("inf")

    def text(self, element: str, values: Mapping[str, str]) -> str:
        """The entries are above zero."""
        return f"{element} > 0" + (
            "" if self.high == np.inf else rf", {element} \le {values['high']}"
        )


@dataclass(frozen=True)
class Nonnegative(Box):
    r"""Entries that are zero or above.

    Examples:
        >>> Nonnegative("x").condition()
        '$0 \\le x$'
    """

    low: int | float | str = 0.0
    high: int | float | str = float("inf")


@dataclass(frozen=True)
class Ball(Domain):
    """||x|| <= radius, in one of five norms.

    The norms 2 (Frobenius), 1 and inf are over all entries, "spectral" and "nuclear" over the
    singular values of a matrix.


    Examples:
        >>> ball = Ball("W", 1.0, norm="spectral", shape=(2, 2))
        >>> back = ball.project({"W": jnp.diag(jnp.array([3.0, 0.5]))})
        >>> back.round(3).tolist(), bool(ball.holds({"W": back}))
        ([[1.0, 0.0], [0.0, 0.5]], True)
    """

    radius: int | float | str
    norm: int | float | str = 2

    parameters: ClassVar[tuple[str, ...]] = ("radius",)

    def __post_init__(self):
        super().__post_init__()
        if self.norm not in (1, 2, np.inf, "spectral", "nuclear"):
            raise UserError(f"{self}: norm={self.norm!r}: give 1, 2, inf, 'spectral' or 'nuclear'")
        if not isinstance(self.radius, str) and not (self.radius > 0 and is_finite(self.radius)):
            raise UserError(f"{self}: radius={self.radius}: give a positive number")
        spectral = isinstance(self.norm, str)
        if spectral and (self.rows or self.axes not in (None, 2)):
            raise UserError(f"{self}: the {self.norm} norm is of a matrix: give two axes, no rows")

    def text(self, element: str, values: Mapping[str, str]) -> str:
        """||x|| <= R."""
        index = {"spectral": r"\sigma", "nuclear": "*", np.inf: r"\infty"}.get(self.norm, self.norm)
        return rf"\|{element}\|_{{{index}}} \le {values['radius']}"

    def size(self, x: Array) -> Array:
        """The norm of one element."""
        if isinstance(self.norm, str):
            s = jnp.linalg.svd(x, compute_uv=False)
            return jnp.max(s) if self.norm == "spectral" else jnp.sum(s)
        if self.norm == 2:
            return jnp.sqrt(jnp.sum(jnp.square(x)))
        return jnp.sum(jnp.abs(x)) if self.norm == 1 else jnp.max(jnp.abs(x))

    def contains(self, x: Array, radius: Any) -> Any:
        """Whether the norm is at most the radius."""
        return self.size(x) <= radius

    def nearest(self, x: Array, radius: Any) -> Array:
        """Scaled, clipped or thresholded, by the norm."""
        if self.norm == 2:
            return project_ball(x, radius)
        if self.norm == 1:
            return project_l1_ball(x, radius)
        if self.norm == np.inf:
            return jnp.clip(x, -radius, radius)
        # The singular values of the product of factors are exact up to a few n eps.
        inner = inward(x) * radius
        if self.norm == "spectral":
            near = project_singular_values(x, lambda s: jnp.minimum(s, inner))
        else:
            near = project_singular_values(x, lambda s: project_simplex(s, inner))
        return jnp.where(self.size(x) <= radius, x, near)

    def points(
        self, rng: np.random.Generator, count: int, shape: tuple[int, ...], radius: Any
    ) -> np.ndarray:
        """Half on the boundary, half inside at sizes down to a thousandth of the radius."""
        x = directions(rng, count, shape)
        if isinstance(self.norm, str):
            # A fourth each: full rank, one singular value, all of them equal.
            u, s, vt = np.linalg.svd(x, full_matrices=False)
            family = (np.arange(count) // 2 % 3)[:, None]
            s = np.where(family == 1, np.arange(s.shape[1]) == 0, np.where(family == 2, 1.0, s))
            x = (u * s[:, None, :]) @ vt
            size = s.max(axis=1) if self.norm == "spectral" else s.sum(axis=1)
        else:
            flat = np.abs(x.reshape(count, -1))
            norms = {1: np.sum, np.inf: np.max}
            size = norms[self.norm](flat, axis=1) if self.norm in norms else _euclidean(flat)
        inside = np.arange(count) // 4 % 2 == 1
        share = np.where(inside, 10 ** (-_TALL * rng.uniform(size=count) ** 2), 1.0)
        share *= 1 - 4 * (int(np.prod(shape)) + 4) * np.finfo(float).eps
        return x * per_element(share / size, x) * per_element(radius, x)


def _euclidean(rows: np.ndarray) -> np.ndarray:
    return np.sqrt(np.sum(rows**2, axis=1))


@dataclass(frozen=True)
class Sphere(Domain):
    """||x||_2 = radius, over all entries, up to the rounding of the norm.

    Examples:
        >>> Sphere("w", 2.0).project({"w": jnp.array([4.0, 0.0])}).tolist()
        [2.0, 0.0]
    """

    radius: int | float | str = 1.0

    parameters: ClassVar[tuple[str, ...]] = ("radius",)

    def text(self, element: str, values: Mapping[str, str]) -> str:
        """||x|| = R."""
        return rf"\|{element}\|_2 = {values['radius']}"

    def contains(self, x: Array, radius: Any) -> Any:
        """Whether the norm is the radius, up to 4 (n + 4) eps of it."""
        norm = jnp.sqrt(jnp.sum(jnp.square(x)))
        return jnp.abs(norm - radius) <= (1 - inward(x)) * radius

    def nearest(self, x: Array, radius: Any) -> Array:
        """The array, scaled."""
        return project_sphere(x, radius)

    def points(
        self, rng: np.random.Generator, count: int, shape: tuple[int, ...], radius: Any
    ) -> np.ndarray:
        """Directions, half of them along few axes."""
        x = directions(rng, count, shape)
        return x * per_element(radius, x)


@dataclass(frozen=True)
class Simplex(Domain):
    """Entries that are not negative and add up to the total, up to rounding.

    Attributes:
        total: sum of the entries.

    Examples:
        >>> simplex = Simplex("a", shape=("T", "T"), rows=True)
        >>> simplex.draw(np.random.default_rng(0), 5, {"T": 3}, {}).sum(axis=2).round(12).max()
        np.float64(1.0)
    """

    total: int | float | str = 1.0

    parameters: ClassVar[tuple[str, ...]] = ("total",)
    element_axes: ClassVar[int | None] = 1

    def text(self, element: str, values: Mapping[str, str]) -> str:
        """The entries are weights."""
        return rf"{element} \ge 0, \; 1^\top {element} = {values['total']}"

    def contains(self, x: Array, total: Any) -> Any:
        """Whether the entries do, the sum up to 4 (n + 4) eps."""
        return jnp.all(x >= 0) & (jnp.abs(jnp.sum(x) - total) <= (1 - inward(x)) * total)

    def nearest(self, x: Array, total: Any) -> Array:
        """Shifted and cut at zero; the sum is then put right."""
        near = project_simplex(x, total)
        return near * (total / jnp.sum(near))

    def points(
        self, rng: np.random.Generator, count: int, shape: tuple[int, ...], total: Any
    ) -> np.ndarray:
        """Even, uneven and one-hot ones."""
        x = -np.log1p(-rng.uniform(size=(count, *shape)))
        power = np.array([1.0, 8.0, 0.05, 60.0])[np.arange(count) % 4]
        x = (x / x.max(axis=1, keepdims=True)) ** power[:, None]
        return x / x.sum(axis=1, keepdims=True) * per_element(total, x)


@dataclass(frozen=True)
class Ordered(Domain):
    """Entries that do not fall: x_1 <= ... <= x_n.

    Examples:
        >>> Ordered("x").project({"x": jnp.array([2.0, 1.0])}).tolist()
        [1.5, 1.5]
    """

    element_axes: ClassVar[int | None] = 1

    def text(self, element: str, values: Mapping[str, str]) -> str:
        """x_1 <= ... <= x_n."""
        return (
            rf"{element}_1 \le \dots \le {element}_n"
            if not self.rows
            else rf"{element} \text{{ rises}}"
        )

    def contains(self, x: Array) -> Any:
        """Whether no entry is below the one before it."""
        return jnp.all(x[1:] >= x[:-1]) & jnp.all(jnp.isfinite(x))

    def nearest(self, x: Array) -> Array:
        """Isotonic regression."""
        return project_ordered(x)

    def points(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> np.ndarray:
        """Sorted normal entries, a third of them with ties."""
        x = np.sort(rng.normal(size=(count, *shape)), axis=1)
        tied = np.round(x)
        size = 10 ** (_TALL * rng.uniform(-1, 1, size=count) * (np.arange(count) % 2))
        return np.where(per_element(np.arange(count) % 3 == 2, x), tied, x) * per_element(size, x)


@dataclass(frozen=True)
class OneOf(Domain):
    """Entries from a list of numbers; a search leaves them as they were drawn.

    Attributes:
        values: the numbers; integers stay integers.

    Examples:
        >>> OneOf("p", (1.5, 2.0), shape=()).draw(np.random.default_rng(0), 3, {}, {}).tolist()
        [2.0, 2.0, 2.0]
    """

    values: tuple[int | float, ...]

    moves: ClassVar[bool] = False

    def text(self, element: str, values: Mapping[str, str]) -> str:
        """The entries are in the list."""
        return rf"{element} \in \{{{', '.join(f'{value:g}' for value in self.values)}\}}"

    def contains(self, x: Array) -> Any:
        """Whether all entries are in the list."""
        return jnp.all(jnp.any(self._gaps(x) == 0, axis=-1))

    def nearest(self, x: Array) -> Array:
        """The nearest number of the list."""
        numbers = jnp.asarray(self.values, x.dtype)
        return numbers[jnp.argmin(self._gaps(x), axis=-1)]

    def _gaps(self, x: Array) -> Array:
        numbers = jnp.asarray(self.values, x.dtype)
        return jnp.abs(x[..., None] - numbers.reshape((1,) * x.ndim + (-1,)))

    def points(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> np.ndarray:
        """Each number equally often."""
        return rng.choice(np.asarray(self.values), size=(count, *shape))
