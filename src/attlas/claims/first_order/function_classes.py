"""Classes of functions whose values and gradients at points are characterised by inequalities.

A finite set of points, gradients and values belongs to a function of the class if and only if every
two of them meet its condition (Taylor, Hendrickx and Glineur, 2017), in any dimension.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from attlas.claims.first_order.conditions import Condition, Triplet, exact, product
from attlas.core.errors import UserError


class FunctionClass(ABC):
    """A class of convex functions of any number of variables."""

    @abstractmethod
    def pair(self, i: Triplet, j: Triplet) -> Condition:
        """The condition on the value at i, beside value and gradient at j."""

    def alone(self, i: Triplet) -> tuple[Condition, ...]:
        """Conditions on one point."""
        del i
        return ()

    @property
    def strong(self) -> Fraction:
        """Modulus of strong convexity, zero without."""
        return Fraction(0)

    @property
    def smooth(self) -> Fraction | None:
        """Lipschitz constant of the gradient, None without."""
        return None

    @property
    def steepest(self) -> Fraction | None:
        """Lipschitz constant of the functions, None without."""
        return None

    @abstractmethod
    def normalised(self) -> "FunctionClass":
        """The class where the constant of the gradient, or of the functions, is one."""

    @abstractmethod
    def words(self) -> str:
        """The class as words."""


def _above_tangent(i: Triplet, j: Triplet) -> Condition:
    """The value at i is at least that of the tangent at j."""
    quadratic = product(j.gradient, i.point - j.point)
    return Condition(f"{i.name} above {j.name}", quadratic, j.value - i.value)


@dataclass(frozen=True)
class Convex(FunctionClass):
    """Closed convex functions, for methods with proximal steps.

    Examples:
        >>> Convex().words()
        'convex functions'
    """

    def pair(self, i: Triplet, j: Triplet) -> Condition:
        """The value lies above the tangent."""
        return _above_tangent(i, j)

    def normalised(self) -> "Convex":
        """The class itself."""
        return self

    def words(self) -> str:
        """The class as words."""
        return "convex functions"


@dataclass(frozen=True)
class LipschitzConvex(FunctionClass):
    """Convex functions whose subgradients are at most M long.

    Examples:
        >>> LipschitzConvex(2).words()
        'convex functions with Lipschitz constant 2'
    """

    M: Any = 1

    def __post_init__(self):
        object.__setattr__(self, "M", exact(self.M, "M"))
        if self.M <= 0:
            raise UserError(f"M = {self.M} is not positive")

    @property
    def steepest(self) -> Fraction:
        """Lipschitz constant of the functions."""
        return self.M

    def pair(self, i: Triplet, j: Triplet) -> Condition:
        """The value lies above the tangent."""
        return _above_tangent(i, j)

    def alone(self, i: Triplet) -> tuple[Condition, ...]:
        """The gradient is at most M long."""
        square = product(i.gradient, i.gradient)
        return (Condition(f"gradient {i.name}", square, i.value * 0, self.M**2),)

    def normalised(self) -> "LipschitzConvex":
        """Of Lipschitz constant one."""
        return LipschitzConvex(1)

    def words(self) -> str:
        """The class as words."""
        return f"convex functions with Lipschitz constant {self.M}"


@dataclass(frozen=True)
class SmoothConvex(FunctionClass):
    """Convex functions with L-Lipschitz gradients, mu-strongly convex where mu is positive.

    Examples:
        >>> SmoothConvex(L=10, mu=1).words()
        '10-smooth, 1-strongly convex functions'
    """

    L: Any = 1
    mu: Any = 0

    def __post_init__(self):
        object.__setattr__(self, "L", exact(self.L, "L"))
        object.__setattr__(self, "mu", exact(self.mu, "mu"))
        if not 0 <= self.mu < self.L:
            raise UserError(f"mu = {self.mu} and L = {self.L}: choose 0 <= mu < L")

    @property
    def strong(self) -> Fraction:
        """Modulus of strong convexity."""
        return self.mu

    @property
    def smooth(self) -> Fraction:
        """Lipschitz constant of the gradient."""
        return self.L

    def pair(self, i: Triplet, j: Triplet) -> Condition:
        """The value lies above the tangent by what curvatures from mu to L allow."""
        tangent = _above_tangent(i, j)
        x, g, ratio = i.point - j.point, i.gradient - j.gradient, self.mu / self.L
        room = product(g, g) / self.L + self.mu * product(x, x) - 2 * ratio * product(g, x)
        return Condition(tangent.name, tangent.quadratic + room / (2 - 2 * ratio), tangent.linear)

    def normalised(self) -> "SmoothConvex":
        """With L = 1 and the same condition number."""
        return SmoothConvex(1, self.mu / self.L)

    def words(self) -> str:
        """The class as words."""
        strongly = f", {self.mu}-strongly" if self.mu else ""
        return f"{self.L}-smooth{strongly} convex functions"
