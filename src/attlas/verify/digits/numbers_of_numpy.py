"""Numbers of so many digits that NumPy's own functions accept, for claims in plain NumPy.

NumPy evaluates an array of objects by the methods of its entries: `np.sqrt` calls `sqrt`. What
would round silently (a float of a number, an entry of an array of floats) raises `Unconfirmed`.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from attlas.verify.digits.elementwise import RULES
from attlas.verify.digits.precision import Precision, Unconfirmed

_BY_NAME = {
    **{name: name for name in ("sqrt", "exp", "exp2", "expm1", "log", "log1p", "cbrt", "sign")},
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
"""Functions of NumPy and the rules of `elementwise` for them."""
_ROUNDS = (
    "makes a float of a number: use np.sqrt and the like in place of math, and np.zeros_like(x) or "
    "np.stack in place of np.zeros and np.array"
)


class Number:
    """A real number in the precision at hand, with the methods that NumPy calls.

    Examples:
        >>> sixty = Precision(60)
        >>> str(np.sqrt(Number(sixty, sixty.real(2.0))).value)[:32]
        '1.414213562373095048801688724209'
        >>> float(Number(sixty, sixty.real(2.0)))
        Traceback (most recent call last):
            ...
        attlas.verify.digits.precision.Unconfirmed: it makes a float of a number: use np.sqrt ...
    """

    __slots__ = ("precision", "value")
    shape, ndim, size = (), 0, 1

    def __init__(self, precision: Precision, value: Any):
        self.precision, self.value = precision, value

    def _of(self, value: Any) -> "Number":
        return Number(self.precision, value)

    def _ruled(self, rule: str, *others: "Number") -> "Number":
        operands = (np.array(number.value, dtype=object) for number in (self, *others))
        return self._of(RULES[rule](self.precision, {}, *operands)[()])

    def _binary(self, operate: Callable[[Any, Any], Any], other: Any, swap: bool = False) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        number = self.converted(other)
        pair = (number.value, self.value) if swap else (self.value, number.value)
        self.precision.spend(1)
        return self._of(operate(*pair))

    def converted(self, other: Any) -> "Number":
        """A number of Python or NumPy beside this one, without rounding."""
        return other if isinstance(other, Number) else self._of(self.precision.real(other))

    def __add__(self, other: Any) -> Any:
        return self._binary(operator.add, other)

    def __radd__(self, other: Any) -> Any:
        return self._binary(operator.add, other, swap=True)

    def __sub__(self, other: Any) -> Any:
        return self._binary(operator.sub, other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary(operator.sub, other, swap=True)

    def __mul__(self, other: Any) -> Any:
        return self._binary(operator.mul, other)

    def __rmul__(self, other: Any) -> Any:
        return self._binary(operator.mul, other, swap=True)

    def __truediv__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else self._by("div", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.converted(other)._ruled("div", self)

    def __pow__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, np.ndarray) else self._by("pow", other)

    def __rpow__(self, other: Any) -> Any:
        return self.converted(other)._ruled("pow", self)

    def __mod__(self, other: Any) -> Any:
        """The remainder of NumPy, which has the sign of the divisor."""
        number = self.converted(other)
        return self - number * (self / number).floor()

    def __floordiv__(self, other: Any) -> Any:
        return (self / self.converted(other)).floor()

    def _by(self, rule: str, other: Any) -> "Number":
        return self._ruled(rule, self.converted(other))

    def __neg__(self) -> "Number":
        return self._of(-self.value)

    def __pos__(self) -> "Number":
        return self

    def __abs__(self) -> "Number":
        return self._of(abs(self.value))

    fabs = __abs__

    def __eq__(self, other: object) -> Any:
        return self._compared(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._compared(operator.ne, other)

    def __lt__(self, other: Any) -> Any:
        return self._compared(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._compared(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._compared(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._compared(operator.ge, other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def _compared(self, operate: Callable[[Any, Any], Any], other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return bool(operate(self.value, self.converted(other).value))

    def __bool__(self) -> bool:
        return bool(self.value != 0)

    def __float__(self) -> float:
        raise Unconfirmed(f"it {_ROUNDS}")

    def __int__(self) -> int:
        raise Unconfirmed("it makes a whole number of a real one")

    __index__ = __int__

    def __complex__(self) -> complex:
        raise Unconfirmed("it computes with complex numbers")

    def conjugate(self) -> "Number":
        """The number itself, which is real."""
        return self

    conj = conjugate

    @property
    def real(self) -> "Number":
        """The number itself."""
        return self

    @property
    def T(self) -> "Number":  # noqa: N802
        """The number itself."""
        return self

    def square(self) -> "Number":
        """The square."""
        return self * self

    def reciprocal(self) -> "Number":
        """One over the number."""
        return 1 / self

    def log2(self) -> "Number":
        """The logarithm to base 2."""
        return self.log() / self.converted(2).log()  # pyright: ignore[reportAttributeAccessIssue]

    def log10(self) -> "Number":
        """The logarithm to base 10."""
        return self.log() / self.converted(10).log()  # pyright: ignore[reportAttributeAccessIssue]

    def arctan2(self, other: Any) -> "Number":
        """The angle of the point (other, self)."""
        return self._by("atan2", other)

    def hypot(self, other: Any) -> "Number":
        """The length of the hypotenuse."""
        return np.sqrt(self * self + self.converted(other).square())  # pyright: ignore

    def floor(self) -> "Number":
        """The largest whole number below."""
        return self._ruled("floor")

    __floor__ = floor

    def __ceil__(self) -> "Number":
        return self._ruled("ceil")

    def __trunc__(self) -> "Number":
        return self.floor() if self >= 0 else -((-self).floor())

    def rint(self) -> "Number":
        """The nearest whole number, the even one of two."""
        ctx = self.precision.ctx
        return self._of(ctx.nint(self.value) if ctx.isfinite(self.value) else self.value)

    def isfinite(self) -> bool:
        """Whether the number is neither NaN nor infinite."""
        return bool(self.precision.ctx.isfinite(self.value))


def _method(rule: str) -> Callable[[Number], Number]:
    return lambda number: number._ruled(rule)


for _name, _rule in _BY_NAME.items():
    if not hasattr(Number, _name):
        setattr(Number, _name, _method(_rule))
