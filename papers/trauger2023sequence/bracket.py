r"""The bracket of Theorem 4.1: its exact minimum, where the closed form holds, and Section 2.5.

A = ln 2d, D = 4 B_x^4 C; "split" integrates sqrt(A) + sqrt(D) / epsilon. In the table B_x = 1 and
d = 64, values are at most 1, with C = B^2 ln(2 d^2 + 1), B^2 ln(d m T), or the count of parameters.
"""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from attlas.bounds.covering.dudley import dudley_integral, entropy_integral
from attlas.bounds.generalisation.trauger2023_single import trauger2023_bracket
from attlas.claims.claim import Control, ProofStep, Sides, Status, assume
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity, inequality, limit

_D = 16
_A = math.log(2 * _D)


def classes(rng, count):
    """Products 2 B_x sqrt(C / m) over six decades around 0.2, so that both regimes occur."""
    m = 10 ** rng.uniform(1, 6, count)
    B_x = 10 ** rng.uniform(-1, 1, count)
    ratio = six_decades(rng, count, -3, 1.5)
    delta = B_x * 10 ** rng.uniform(-3, 0, count)
    return {"m": m, "B_x": B_x, "C": (ratio / (2 * B_x)) ** 2 * m, "delta": delta}


def _bracket(m, B_x, C, split):
    return dudley_integral(_A, 4 * B_x**4 * C, m, B_x, constants="printed", split=split)


def in_range(m, B_x, C, delta):
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
    project=in_range,
    controls=[
        Control(r"without $\delta$ itself", weight=0.0),
        Control("nine tenths of the integral", share=0.9),
    ],
)
def bracket_minimum(m, B_x, C, delta, *, weight=1.0, share=1.0):
    r"""$$\min_{0<\delta'\le B_x} \Big( \delta' + \int_{\delta'}^{B_x}
    \sqrt{\tfrac{A+D/\epsilon^2}{m}}\, d\epsilon \Big) \le
    \delta + \int_\delta^{B_x} \sqrt{\tfrac{A+D/\epsilon^2}{m}}\, d\epsilon,
    \quad 0 < \delta \le B_x$$

    The closed minimiser $\delta = \sqrt{D / (m - A)}$, cut at $B_x$, against every other $\delta$;
    the search finds it to rounding. Dudley's constants are left out on both sides.
    """
    D = 4 * B_x**4 * C
    integral = entropy_integral(_A, D, delta, B_x)
    right = weight * delta + share * integral / jnp.sqrt(m)
    size = jnp.sqrt(_A / m) * B_x + jnp.sqrt(D / m)
    return Sides(_bracket(m, B_x, C, split=False), right, magnitude=right + size)


@on_brackets(
    "Appendix C, the root split in two",
    search_over=("m", "B_x", "C"),
    project=in_range,
    proof_step=ProofStep("trauger2023sequence/slack", 40),
    controls=[
        Control("nine tenths of the right side", share=0.9),
        Control("the printed closed form", closed=True),
    ],
)
def bracket_split(m, B_x, C, *, closed=False, share=1.0):
    r"""$$\min_\delta \delta + \int_\delta^{B_x} \sqrt{\tfrac{A}{m} + \tfrac{D}{m\epsilon^2}}\,
    d\epsilon \le \min_\delta \delta + \int_\delta^{B_x} \sqrt{\tfrac{A}{m}} +
    \tfrac{1}{\epsilon} \sqrt{\tfrac{D}{m}}\, d\epsilon$$

    Splitting the root costs at most $\sqrt 2$, a few per cent in most places. The printed closed
    form, a control, is too small wherever its $\delta$ exceeds $B_x$, and negative in places.
    """
    if closed:
        right = trauger2023_bracket(C, B_x, _D, m, constants="printed")
    else:
        right = _bracket(m, B_x, C, split=True)
    return _bracket(m, B_x, C, split=False), share * right


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


_WIDE = 64
_ROWS = (
    # B_QK, m, without T, T = 20, T = 200, parameters
    (1, 300, 0.794, 0.850, 0.875, 1.0),
    (1, 10**4, 0.250, 0.305, 0.318, 0.998),
    (1, 10**6, 0.0389, 0.0543, 0.0566, 0.0998),
    (3, 10**6, 0.0925, 0.128, 0.134, 0.119),
    (10, 10**6, 0.231, 0.313, 0.324, 0.138),
    (30, 10**6, 0.491, 0.631, 0.650, 0.154),
    (100, 10**6, 0.908, 0.997, 0.999, 0.169),
)
"""The table as it stands in our notes, to three digits."""


def table_rows(rng, count):
    """All rows of the table, again and again."""
    del rng
    rows = np.array([_ROWS[index % len(_ROWS)] for index in range(count)])
    return {"norm": rows[:, 0], "m": rows[:, 1], "row": rows[:, 2:]}


def _trapezoid(values, points):
    return jnp.sum((values[1:] + values[:-1]) * jnp.diff(points)) / 2


def _counted(norm, m):
    """Parameters: the whole integral from zero on, or the trivial 1."""
    points = jnp.geomspace(1e-6, 1.0, 400)
    size = math.log(2 * _WIDE) + _WIDE**2 * jnp.log1p(4 * norm / points)
    return jnp.minimum(1.0, _trapezoid(jnp.sqrt(size / m), points))


def _closed(norm, m, size):
    return dudley_integral(
        math.log(2 * _WIDE), 4 * norm**2 * size, m, 1.0, constants="printed", split=True
    )


def _sizes(m, square=2.0):
    flat = jnp.asarray(math.log(square * _WIDE**2 + 1))
    return [flat, *(jnp.log(_WIDE * m * T) for T in (20.0, 200.0))]


on_table = partial(
    identity, sample=table_rows, status=Status.NEW, count=len(_ROWS), enumerates=len(_ROWS)
)


@on_table(
    "Sections 2.5 and 4.1, brackets of the bounds at equal norms",
    controls=[
        Control("$2000 d^2$ in place of $2 d^2$", square=2000.0),
        Control("twice the norms", factor=2.0),
    ],
)
def bracket_table(norm, m, row, *, square=2.0, factor=1.0):
    r"""$$\min_\delta \delta + \int_\delta^1 \sqrt{\tfrac{\ln 2d}{m}} + \tfrac{2B_{QK}}{\epsilon}
    \sqrt{\tfrac{\ell}{m}}\, d\epsilon = \mathrm{table},\quad \ell = \ln(2d^2+1),\
    \ln(20dm),\ \ln(200dm)$$

    Seven rows, from $B_{QK} = 1$, $m = 300$ to $B_{QK} = 100$, $m = 10^6$; the fourth column counts
    parameters (the whole integral, not minimised over $\delta$). Three digits. At equal norms
    removing $\log T$ gains, and parameter counting wins for large $B_{QK}$ and $m$.
    """
    norm = factor * norm
    values = [_closed(norm, m, size) for size in _sizes(m, square)]
    values_at = jnp.stack([*values, _counted(norm, m)])
    # Half a unit in the third digit that is given, and the trapezoid's error in the last column.
    digit = 10 ** (jnp.floor(jnp.log10(values_at)) - 2)
    return Sides(values_at, row, error=0.51 * digit)


@on_table(
    "Sections 2.5 and 4.1, the same brackets by quadrature",
    controls=[Control("only the part beyond a half", start=0.5)],
)
def bracket_table_twice(norm, m, *, start=1e-6):
    r"""$$\min_{0<\delta\le 1} \Big( \delta + \int_\delta^1 g(\epsilon)\, d\epsilon \Big) =
    \int_0^1 \min(1, g(\epsilon))\, d\epsilon,\quad g\ \text{falling}$$

    The closed minimiser against a computation that does not minimise.
    """
    points, again = jnp.geomspace(start, 1.0, 4000), []
    for size in _sizes(m):
        root = 2 * norm * jnp.sqrt(size)
        slope = (math.sqrt(math.log(2 * _WIDE)) + root / points) / jnp.sqrt(m)
        again.append(points[0] + _trapezoid(jnp.minimum(1.0, slope), points))
    closed = jnp.stack([_closed(norm, m, size) for size in _sizes(m)])
    # Trapezoids of 1 / epsilon at ratio 1 + h are off by h^2 / 12, the kink by h / 2 in one step.
    h = math.log(1 / 1e-6) / 3999
    return Sides(closed, jnp.stack(again), error=h**2)


def matrices(rng, count):
    """The norms of a Gaussian matrix of order 64, T and m, and four orders from 3 on."""
    W = rng.normal(size=(count, _WIDE, _WIDE))
    norms = np.abs(W).sum((1, 2)), np.linalg.norm(W, axis=2).sum(1)
    T, m = 10 ** rng.uniform(1, 100, count), 10 ** rng.uniform(2.5, 6, count)
    orders = (3.0 + np.arange(count))[:, None] * 4 ** np.arange(4)
    return {"norms": np.stack(norms, axis=1), "T": T, "m": m, "d": orders}


@limit(
    "Section 3.4, the norms of the two bounds are not equal",
    sample=matrices,
    scales="d",
    status=Status.NEW,
    controls=[Control("$d^{0.4}$ in place of $d^{0.5}$", power=0.4)],
)
def dense_weights_norms(d, *, power=0.5):
    r"""$$\frac{\mathbb{E} \|W\|_{1,1}}{\mathbb{E} \|W^\top\|_{2,1}} =
    \frac{d\, \Gamma(d/2)}{\sqrt \pi\, \Gamma((d+1)/2)} \sim \sqrt{\frac{2d}{\pi}} \quad
    (d \to \infty),\quad W_{ij} \sim N(0,1)$$

    6.4 at $d = 64$. Dense weights pay this factor for the $l_1$ norm, squared in the entropy.
    """
    ratio = d / math.sqrt(math.pi) * jnp.exp(gammaln(d / 2) - gammaln((d + 1) / 2))
    return ratio / (math.sqrt(2 / math.pi) * d**power), jnp.ones_like(d)


@inequality(
    "Section 3.4, the two entropies on the same dense matrix",
    sample=matrices,
    status=Status.NEW,
    search_over="T",
    project=lambda T: {"T": jnp.clip(T, 1, 1e100)},
    controls=[
        Control("the same norm on both sides", equal=True),
        Control("half of the bound", share=0.5),
    ],
)
def dense_weights_entropy(norms, T, m, *, equal=False, share=1.0):
    r"""$$d = 64,\ T \le 10^{100},\ m \le 10^6: \quad \|W^\top\|_{2,1}^2 \ln(dmT) \le
    \|W\|_{1,1}^2 \ln(2d^2+1)$$

    $W$ Gaussian. The bound without $T$ would be the smaller one only where $\ln(dmT) > (2d/\pi)
    \ln(2d^2+1)$, $\ln T$ of 349 at $d = 64$ and $m = 10^6$: removing $\log T$ costs a factor $d$
    unless $W$ is sparse.
    """
    first, two = norms
    right = share * (two if equal else first) ** 2 * math.log(2 * _WIDE**2 + 1)
    return two**2 * jnp.log(_WIDE * m * T), right
