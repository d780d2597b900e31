"""A bound on the risk of one predictor, with all that it rests on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from attlas.bounds.generalisation.conditions import require_delta
from attlas.bounds.generalisation.samples_until_nonvacuous import samples_until_nonvacuous
from attlas.core.errors import UserError
from attlas.display.numbers import plain_number


class Condition(NamedTuple):
    """An assumption of a bound.

    Attributes:
        checked: whether the code checked it; otherwise the caller declares it.
    """

    text: str
    checked: bool


INDEPENDENT = Condition("the examples are independent draws from the law of the risk", False)
FIXED_BEFORE = Condition("the predictor was fixed before these examples were seen", False)
CODE_BEFORE = Condition("the code and the architecture were fixed before the examples", False)
PRIOR_BEFORE = Condition("the prior and its grid of scales were fixed before the examples", False)
UNIT_LOSS = Condition("losses lie in [0, 1]", True)


@dataclass(frozen=True)
class RiskBound:
    """An upper bound on a risk, at a probability of failure that is split and accounted for.

    It has no order: the least of several bounds holds at none of their deltas, and `union` pays.

    Attributes:
        name: the label in tables.
        empirical: the mean loss on the sample that the bound uses.
        n: its size.
        delta: probability that the bound fails.
        shares: its split over the parts of the argument, by name; they add up to delta.
        complexity: nats that stand over n, beside the logarithm of the probability of failure.
        conditions: assumptions, checked or declared.
        at: the bound with the same empirical risk and complexity at another sample size.
        trivial: a risk that is reached without data, 1 for losses in [0, 1].
        certificates: number of bounds that this one was the least of, all paid by delta.
    """

    name: str
    bound: float
    empirical: float
    n: int
    delta: float
    shares: tuple[tuple[str, float], ...]
    complexity: float
    conditions: tuple[Condition, ...]
    at: Callable[[float], float] = field(repr=False, compare=False)
    trivial: float | int = 1
    certificates: int = 1

    @property
    def gap(self) -> float:
        """The bound less the empirical risk."""
        return self.bound - self.empirical

    @property
    def vacuous(self) -> bool:
        """Whether the bound is not below `trivial`."""
        return not self.bound < self.trivial

    @property
    def samples_until_nonvacuous(self) -> float:
        """Least sample size with a bound below `trivial`; infinite if none up to 1e250 is."""
        return float(
            samples_until_nonvacuous(
                lambda m: np.array([self.at(float(m[0])) < self.trivial]), 1, 1
            )[0]
        )

    def __float__(self) -> float:
        return self.bound

    def __lt__(self, other: object) -> bool:
        raise TypeError(
            "bounds on risks have no order: the least of several must pay for the choice, by "
            "union(...); compare a number with .bound"
        )

    __le__ = __gt__ = __ge__ = __lt__

    def __repr__(self) -> str:
        standing = "vacuous" if self.vacuous else "non-vacuous"
        split = ", ".join(f"{name} {share:.3g}" for name, share in self.shares)
        lines = [
            f"{self.name}: risk at most {plain_number(self.bound)} ({standing}), "
            f"empirical {plain_number(self.empirical)} on n = {self.n}",
            f"  complexity {plain_number(self.complexity)} nats; delta = {self.delta:g}: {split}",
        ]
        lines += [f"  {'checked' if c.checked else 'declared'}: {c.text}" for c in self.conditions]
        return "\n".join(lines)


def require_unit_loss(loss: float | int, name: str = "loss") -> None:
    """Check that a mean loss lies in [0, 1].

    Examples:
        >>> require_unit_loss(2.5)
        Traceback (most recent call last):
        attlas.core.errors.UserError: loss = 2.5: scale or clip the losses into [0, 1]
    """
    if not 0 <= loss <= 1:
        raise UserError(f"{name} = {loss}: scale or clip the losses into [0, 1]")


def require_sample(n: float | int, delta: float, trivial: float | int) -> None:
    """Check the sample size, the probability of failure and the trivial risk of a bound.

    Examples:
        >>> require_sample(0, 0.05, 1.0)
        Traceback (most recent call last):
        attlas.core.errors.UserError: n = 0 examples: a bound needs a whole number, at least 1
    """
    if not (n >= 1 and n == int(n)):
        raise UserError(f"n = {n} examples: a bound needs a whole number, at least 1")
    require_delta(delta)
    if not 0 < trivial <= 1:
        raise UserError(f"trivial = {trivial}: the risk without data must lie in (0, 1]")
