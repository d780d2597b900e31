r"""Linear conditions on the Gram matrix and the values of a run, with exact coefficients.

A run of a method is a Gram matrix G of the start $x_0 - x_\star$ and the gradients, and the values
$f(x_k) - f_\star$. Points and gradients are rows of fractions over the columns of G.
"""

from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from attlas.core.errors import UserError

_LONGEST = 2**20
"""Largest denominator of a float that stands for itself."""


def exact(number: Any, name: str) -> Fraction:
    """A number as a fraction; a float only if its denominator is a small power of two.

    Args:
        number: an integer, a fraction or a float.
        name: the word for the number in an error.

    Raises:
        UserError: if the number is not finite, or a float that nobody wrote as it is.

    Examples:
        >>> exact(0.5, "step"), exact(3, "step")
        (Fraction(1, 2), Fraction(3, 1))
        >>> exact(0.1, "step")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: step = 0.1 is no exact number: write Fraction(1, 10)
    """
    if isinstance(number, Rational):
        return Fraction(int(number.numerator), int(number.denominator))
    if not isinstance(number, float) or not np.isfinite(number):
        raise UserError(f"{name} = {number!r} is no number: give an integer or a Fraction")
    fraction = Fraction(number)
    if fraction.denominator > _LONGEST:
        near = fraction.limit_denominator(1000)
        written = f"Fraction({near.numerator}, {near.denominator})"
        raise UserError(f"{name} = {number!r} is no exact number: write {written}")
    return fraction


@dataclass(frozen=True)
class Triplet:
    """A point with its gradient and the place of its value.

    Attributes:
        name: "0", "1" and so on, or "*" for the minimiser.
        point: row of fractions over the columns of the Gram matrix.
        gradient: row of fractions.
        value: row of fractions over the values of the run.
    """

    name: str
    point: np.ndarray
    gradient: np.ndarray
    value: np.ndarray


@dataclass(frozen=True)
class Condition:
    r"""The condition $\langle A, G \rangle + a^\top F + \tau t \le r$ on a run.

    Attributes:
        name: text that is unique in a problem.
        quadratic: symmetric matrix A of fractions.
        linear: row a of fractions.
        bound: the fraction r.
        of_measure: whether it bounds the measure t, with coefficient one.
    """

    name: str
    quadratic: np.ndarray
    linear: np.ndarray
    bound: Fraction = Fraction(0)
    of_measure: bool = False

    def slack(self, gram: np.ndarray, values: np.ndarray) -> Fraction:
        """How far a run is from the bound, without the measure; negative where it is exceeded."""
        return self.bound - (self.quadratic * gram).sum() - (self.linear * values).sum()


def product(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The symmetric matrix whose inner product with a Gram matrix is that of two rows.

    Examples:
        >>> product(np.array([Fraction(1), Fraction(0)]), np.array([Fraction(0), Fraction(2)]))
        array([[Fraction(0, 1), Fraction(1, 1)],
               [Fraction(1, 1), Fraction(0, 1)]], dtype=object)
    """
    outer = np.outer(u, v)
    return (outer + outer.T) / Fraction(2)


def unit(place: int, size: int) -> np.ndarray:
    """A row of fractions, a vector with a one at a place; zeros where the place is negative.

    Examples:
        >>> unit(1, 2).tolist()
        [Fraction(0, 1), Fraction(1, 1)]
    """
    return np.array([Fraction(int(k == place)) for k in range(size)], dtype=object)
