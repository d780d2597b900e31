"""Operations of JAX on each entry of arrays, as functions of numbers of mpmath.

Where the real number does not exist (the logarithm of a negative number) the result is NaN, and
where it is unbounded (one over zero) infinite, as in floats.
"""

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from attlas.verify.digits.precision import Precision, Unconfirmed

Rule = Callable[..., Any]
"""`(precision, details, *operands)` -> one array, or a list of arrays."""

_FARTHEST = 10**9
"""Exponents beyond which exp is taken as 0 or infinity: mpmath would need all their digits."""


def real_or_nan(ctx: Any, value: Any) -> Any:
    """A number that is real, NaN for a complex one."""
    return ctx.nan if isinstance(value, ctx.mpc) else value


def divide(ctx: Any, a: Any, b: Any) -> Any:
    """The quotient, infinite or NaN over zero."""
    if b == 0:
        return ctx.nan if a == 0 or ctx.isnan(a) else ctx.inf * ctx.sign(a)
    return a / b


def exponential(ctx: Any, a: Any) -> Any:
    """The exponential; 0 or infinite where its exponent has more than nine digits."""
    if abs(a) > _FARTHEST:
        return ctx.inf if a > 0 else ctx.zero
    return ctx.exp(a)


def logarithm(ctx: Any, a: Any) -> Any:
    """The logarithm: -infinity at zero, NaN below."""
    return ctx.ninf if a == 0 else real_or_nan(ctx, ctx.log(a))


def power(ctx: Any, a: Any, b: Any) -> Any:
    """The real power, NaN where it is complex; a whole power of a complex number."""
    if b == 0:
        return ctx.one
    if isinstance(a, ctx.mpc):
        return a**b
    if a == 0:
        return ctx.inf if b < 0 else ctx.zero
    if ctx.isfinite(a) and ctx.isfinite(b) and abs(b * ctx.log(abs(a))) > _FARTHEST:
        raise Unconfirmed("a power with more than nine digits in its exponent")
    return real_or_nan(ctx, ctx.power(a, b))


def larger(ctx: Any, a: Any, b: Any) -> Any:
    """The larger number, NaN where one is."""
    return ctx.nan if ctx.isnan(a) or ctx.isnan(b) else max(a, b)


def smaller(ctx: Any, a: Any, b: Any) -> Any:
    """The smaller number, NaN where one is."""
    return ctx.nan if ctx.isnan(a) or ctx.isnan(b) else min(a, b)


def _log_1p(ctx: Any, a: Any) -> Any:
    return ctx.ninf if a == -1 else real_or_nan(ctx, ctx.log1p(a))


def _exp_m1(ctx: Any, a: Any) -> Any:
    return exponential(ctx, a) - 1 if abs(a) > 1 else ctx.expm1(a)


def _tanh(ctx: Any, a: Any) -> Any:
    return ctx.sign(a) if abs(a) > _FARTHEST else ctx.tanh(a)


def _cube_root(ctx: Any, a: Any) -> Any:
    return ctx.sign(a) * ctx.cbrt(abs(a))


def _log_gamma(ctx: Any, a: Any) -> Any:
    if a <= 0 and a == ctx.floor(a):
        return ctx.inf
    return ctx.loggamma(a) if a > 0 else ctx.log(abs(ctx.gamma(a)))


def _polygamma(ctx: Any, m: Any, a: Any) -> Any:
    undefined = (a <= 0 and a == ctx.floor(a)) or m < 0 or m != ctx.floor(m)
    return ctx.nan if undefined else ctx.psi(int(m), a)


def _hurwitz_zeta(ctx: Any, s: Any, q: Any) -> Any:
    if s == 1:
        return ctx.inf
    return real_or_nan(ctx, ctx.zeta(s, q)) if s > 1 and q > 0 else ctx.nan


def _lower_gamma(ctx: Any, s: Any, a: Any) -> Any:
    """The share of the gamma function below a number."""
    if not (s > 0 and a >= 0):
        return ctx.nan
    if not ctx.isfinite(a):
        return ctx.one
    return ctx.gammainc(s, 0, a, regularized=True)


def _upper_gamma(ctx: Any, s: Any, a: Any) -> Any:
    """The share of the gamma function above a number."""
    if not (s > 0 and a >= 0):
        return ctx.nan
    return ctx.gammainc(s, a, regularized=True) if ctx.isfinite(a) else ctx.zero


def _slope_of_lower_gamma(ctx: Any, s: Any, a: Any) -> Any:
    """The derivative by the order, whose digits are halved by differences: of twice as many."""
    if not (s > 0 and a > 0 and ctx.isfinite(a)):
        return ctx.zero if a == 0 else ctx.nan
    with ctx.workdps(2 * ctx.dps):
        return ctx.diff(lambda t: ctx.gammainc(t, 0, a, regularized=True), s)


def _incomplete_beta(ctx: Any, a: Any, b: Any, x: Any) -> Any:
    if not (a > 0 and b > 0 and 0 <= x <= 1):
        return ctx.nan
    return ctx.betainc(a, b, 0, x, regularized=True)


def _normal_quantile(ctx: Any, a: Any) -> Any:
    if abs(a) >= 1:
        return ctx.inf * ctx.sign(a) if abs(a) == 1 else ctx.nan
    return ctx.erfinv(a)


def _remainder(ctx: Any, a: Any, b: Any) -> Any:
    if b == 0 or not (ctx.isfinite(a) and ctx.isfinite(b)):
        return ctx.nan
    rest = abs(a) - abs(b) * ctx.floor(abs(a) / abs(b))
    return rest if a >= 0 else -rest


def _sign(ctx: Any, a: Any) -> Any:
    return ctx.nan if ctx.isnan(a) else ctx.sign(a)


def whole(ctx: Any, operate: str, a: Any) -> Any:
    """The floor or ceiling; infinite and NaN stay."""
    return getattr(ctx, operate)(a) if ctx.isfinite(a) else a


def _rounded(precision: Precision, details: Mapping[str, Any], a: Any) -> np.ndarray:
    ctx, half = precision.ctx, precision.ctx.mpf(0.5)
    to_even = int(details["rounding_method"]) == 1

    def nearest(x: Any) -> Any:
        if not ctx.isfinite(x):
            return x
        return ctx.nint(x) if to_even else ctx.sign(x) * ctx.floor(abs(x) + half)

    return precision.each(nearest, a)


def _clamped(precision: Precision, details: Mapping[str, Any], low: Any, a: Any, high: Any) -> Any:
    del details
    ctx, shape = precision.ctx, np.shape(a)
    low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    return precision.each(lambda x, y, z: smaller(ctx, larger(ctx, y, x), z), low, a, high)


def _integer_power(precision: Precision, details: Mapping[str, Any], a: Any) -> np.ndarray:
    exponent = precision.real(details["y"])
    return precision.each(lambda x: power(precision.ctx, x, exponent), a, cost=2)


def _real_power(precision: Precision, details: Mapping[str, Any], a: Any, b: Any) -> np.ndarray:
    del details
    return precision.each(partial(power, precision.ctx), a, precision.exact(b), cost=10)


def _compared(operate: Callable[[Any, Any], Any]) -> Rule:
    def rule(precision: Precision, details: Mapping[str, Any], a: Any, b: Any) -> np.ndarray:
        del details
        return precision.each(operate, a, b).astype(bool)

    return rule


def _finite(precision: Precision, details: Mapping[str, Any], a: Any) -> np.ndarray:
    del details
    return precision.each(precision.ctx.isfinite, a).astype(bool)


def _of(function: Callable[..., Any], cost: int = 5) -> Rule:
    """A rule from a function of a context and numbers."""

    def rule(precision: Precision, details: Mapping[str, Any], *operands: Any) -> np.ndarray:
        del details
        return precision.each(partial(function, precision.ctx), *operands, cost=cost)

    return rule


def _plainly(function: Callable[..., Any]) -> Rule:
    """A rule from an operator of Python."""
    return _of(lambda ctx, *operands: function(*operands), cost=1)


def _named(name: str, cost: int = 5) -> Rule:
    """A rule from the function of mpmath of a name."""
    return _of(lambda ctx, *a: real_or_nan(ctx, getattr(ctx, name)(*a)), cost)


def _one_over_root(ctx: Any, a: Any) -> Any:
    return divide(ctx, ctx.one, real_or_nan(ctx, ctx.sqrt(a)))


def _bessel(order: int) -> Rule:
    return _of(lambda ctx, a: ctx.besseli(order, a) * ctx.exp(-abs(a)), 200)


RULES: dict[str, Rule] = {
    "add": _plainly(operator.add),
    "add_any": _plainly(operator.add),
    "sub": _plainly(operator.sub),
    "mul": _plainly(operator.mul),
    "neg": _plainly(operator.neg),
    "abs": _plainly(abs),
    "real": _plainly(lambda a: a.real),
    "imag": _plainly(lambda a: a.imag),
    "conj": _of(lambda ctx, a: ctx.conj(a), 1),
    "complex": _of(lambda ctx, a, b: ctx.mpc(a, b), 1),
    "square": _plainly(lambda a: a * a),
    "div": _of(divide, 1),
    "max": _of(larger, 1),
    "min": _of(smaller, 1),
    "pow": _real_power,
    "integer_pow": _integer_power,
    "sqrt": _named("sqrt", 2),
    "rsqrt": _of(_one_over_root, 3),
    "cbrt": _of(_cube_root),
    "exp": _of(exponential),
    "exp2": _of(lambda ctx, a: power(ctx, ctx.mpf(2), a)),
    "expm1": _of(_exp_m1),
    "log": _of(logarithm),
    "log1p": _of(_log_1p),
    "logistic": _of(lambda ctx, a: divide(ctx, ctx.one, 1 + exponential(ctx, -a))),
    "tanh": _of(_tanh),
    **{name: _named(name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2")},
    **{name: _named(name) for name in ("sinh", "cosh", "asinh", "acosh", "atanh")},
    "erf": _named("erf", 20),
    "erfc": _named("erfc", 20),
    "erf_inv": _of(_normal_quantile, 200),
    "lgamma": _of(_log_gamma, 50),
    "digamma": _of(lambda ctx, a: _polygamma(ctx, 0, a), 50),
    "polygamma": _of(_polygamma, 100),
    "zeta": _of(_hurwitz_zeta, 500),
    "igamma": _of(_lower_gamma, 500),
    "igammac": _of(_upper_gamma, 500),
    "igamma_grad_a": _of(_slope_of_lower_gamma, 5000),
    "regularized_incomplete_beta": _of(_incomplete_beta, 500),
    "bessel_i0e": _bessel(0),
    "bessel_i1e": _bessel(1),
    "sign": _of(_sign, 1),
    "floor": _of(lambda ctx, a: whole(ctx, "floor", a), 1),
    "ceil": _of(lambda ctx, a: whole(ctx, "ceil", a), 1),
    "round": _rounded,
    "rem": _of(_remainder, 3),
    "clamp": _clamped,
    "is_finite": _finite,
    "eq": _compared(operator.eq),
    "ne": _compared(operator.ne),
    "lt": _compared(operator.lt),
    "le": _compared(operator.le),
    "gt": _compared(operator.gt),
    "ge": _compared(operator.ge),
    "lt_to": _compared(operator.lt),
    "le_to": _compared(operator.le),
    "eq_to": _compared(operator.eq),
}
