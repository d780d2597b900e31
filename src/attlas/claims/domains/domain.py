"""The domain of an array: it draws instances, is their assumption, and projects into itself."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from attlas.claims.sampling import Instance
from attlas.core.errors import UserError

Size = int | str
"""A number of entries, or the name of a size that the claim declares."""


@dataclass(frozen=True)
class Domain(ABC):
    r"""An array and where it lies; the classes of this folder say where.

    A parameter, such as the radius of a ball, is a number, or the name of a scalar array of the
    instance that is declared before.

    Attributes:
        shape: shape of the array on one instance, sizes by number or name; required without a
            sampler.
        rows: whether each row, along the last axis, lies in the set by itself.
    """

    name: str
    shape: tuple[Size, ...] | Size | None = field(default=None, kw_only=True)
    rows: bool = field(default=False, kw_only=True)

    moves: ClassVar[bool] = True
    """Whether a search may move the array along the set."""
    parameters: ClassVar[tuple[str, ...]] = ()
    """Attributes that a name of an array can stand for."""
    element_axes: ClassVar[int | None] = None
    """Axes that an element of the set has: 1 for vectors, 2 for matrices, None for any."""

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise UserError(f"{type(self).__name__}: {self.name!r} is not the name of an array")
        if self.shape is not None and not isinstance(self.shape, tuple):
            object.__setattr__(self, "shape", (self.shape,))
        if self.rows and self.element_axes == 2:
            raise UserError(f"{self}: its elements are matrices: leave out rows=True")
        axes = None if self.rows else self.axes
        if axes is not None and self.element_axes is not None and axes != self.element_axes:
            kind = "a matrix" if self.element_axes == 2 else "a vector"
            more = "" if self.element_axes == 2 else ", or rows=True"
            raise UserError(f"{self}: its element is {kind}, the shape has {axes} axes: "
                            f"give {self.element_axes}{more}")  # fmt: skip

    @property
    def axes(self) -> int | None:
        """Axes of the array, None where its shape is not declared."""
        return len(self.shape) if isinstance(self.shape, tuple) else None

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def reads(self) -> tuple[str, ...]:
        """Names of the arrays that stand for parameters."""
        values = (getattr(self, name) for name in self.parameters)
        return tuple(value for value in values if isinstance(value, str))

    def sizes(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape of the array on one instance, in numbers.

        Raises:
            UserError: if it is not declared, or names an unknown size.
        """
        if self.shape is None:
            raise UserError(f"{self}: give its shape=, or a sampler")
        shape = self.shape if isinstance(self.shape, tuple) else (self.shape,)
        for size in shape:
            if isinstance(size, str) and size not in sizes:
                raise UserError(f"{self}: its shape names the size '{size}': give sizes={{...}}")
        return tuple(sizes[size] if isinstance(size, str) else int(size) for size in shape)

    def condition(self) -> str:
        """The condition as text with mathematics between dollar signs."""
        element = f"{self._symbol()}_i" if self.rows else self._symbol()
        text = self.text(element, {k: self._label(k) for k in self.parameters})
        return f"${text}$ for each row" if self.rows else f"${text}$"

    def _symbol(self) -> str:
        return self.name if len(self.name) == 1 else rf"\mathrm{{{self.name}}}"

    def _label(self, parameter: str) -> str:
        value = getattr(self, parameter)
        return value if isinstance(value, str) else f"{value:g}"

    def _values(self, instance: Mapping[str, Any]) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.parameters}
        return {k: instance[v] if isinstance(v, str) else v for k, v in values.items()}

    def holds(self, instance: Instance) -> Bool[Array, ""]:
        """Whether the array of one instance lies in the domain."""
        x, values = instance[self.name], self._values(instance)
        if not self.rows:
            return jnp.asarray(self.contains(x, **values))
        inside = jax.vmap(lambda row: jnp.asarray(self.contains(row, **values)))
        return jnp.all(inside(x.reshape(-1, x.shape[-1])))

    def project(self, instance: Instance) -> Array:
        """The point of the domain that is nearest to the array of one instance."""
        x = instance[self.name]
        values = {k: jnp.asarray(v, x.dtype) for k, v in self._values(instance).items()}
        if not self.rows:
            return self.nearest(x, **values)
        rows = x.reshape(-1, x.shape[-1])
        return jax.vmap(lambda row: self.nearest(row, **values))(rows).reshape(x.shape)

    def draw(
        self, rng: np.random.Generator, count: int, sizes: Mapping[str, int], arrays: Mapping
    ) -> np.ndarray:
        """Random points of the domain, with corners and boundary points, shape (count, *shape).

        Args:
            arrays: arrays of the domains declared before, for parameters that name one.
        """
        shape = self.sizes(sizes)
        split = len(shape) - 1 if self.rows else 0
        per = math.prod(shape[:split])
        values = {}
        for name, value in self._values(arrays).items():
            repeated = np.repeat(np.asarray(value, dtype=float).reshape(-1), per)
            values[name] = repeated if isinstance(getattr(self, name), str) else float(repeated[0])
        flat = self.points(rng, count * per, shape[split:], **values)
        return flat.reshape(count, *shape)

    @abstractmethod
    def text(self, element: str, values: Mapping[str, str]) -> str:
        """The condition on one element, in LaTeX; defined by each domain."""

    @abstractmethod
    def contains(self, x: Array, **values: Any) -> Any:
        """Whether one element lies in the set; defined by each domain."""

    @abstractmethod
    def nearest(self, x: Array, **values: Any) -> Array:
        """The nearest point of the set; defined by each domain."""

    @abstractmethod
    def points(
        self, rng: np.random.Generator, count: int, shape: tuple[int, ...], **values: Any
    ) -> np.ndarray:
        """Elements of the set; defined by each domain."""


def per_element(value: Any, like: np.ndarray) -> Any:
    """A parameter, a scalar or one per element, with the axes that multiply elements `like`.

    Examples:
        >>> per_element(np.ones(3), np.ones((3, 2, 2))).shape
        (3, 1, 1)
    """
    value = np.asarray(value, dtype=float)
    return value.reshape(-1, *(1,) * (like.ndim - 1)) if value.ndim else float(value)


def directions(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> np.ndarray:
    """Unit vectors, shape (count, *shape): every second one along few axes, where corners lie.

    Examples:
        >>> x = directions(np.random.default_rng(0), 4, (3,))
        >>> np.linalg.norm(x, axis=1).round(12).tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    x = rng.normal(size=(count, *shape)).reshape(count, -1)
    few = rng.uniform(size=x.shape)
    nonzero = (few <= few.min(axis=1, keepdims=True)) | (few < 0.25)
    x = np.where(nonzero | (np.arange(count) % 2 == 0)[:, None], x, 0.0)
    size = np.linalg.norm(x, axis=1, keepdims=True)
    return (x / np.where(size > 0, size, 1)).reshape(count, *shape)
