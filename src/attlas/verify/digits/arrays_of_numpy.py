"""Arrays of `Number` for claims in plain NumPy: functions that NumPy refuses for objects.

Arrays of this class pass through NumPy's functions as any array of objects. Decompositions go to
`linear_algebra`; the few elementwise functions without a loop for objects have one here.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from attlas.verify.digits.linear_algebra import RULES
from attlas.verify.digits.numbers_of_numpy import Number
from attlas.verify.digits.precision import Precision, Unconfirmed


class Digits(np.ndarray):
    """An array of numbers of so many digits.

    Examples:
        >>> x = entered(Precision(60), np.array([[2.0, 0.0], [0.0, 3.0]]))
        >>> str(np.linalg.det(x).value), str(np.linalg.norm(x[0] / 4).value)
        ('6.0', '0.5')
    """

    precision: Precision

    def __array_finalize__(self, made: Any) -> None:
        """The precision of the array from which NumPy made this one."""
        self.precision = getattr(made, "precision", None)  # pyright: ignore

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """The functions without a loop for objects here, all others by NumPy."""
        if method == "__call__" and function.__name__ in _WITHOUT_LOOP:
            kind = _WITHOUT_LOOP[function.__name__]
            numbers = [entered(self.precision, np.asarray(value)) for value in inputs]
            value = np.frompyfunc(kind, len(numbers), 1)(*(n.view(np.ndarray) for n in numbers))
            array = np.asarray(value)
            if all(isinstance(entry, bool) for entry in array.ravel()):
                return array.astype(bool)[()]
            return array.view(Digits)._of(self.precision) if array.ndim else value
        plain = [v.view(np.ndarray) if isinstance(v, Digits) else v for v in inputs]
        if "out" in options:
            options["out"] = tuple(
                v.view(np.ndarray) if isinstance(v, Digits) else v for v in options["out"]
            )
        return self._wrapped(getattr(function, method)(*plain, **options))

    def __array_function__(
        self, function: Any, types: Any, arguments: Any, options: Mapping[str, Any]
    ) -> Any:
        """Decompositions in digits, all other functions by NumPy."""
        del types
        if function in _DECOMPOSED:
            array, *others = arguments
            rest = (entered(self.precision, np.asarray(value)) for value in others[:1])
            if function in _BESIDE:
                return _DECOMPOSED[function](
                    self.precision, entered(self.precision, np.asarray(array)), *rest, **options
                )
            return _DECOMPOSED[function](self.precision, array, *others, **options)
        module = getattr(function, "__module__", "")
        if module.startswith(("numpy.linalg", "numpy.fft")) and function not in _BY_NUMPY:
            raise Unconfirmed(f"{module.replace('numpy', 'np')}.{function.__name__} has no rule")
        plain, keyed = _plain(arguments), {k: _plain(v) for k, v in options.items()}
        return self._wrapped(function(*plain, **keyed))

    def _of(self, precision: Precision) -> "Digits":
        self.precision = precision
        return self

    def _wrapped(self, value: Any) -> Any:
        """What NumPy returned, with numbers in place of integers and arrays of this class."""
        if isinstance(value, tuple | list):
            return type(value)(self._wrapped(part) for part in value)
        if not (isinstance(value, np.ndarray) and value.dtype == object):
            return value
        return entered(self.precision, value)


def entered(precision: Precision, array: np.ndarray) -> Digits:
    """Floats, or numbers as objects, of any shape as an array of this class, without rounding.

    Examples:
        >>> entered(Precision(30), np.array([0.5])).sum().value
        mpf('0.5')
    """

    def number(entry: Any) -> Number:
        return entry if isinstance(entry, Number) else Number(precision, precision.real(entry))

    result = np.empty(array.shape, dtype=object)
    if array.size:
        precision.spend(array.size // 4)
        result[...] = np.frompyfunc(number, 1, 1)(array.view(np.ndarray))
    return result.view(Digits)._of(precision)


def values_of(array: Any) -> np.ndarray:
    """The numbers of mpmath in an array of any shape, or in one number."""
    plain = np.asarray(array, dtype=object).view(np.ndarray)
    result = np.empty(plain.shape, dtype=object)
    result[...] = np.frompyfunc(lambda entry: getattr(entry, "value", entry), 1, 1)(plain)
    return result


def _plain(value: Any) -> Any:
    """Arguments as ordinary arrays of objects, so that NumPy does not ask again."""
    if isinstance(value, Digits):
        return value.view(np.ndarray)
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return value


def _rule(name: str, precision: Precision, *arrays: Any, **details: Any) -> list[Any]:
    matrices = (values_of(array) for array in arrays)
    outputs = RULES[name](precision, details, *matrices)
    return [entered(precision, _numbers(precision, v)) if v.dtype == object else v for v in outputs]


def _numbers(precision: Precision, values: np.ndarray) -> np.ndarray:
    result = np.empty(values.shape, dtype=object)
    if values.size:
        result[...] = np.frompyfunc(lambda value: Number(precision, value), 1, 1)(values)
    return result


class Eigenpairs(NamedTuple):
    """As NumPy's eigh returns them."""

    eigenvalues: Any
    eigenvectors: Any


class SingularVectors(NamedTuple):
    """As NumPy's svd returns them."""

    U: Any
    S: Any
    Vh: Any


class Factors(NamedTuple):
    """As NumPy's qr returns them."""

    Q: Any
    R: Any


class LogDeterminant(NamedTuple):
    """As NumPy's slogdet returns it."""

    sign: Any
    logabsdet: Any


def _eigh(precision: Precision, a: Any, UPLO: str = "L") -> Any:
    vectors, values = _rule("eigh", precision, a, lower=UPLO.upper() == "L")
    return Eigenpairs(values, vectors)


def _eigvalsh(precision: Precision, a: Any, UPLO: str = "L") -> Any:
    return _rule("eigh", precision, a, lower=UPLO.upper() == "L")[1]


def _svd(
    precision: Precision, a: Any, full_matrices: bool = True, compute_uv: bool = True, **_: Any
) -> Any:
    details = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    outputs = _rule("svd", precision, a, **details)
    return SingularVectors(outputs[1], outputs[0], outputs[2]) if compute_uv else outputs[0]


def _svdvals(precision: Precision, a: Any) -> Any:
    return _svd(precision, a, compute_uv=False)


def _cholesky(precision: Precision, a: Any, *, upper: bool = False) -> Any:
    (factor,) = _rule("cholesky", precision, a)
    return np.swapaxes(factor, -1, -2) if upper else factor


def _qr(precision: Precision, a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete"):
        raise Unconfirmed(f"a QR decomposition of mode '{mode}'")
    return Factors(*_rule("qr", precision, a, full_matrices=mode == "complete"))


def _det(precision: Precision, a: Any) -> Any:
    lu, pivots, _ = _rule("lu", precision, a)
    n = pivots.shape[-1]
    swaps = (pivots != np.arange(n)).sum(axis=-1)
    return np.diagonal(lu, axis1=-2, axis2=-1).prod(axis=-1) * (-1) ** swaps


def _slogdet(precision: Precision, a: Any) -> Any:
    value = _det(precision, a)
    return LogDeterminant(np.sign(value), np.log(abs(value)))


def _solve(precision: Precision, a: Any, b: Any) -> Any:
    if np.ndim(a) != 2:
        raise Unconfirmed("the solutions of several systems at once")
    lu, _, order = _rule("lu", precision, a)
    right = np.asarray(b)[order].reshape(len(order), -1)
    unit = {"left_side": True, "transpose_a": False, "conjugate_a": False}
    (half,) = _rule(
        "triangular_solve", precision, lu, right, lower=True, unit_diagonal=True, **unit
    )
    (x,) = _rule("triangular_solve", precision, lu, half, lower=False, unit_diagonal=False, **unit)
    return x.reshape(np.shape(b))


def _inverse(precision: Precision, a: Any) -> Any:
    return _solve(precision, a, entered(precision, np.eye(len(a))))


def _norm(
    precision: Precision, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False
) -> Any:
    array = entered(precision, np.asarray(x, dtype=object))
    matrix = array.ndim == 2 and axis is None
    if ord is None and axis is None:
        return np.sqrt((array * array).sum(keepdims=keepdims))
    if matrix and ord in (2, -2, "nuc"):
        values = _svdvals(precision, array)
        return {2: np.max, -2: np.min, "nuc": np.sum}[ord](values)
    return array._wrapped(np.linalg.norm(array.view(np.ndarray), ord, axis, keepdims))


def _log_add_exp(a: Number, b: Number) -> Any:
    high, low = (a, b) if a >= b else (b, a)
    return high + np.log1p(np.exp(low - high))


_WITHOUT_LOOP: dict[str, Callable[..., Any]] = {
    "isfinite": Number.isfinite,
    "isnan": lambda a: bool(a.precision.ctx.isnan(a.value)),
    "isinf": lambda a: bool(a.precision.ctx.isinf(a.value)),
    "signbit": lambda a: a < 0,
    "logaddexp": _log_add_exp,
    "copysign": lambda a, b: abs(a) if b >= 0 else -abs(a),
    "float_power": lambda a, b: a**b,
}
_DECOMPOSED: dict[Any, Callable[..., Any]] = {
    np.linalg.eigh: _eigh,
    np.linalg.eigvalsh: _eigvalsh,
    np.linalg.svd: _svd,
    np.linalg.svdvals: _svdvals,
    np.linalg.cholesky: _cholesky,
    np.linalg.qr: _qr,
    np.linalg.det: _det,
    np.linalg.slogdet: _slogdet,
    np.linalg.solve: _solve,
    np.linalg.inv: _inverse,
    np.linalg.norm: _norm,
}
_BESIDE = (np.linalg.solve,)
"""Functions whose second argument is an array."""
_BY_NUMPY = (np.linalg.matrix_power, np.linalg.multi_dot, np.linalg.outer, np.linalg.trace)
"""Functions of np.linalg that are sums of products."""
