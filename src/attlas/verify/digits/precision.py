"""One precision: numbers of mpmath, arrays of them, and a budget of operations."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


class Unconfirmed(Exception):
    """Nothing can be said in digits; the text says why."""


class TooLongError(Unconfirmed):
    """The program takes more operations than its budget."""


class Precision:
    """Real numbers of so many digits, with a budget of operations.

    The budget counts operations and not seconds, so that equal inputs give equal verdicts on every
    machine. A product of two numbers counts one (about a microsecond), other functions more.

    Attributes:
        ctx: the context of mpmath, which no other code shares.
        digits: number of decimal digits.
        left: operations that the budget still allows.
        rules: operations in the place of those of mpmath's numbers, by name; None for these.

    Examples:
        >>> sixty = Precision(60)
        >>> str(sixty.real(sixty.exact(0.1)[()]))[:24]
        '0.1000000000000000055511'
    """

    rules: Mapping[str, Callable[..., Any]] | None = None

    def __init__(self, digits: int, operations: int = 2**22):
        # Imported here: a check in which nothing is violated does not need it.
        from mpmath import MPContext

        self.ctx: Any = MPContext()
        self.ctx.dps = digits
        self.digits = digits
        self.left = operations

    def spend(self, operations: int) -> None:
        """Take operations from the budget before they are done.

        Raises:
            TooLongError: if the budget does not allow them.
        """
        self.left -= operations
        if self.left < 0:
            raise TooLongError(f"it takes too many operations in {self.digits} digits")

    def real(self, value: Any) -> Any:
        """A number of Python or NumPy as a number of mpmath, without rounding.

        Examples:
            >>> Precision(30).real(np.float64(0.25))
            mpf('0.25')
        """
        if isinstance(value, self.ctx.mpf | self.ctx.mpc):
            return value
        plain = _plain(value)
        return self.ctx.mpc(plain) if isinstance(plain, complex) else self.ctx.mpf(plain)

    def exact(self, array: Any) -> np.ndarray:
        """Floats, integers or truth values as an array of numbers of mpmath.

        Examples:
            >>> Precision(30).exact([0.5, 2.0]).tolist()
            [mpf('0.5'), mpf('2.0')]
        """
        array = np.asarray(array)
        return array if in_digits(array) else self.each(self.real, array)

    def each(self, function: Callable[..., Any], *arrays: Any, cost: int = 1) -> np.ndarray:
        """A function of numbers, entry by entry; the arrays have one shape.

        Args:
            cost: operations of one call.

        Examples:
            >>> sixty = Precision(60)
            >>> sixty.each(lambda a: a * a, sixty.exact([3.0])).tolist()
            [mpf('9.0')]
        """
        size = max((np.size(array) for array in arrays), default=1)
        self.spend(cost * size)
        result = np.empty(np.broadcast_shapes(*map(np.shape, arrays)), dtype=object)
        if not result.ndim:  # most are, inside loops, and the machinery costs more than the number
            result[()] = function(*(np.asarray(array)[()] for array in arrays))
            return result
        with np.errstate(all="ignore"):
            result[...] = np.frompyfunc(function, len(arrays), 1)(*arrays)
        return result


def in_digits(value: Any) -> bool:
    """Whether a value is an array of numbers of mpmath."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "O"


def _plain(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return int(value)
    return value.item() if isinstance(value, np.generic) else value
