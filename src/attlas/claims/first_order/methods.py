r"""First-order methods with fixed steps: each point is the start less a sum of gradients.

A method gives a row $h_k$ for each point: $x_k = x_0 - \sum_j h_{kj} \nabla f(x_j)$.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from attlas.claims.first_order.conditions import exact
from attlas.core.errors import UserError

MOST_POINTS = 16
Rows = list[list[Fraction]]


class Method(ABC):
    """A method whose steps are known before it runs."""

    @abstractmethod
    def rows(self) -> Rows:
        """A row of coefficients of all gradients for each point where a gradient is taken."""

    @abstractmethod
    def scaled(self, factor: Fraction) -> "Method":
        """The method with all steps multiplied by a factor."""

    @abstractmethod
    def words(self) -> str:
        """The method as words."""

    @property
    def first(self) -> int:
        """Number of the first point."""
        return 0


def _listed(numbers: Sequence[Any], name: str) -> tuple[Fraction, ...]:
    if isinstance(numbers, str) or not isinstance(numbers, Sequence):
        raise UserError(f"{name} = {numbers!r} is no list: give one number for each iteration")
    if len(numbers) >= MOST_POINTS:
        raise UserError(f"{len(numbers)} {name} are too many: give at most {MOST_POINTS - 1}")
    return tuple(exact(number, name) for number in numbers)


def _words(numbers: Sequence[Fraction]) -> str:
    """The numbers, an equal one once with how often it comes."""
    if len(numbers) > 1 and len(set(numbers)) == 1:
        return f"{numbers[0]} ({len(numbers)} times)"
    return ", ".join(map(str, numbers))


@dataclass(frozen=True)
class GradientDescent(Method):
    r"""Gradient descent $x_{k+1} = x_k - h_k \nabla f(x_k)$; a subgradient where f has a kink.

    Examples:
        >>> GradientDescent([1, 0.5]).rows()[2]
        [Fraction(1, 1), Fraction(1, 2), Fraction(0, 1)]
    """

    steps: Sequence[Any]

    def __post_init__(self):
        object.__setattr__(self, "steps", _listed(self.steps, "steps"))

    def rows(self) -> Rows:
        """Each point has taken the steps before it."""
        count = len(self.steps) + 1
        return [[self.steps[j] if j < k else Fraction(0) for j in range(count)]
                for k in range(count)]  # fmt: skip

    def scaled(self, factor: Fraction) -> "GradientDescent":
        """The method with longer steps."""
        return replace(self, steps=[factor * step for step in self.steps])

    def words(self) -> str:
        """The method as words."""
        return f"gradient descent with steps {_words(self.steps)}"


@dataclass(frozen=True)
class HeavyBall(Method):
    r"""The method $x_{k+1} = x_k - h \nabla f(x_k) + \beta (x_k - x_{k-1})$ with $x_{-1} = x_0$.

    Examples:
        >>> HeavyBall(step=1, momentum=0.5, iterations=2).rows()[2]
        [Fraction(3, 2), Fraction(1, 1), Fraction(0, 1)]
    """

    step: Any
    momentum: Any
    iterations: int

    def __post_init__(self):
        object.__setattr__(self, "step", exact(self.step, "step"))
        object.__setattr__(self, "momentum", exact(self.momentum, "momentum"))
        if not 0 <= self.iterations < MOST_POINTS:
            raise UserError(f"iterations = {self.iterations}: give 0 to {MOST_POINTS - 1}")

    def rows(self) -> Rows:
        """A gradient acts again by its momentum in every later step."""
        count = self.iterations + 1
        rows = [[Fraction(0)] * count]
        before = rows[0]
        for k in range(self.iterations):
            now = rows[-1]
            after = [a + self.momentum * (a - b) for a, b in zip(now, before, strict=True)]
            after[k] += self.step
            before = now
            rows.append(after)
        return rows

    def scaled(self, factor: Fraction) -> "HeavyBall":
        """The method with longer steps."""
        return replace(self, step=factor * self.step)

    def words(self) -> str:
        """The method as words."""
        return (
            f"{self.iterations} iterations of the heavy ball with step {self.step} and momentum "
            f"{self.momentum}"
        )


@dataclass(frozen=True)
class FastGradient(Method):
    r"""Nesterov's method from $x_0 = y_0$ on, whose last point is a y.

    $$y_{k+1} = x_k - h \nabla f(x_k), \qquad x_{k+1} = y_{k+1} + \beta_k (y_{k+1} - y_k)$$

    Attributes:
        step: the number h.
        momenta: the numbers beta, one less than iterations.

    Examples:
        >>> FastGradient(step=1, momenta=[0.25]).rows()
        [[Fraction(0, 1), ...], [Fraction(5, 4), ...], [Fraction(5, 4), Fraction(1, 1), ...]]
    """

    step: Any
    momenta: Sequence[Any]

    def __post_init__(self):
        object.__setattr__(self, "step", exact(self.step, "step"))
        object.__setattr__(self, "momenta", _listed(self.momenta, "momenta"))

    def rows(self) -> Rows:
        """Points x, and the last y."""
        count = len(self.momenta) + 2
        rows = [[Fraction(0)] * count]
        before = rows[0]
        for k, momentum in enumerate((*self.momenta, Fraction(0))):
            y = list(rows[-1])
            y[k] += self.step
            rows.append([a + momentum * (a - b) for a, b in zip(y, before, strict=True)])
            before = y
        return rows

    def scaled(self, factor: Fraction) -> "FastGradient":
        """The method with longer steps."""
        return replace(self, step=factor * self.step)

    def words(self) -> str:
        """The method as words."""
        momenta = f" and momenta {_words(self.momenta)}" if self.momenta else ""
        return f"Nesterov's method with step {self.step}{momenta}"


@dataclass(frozen=True)
class ProximalPoint(Method):
    r"""Proximal steps $x_{k+1} = x_k - h_k g_{k+1}$, a subgradient at the new point.

    Examples:
        >>> ProximalPoint([1, 2]).rows()
        [[Fraction(1, 1), Fraction(0, 1)], [Fraction(1, 1), Fraction(2, 1)]]
    """

    steps: Sequence[Any]

    def __post_init__(self):
        object.__setattr__(self, "steps", _listed(self.steps, "steps"))
        if not self.steps or min(self.steps) <= 0:
            raise UserError("proximal steps are positive: give at least one")

    @property
    def first(self) -> int:
        """No gradient is taken at the start."""
        return 1

    def rows(self) -> Rows:
        """Each point has taken the steps up to it."""
        count = len(self.steps)
        return [[self.steps[j] if j <= k else Fraction(0) for j in range(count)]
                for k in range(count)]  # fmt: skip

    def scaled(self, factor: Fraction) -> "ProximalPoint":
        """The method with longer steps."""
        return replace(self, steps=[factor * step for step in self.steps])

    def words(self) -> str:
        """The method as words."""
        return f"proximal point with steps {_words(self.steps)}"
