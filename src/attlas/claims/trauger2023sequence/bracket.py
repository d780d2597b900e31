r"""The bracket of Theorem 4.1: its exact minimum, and where the printed closed form holds.

A = ln 2d, D = 4 B_x^4 C; "split" integrates sqrt(A) + sqrt(D) / epsilon.
"""

import math
from functools import partial

import jax.numpy as jnp

from attlas.bounds.covering.dudley import dudley_integral, entropy_integral
from attlas.bounds.generalisation.trauger2023_single import trauger2023_bracket
from attlas.core.claim import Control, ProofStep, Sides, Status, assume
from attlas.core.statement import inequality

_D = 16
_A = math.log(2 * _D)


def classes(rng, count):
    """Products 2 B_x sqrt(C / m) from a thousandth to thirty, so that both regimes occur."""
    m = 10 ** rng.uniform(1, 6, count)
    B_x = 10 ** rng.uniform(-1, 1, count)
    ratio = 10 ** rng.uniform(-3, 1.5, count)
    delta = B_x * 10 ** rng.uniform(-3, 0, count)
    return {"m": m, "B_x": B_x, "C": (ratio / (2 * B_x)) ** 2 * m, "delta": delta}


def _bracket(m, B_x, C, split):
    return dudley_integral(_A, 4 * B_x**4 * C, m, B_x, constants="printed", split=split)


def kept(m, B_x, C, delta):
    """Positive values, and delta at most B_x."""
    m, B_x = jnp.maximum(m, 1.0), jnp.maximum(jnp.abs(B_x), 1e-3)
    delta = jnp.clip(jnp.abs(delta), 1e-6 * B_x, B_x)
    return {"m": m, "B_x": B_x, "C": jnp.maximum(jnp.abs(C), 1e-9), "delta": delta}


# Two square roots, two logarithms and ten operations on either side: the default of 64 roundings
# is enough; the logarithms of ratios near one cancel against nothing larger than the sides.
on_brackets = partial(inequality, sample=classes, status=Status.CORRECTED)


@on_brackets(
    "Appendix C, Dudley's integral minimised exactly",
    search_over=("delta", "C"),
    project=kept,
    controls=[Control(r"without $\delta$ itself", weight=0.0)],
)
def bracket_minimum(m, B_x, C, delta, *, weight=1.0):
    r"""$$\min_{0<\delta'\le B_x} \Big( \delta' + \int_{\delta'}^{B_x}
    \sqrt{\tfrac{A+D/\epsilon^2}{m}}\, d\epsilon \Big) \le
    \delta + \int_\delta^{B_x} \sqrt{\tfrac{A+D/\epsilon^2}{m}}\, d\epsilon,
    \quad 0 < \delta \le B_x$$

    The closed minimiser $\delta = \sqrt{D / (m - A)}$, cut at $B_x$, against every other $\delta$;
    the search finds it to rounding. Dudley's constants are left out on both sides.
    """
    D = 4 * B_x**4 * C
    integral = entropy_integral(_A, D, delta, B_x)
    right = weight * delta + integral / jnp.sqrt(m)
    size = jnp.sqrt(_A / m) * B_x + jnp.sqrt(D / m)
    return Sides(_bracket(m, B_x, C, split=False), right, magnitude=right + size)


@on_brackets(
    "Appendix C, the root split in two",
    proof_step=ProofStep("trauger2023sequence/slack", 40),
    controls=[Control("the printed closed form", closed=True)],
)
def bracket_split(m, B_x, C, *, closed=False):
    r"""$$\min_\delta \delta + \int_\delta^{B_x} \sqrt{\tfrac{A}{m} + \tfrac{D}{m\epsilon^2}}\,
    d\epsilon \le \min_\delta \delta + \int_\delta^{B_x} \sqrt{\tfrac{A}{m}} +
    \tfrac{1}{\epsilon} \sqrt{\tfrac{D}{m}}\, d\epsilon$$

    Splitting the root costs at most $\sqrt 2$, a few per cent in most places. The control is the
    printed closed form, which is too small wherever its $\delta$ exceeds $B_x$.
    """
    if closed:
        right = trauger2023_bracket(C, B_x, _D, m, constants="printed")
    else:
        right = _bracket(m, B_x, C, split=True)
    return _bracket(m, B_x, C, split=False), right


@on_brackets(
    r"Theorem 4.1, closed form, where $\delta \le B_x$",
    count=96,
    assumptions=[
        assume(
            r"$2 B_x \sqrt C \le \sqrt m - \sqrt{\ln 2d}$",
            lambda m, B_x, C: 2 * B_x * jnp.sqrt(C) <= jnp.sqrt(m) - math.sqrt(_A),
        )
    ],
    controls=[
        Control("$C$ a hundred times smaller in the printed form", factor=0.1),
        Control(r"all $C$, with $\delta$ beyond $B_x$ as well", sample=classes),
    ],
)
def theorem_4_1_closed_form(m, B_x, C, *, factor=1.0):
    r"""$$2B_x\sqrt C \le \sqrt m - \sqrt{\ln 2d} \;\Rightarrow\; \min_{0<\delta\le B_x} (\dots)
    \le \frac{2B_x^2\sqrt C}{\sqrt m} \Big( 1 + \ln \frac{\sqrt m}{2B_x\sqrt C} \Big) +
    B_x \sqrt{\frac{\ln 2d}{m}}$$

    The missing condition of the theorem. Its print also leaves $\sqrt{\ln 2d}$ out of the
    logarithm of Appendix C, which is on the safe side.
    """
    printed = trauger2023_bracket(factor**2 * C, B_x, _D, m, constants="printed")
    size = 2 * B_x**2 * jnp.sqrt(C / m) + B_x
    return Sides(_bracket(m, B_x, C, split=True), printed, magnitude=size)
