"""Intervals of special functions enclose what mpmath gives, and are a few floats wide."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from jax.scipy import special

from attlas.claims.claim import Control
from attlas.claims.proof import BOX
from attlas.claims.statement import inequality
from attlas.verify import special_intervals
from attlas.verify.interval_rules import RULES
from attlas.verify.intervals import Interval, exact
from attlas.verify.proofs.boxes import proved_on_box
from attlas.verify.proofs.elements import NotProvedError

REFERENCE = {
    "erf": "erf",
    "erfc": "erfc",
    "erf_inv": "erfinv",
    "lgamma": "loggamma",
    "digamma": "digamma",
    "sin": "sin",
    "cos": "cos",
}
SPECIAL = [0.0, 1.0, 2.0, 1e-300, 1e-17, 26.9, 1 + 2**-52, 1 - 2**-53, np.pi, 2 * np.pi, 1e10,
           1.461632144968362, 1.4616321449683623]  # fmt: skip


def points(name):
    rng = np.random.default_rng(len(name))
    drawn = np.concatenate([3 * rng.normal(size=20), np.exp(6 * rng.normal(size=20)), SPECIAL])
    if name in ("lgamma", "digamma"):
        return drawn[drawn > 0]
    return np.tanh(drawn[:30]) if name == "erf_inv" else drawn


def test_every_function_has_a_reference_and_a_rule():
    assert special_intervals.FUNCTIONS.keys() == REFERENCE.keys() | {"polygamma"}
    assert special_intervals.FUNCTIONS.keys() <= RULES.keys()


@pytest.mark.parametrize("name", REFERENCE)
def test_a_point_is_enclosed_by_a_few_floats(name):
    at = points(name)
    at = at[np.abs(at) < 1] if name == "erf_inv" else at
    ends = special_intervals.FUNCTIONS[name](exact(at))
    context = mpmath.mp.clone()
    context.dps = 400 if name == "erfc" else 60
    for x, low, high in zip(at, ends.low, ends.high, strict=True):
        value = getattr(context, REFERENCE[name])(context.mpf(x))
        assert context.mpf(low) <= value <= context.mpf(high), x
        assert high - low <= 1e-12 * max(abs(low), abs(high)) + 1e-300, x


@pytest.mark.parametrize("m", [0, 1, 2, 3])
def test_derivatives_of_digamma_are_enclosed(m):
    at = points("digamma")
    ends = special_intervals.polygamma(exact(float(m)), exact(at))
    context = mpmath.mp.clone()
    context.dps = 40
    for x, low, high in zip(at, ends.low, ends.high, strict=True):
        assert context.mpf(low) <= context.psi(m, context.mpf(x)) <= context.mpf(high), x


@pytest.mark.parametrize("name", REFERENCE)
def test_all_values_between_two_ends_are_enclosed(name):
    rng = np.random.default_rng(3)
    low = 4 * rng.normal(size=100)
    high = low + np.exp(2 * rng.normal(size=100))
    if name in ("lgamma", "digamma"):
        low, high = np.exp(low / 4), np.exp(low / 4) * np.exp(np.minimum(high - low, 2))
    if name == "erf_inv":
        low, high = np.tanh(low / 4), np.tanh(high / 4)
    ends = special_intervals.FUNCTIONS[name](Interval(low, high))
    inside = low + (high - low) * np.linspace(0, 1, 401)[:, None]
    function = {
        "erf_inv": special.erfinv, "lgamma": special.gammaln, "digamma": special.digamma,
    }.get(name) or getattr(jax.lax, name)  # fmt: skip
    values = np.asarray(function(inside))
    tolerance = 1e-11 * (1 + np.abs(values))
    assert (values >= ends.low - tolerance).all()
    assert (values <= ends.high + tolerance).all()
    assert (values.min(axis=0) - ends.low < 0.02 * (1 + np.abs(ends.low))).all()


def test_where_a_function_is_not_defined_its_interval_is_unbounded():
    negative = Interval(np.array(-1.0), np.array(1.0))
    for function in (special_intervals.log_gamma, special_intervals.digamma):
        ends = function(negative)
        assert (ends.low, ends.high) == (-np.inf, np.inf)
    ends = special_intervals.inverse_error_function(Interval(np.array(-1.5), np.array(2.0)))
    assert (ends.low, ends.high) == (-np.inf, np.inf)
    unbounded = Interval(np.array(-np.inf), np.array(np.inf))
    assert special_intervals.error_function(unbounded).high == 1
    wave = special_intervals.sine(unbounded)
    assert (wave.low, wave.high) == (-1, 1)


def stated(sides, low, high):
    def statement(x, *, factor=1.0):
        r"""$$f(x) \\le g(x)$$"""
        return sides(x, factor)

    return inequality(
        sample=lambda rng, count: {"x": rng.uniform(low, high, size=count)},
        not_attacked="a test",
        controls=[Control("halved", factor=0.5)],
    )(statement)


TRUE = {
    "tangent": (lambda x, c: (special.erf(x), c * 1.1283792 * x), 0.1, 2),
    "Gaussian tail": (lambda x, c: (special.erfc(x), c * jnp.exp(-(x**2))), 0.1, 3),
    "quantile": (lambda x, c: (x, c * 2 / np.sqrt(np.pi) * special.erfinv(x)), 0.1, 0.9),
    "log gamma": (lambda x, c: (special.gammaln(x), c * (x - 1) * jnp.log(x)), 1.5, 6),
    "digamma": (lambda x, c: (special.digamma(x), c * jnp.log(x)), 2, 6),
    "sine": (lambda x, c: (jnp.sin(x), c * x), 0.2, 4),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", TRUE)
def test_inequalities_of_special_functions_are_proved_on_a_box(name):
    assert proved_on_box(stated(*TRUE[name])).method == BOX


def test_a_false_inequality_of_a_special_function_is_not_proved():
    with pytest.raises(NotProvedError):
        proved_on_box(stated(lambda x, c: (special.erfc(x), c * jnp.exp(-2 * x**2)), 0.1, 3))
