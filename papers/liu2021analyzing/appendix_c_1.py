r"""Appendix C.1: region bounds with attention, s0 active inputs, against those of all p inputs.

In logarithms. Without the rounding of n1 / s0 everything follows from one line: (n1 / x)^x
increases for x <= n1 / e.
"""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status, assume
from attlas.claims.statement import erratum, identity, inequality
from attlas.claims.verdict import Outcome
from liu2021analyzing.library.bounds.liu2021_regions import (
    liu2021_central_regions_maximum,
    liu2021_regions,
    liu2021_regions_break_even,
)
from liu2021analyzing.region_instances import ROUNDINGS, size_pairs


def widths(rng, count):
    """Numbers p over three decades, s0 from 1 to nearly p, n1 over what lies around them."""
    p = 2.0 + 10.0 ** rng.uniform(0, 3, count)
    s0 = 1 + (p - 1) * rng.uniform(0, 0.99, count)
    s0[::4] = 1.0
    return {"p": p, "s0": s0, "n1": p * 10.0 ** rng.uniform(-0.5, 2, count)}


def ordered(p, s0):
    """At least one active input, and a hundredth of the inputs inactive."""
    s0 = jnp.clip(s0, 1.0, 1e4)
    return {"s0": s0, "p": jnp.maximum(p, 1.01 * s0)}


def fraction(p, s0):
    """(p log p - s0 log s0) / (p - s0), and the size of its terms."""
    upper, lower = p * jnp.log(p), s0 * jnp.log(s0)
    return (upper - lower) / (p - s0), (upper + lower) / (p - s0)


@identity(
    "Appendix C.1, its condition",
    sample=widths,
    roundings=ROUNDINGS,
    controls=[Control("$n_1$ larger by a factor $e$", offset=-1.0)],
)
def appendix_c_1_break_even(p, s0, n1, *, offset=0.0):
    r"""$$\log (n_1/s_0)^{s_0} - \log (n_1/p)^p = (p - s_0) ( \frac{p \log p - s_0 \log s_0}
    {p - s_0} - \log n_1 )$$

    So attention has the smaller bound, $n_1 / s_0$ and $n_1 / p$ not being rounded down, exactly
    when $\log n_1$ is at least the fraction.
    """
    slope, size = fraction(p, s0)
    few, many = s0 * jnp.log(n1 / s0), p * jnp.log(n1 / p)
    right = (p - s0) * (slope - jnp.log(n1) + offset)
    magnitude = (p - s0) * (size + jnp.log(n1)) + jnp.abs(few) + jnp.abs(many)
    return Sides(few - many, right, magnitude)


def at_break_even(rng, count):
    """Numbers of inputs, and the library's width at which the two bounds are equal."""
    p = rng.integers(2, 400, count)
    s0 = 1 + (rng.uniform(0, 1, count) * (p - 1)).astype(int)
    n1 = [liu2021_regions_break_even(int(k), int(s)) for k, s in zip(p, s0, strict=True)]
    return {"p": p.astype(float), "s0": s0.astype(float), "n1": np.array(n1)}


@identity(
    "Appendix C.1, the width at which the bounds are equal",
    Source.FOUND,
    sample=at_break_even,
    roundings=ROUNDINGS,
    controls=[Control("one unit per input more", more=1.0)],
)
def appendix_c_1_width(p, s0, n1, *, more=0.0):
    r"""$$\log n_1 = \frac{p \log p - s_0 \log s_0}{p - s_0}: \quad
    \left( \frac{n_1}{s_0} \right)^{s_0} = \left( \frac{n_1}{p} \right)^p$$

    In logarithms.
    """
    n1 = n1 + more * p
    few, many = s0 * jnp.log(n1 / s0), p * jnp.log(n1 / p)
    return Sides(few, many, p * (1 + jnp.log(n1) + jnp.log(p)))


@inequality(
    "Appendix C.1, its inequality",
    Source.FOUND,
    sample=widths,
    roundings=ROUNDINGS,
    search_over=("p", "s0"),
    project=ordered,
    controls=[Control(r"$\log p$ alone", factor=False)],
)
def appendix_c_1(p, s0, *, factor=True):
    r"""$$\frac{p \log p - s_0 \log s_0}{p - s_0} \le \frac{p}{p - s_0} \log p,
    \quad 1 \le s_0 < p$$

    Equal at $s_0 = 1$ alone. The factor $p / (p - s_0)$ is close to 1 for small $s_0$; 'close to
    $p$', as our text has it, is $p$ to this power (appendix-c-1-power). At $s_0 = p / 2$ the right
    side requires $n_1 \ge p^2$, and near $p$ more than any width.
    """
    slope, size = fraction(p, s0)
    return Sides(slope, (p / (p - s0) if factor else 1.0) * jnp.log(p), size)


def few_inputs(rng, count):
    """Numbers p over four decades, and s0 up to p / (1 + log p), that bound among them."""
    p = 10.0 ** rng.uniform(0.3, 4, count)
    share = np.where(np.arange(count) % 4, rng.uniform(0, 1, count), 1.0)
    return {"p": p, "s0": 1 + share * (p / (1 + np.log(p)) - 1)}


@inequality(
    "Appendix C.1, 'close to $p$ when $s_0$ is relatively small', of a power",
    sample=few_inputs,
    status=Status.RECONSTRUCTED,
    roundings=ROUNDINGS,
    controls=[
        Control("$s_0$ twice as large", factor=2.0),
        Control("the fraction $p / (p - s_0)$ itself, as in our text", power=False),
    ],
)
def appendix_c_1_power(p, s0, *, factor=1.0, power=True):
    r"""$$1 \le s_0 \le \frac{p}{1 + \log p}: \quad
    \left| \log p^{\,p / (p - s_0)} - \log p \right| \le 1$$

    So $p^{p / (p - s_0)}$ lies between $p$ and $e p$, and a width of the order of $p$ suffices for
    C.1, as the sentence goes on. Equal at the largest $s_0$.
    """
    s0 = factor * s0
    logarithm = p / (p - s0) * jnp.log(p) if power else jnp.log(p / (p - s0))
    return Sides(jnp.abs(logarithm - jnp.log(p)), jnp.ones_like(p), jnp.abs(logarithm))


@inequality(
    "Appendix C.1, its inequality sharpened",
    sample=widths,
    status=Status.SHARPENED,
    search_over=("p", "s0"),
    project=ordered,
    roundings=ROUNDINGS,
    controls=[Control(r"$\log p$ alone", one=0.0)],
)
def appendix_c_1_sharp(p, s0, *, one=1.0):
    r"""$$\frac{p \log p - s_0 \log s_0}{p - s_0} \le 1 + \log p, \quad 1 \le s_0 < p$$

    The left side is a mean of $1 + \log x$ over $[s_0, p]$: it tends to the right one for $s_0$
    near $p$. So $n_1 \ge e p$ suffices for every $s_0$, without rounding.
    """
    slope, size = fraction(p, s0)
    return Sides(slope, one + jnp.log(p), size)


def triples():
    """(n1, s0, p) with the condition of C.1, and the bounds as Theorem 4 prints them."""
    sizes = ((200, 50, 73), (199, 1, 100), (299, 99, 100))
    n1, s0, p = np.asarray(sizes, float).T
    maxima = [[math.log(liu2021_regions(n, s)) for s in inputs] for n, *inputs in sizes]
    bounds = [[math.log(liu2021_regions(n, s, "printed")) for s in inputs] for n, *inputs in sizes]
    return {"n1": n1, "s0": s0, "p": p, "bounds": np.asarray(bounds), "maxima": np.asarray(maxima)}


@erratum(
    "Theorem 4 and appendix C.1, 'the bound of attention model is smaller'",
    witness=triples,
    assumptions=[
        assume(
            "$n_1$ is as large as C.1 asks",
            lambda n1, s0, p: jnp.all(jnp.log(n1) >= fraction(p, s0)[0]),
        )
    ],
    reason="$n_1 / s_0$ and $n_1 / p$ are rounded down: the bounds are not monotone in $s_0$",
    corrected=Control("without rounding down", compared="unrounded"),
    controls=[
        Control(
            "the maxima in place of their lower bounds", expect=Outcome.SUPPORTED, compared="maxima"
        )
    ],
    roundings=ROUNDINGS,
)
def theorem_4_comparison(n1, s0, p, bounds, maxima, *, compared="bounds"):
    r"""$$\log n_1 \ge \frac{p \log p - s_0 \log s_0}{p - s_0} \Rightarrow
    \lfloor n_1/s_0 \rfloor^{s_0} \le \lfloor n_1/p \rfloor^p$$

    $n_1 = 200$: $10^{30.1}$ at $s_0 = 50$, $10^{22.0}$ at $s_0 = 73$; $n_1 = 199$: 199 at
    $s_0 = 1$, but 1 at the figure's $p = 100$; $n_1 = 299 > e p$: $10^{47.2}$ at $s_0 = 99$,
    $10^{30.1}$ at $p = 100$ (the last such $n_1$ is 2899). Lower bounds of maxima do not order
    them; the maxima are in the order that the paper needs, see theorem-4-monotone.
    """
    if compared == "unrounded":
        return s0 * jnp.log(n1 / s0), p * jnp.log(n1 / p)
    few, many = (bounds if compared == "bounds" else maxima).T
    return few, many


def neighbours(rng, count):
    """Logarithms of bounds and maxima at s0 and at one input more."""
    pairs = size_pairs(rng, count)
    counted = {
        "printed": partial(liu2021_regions, constants="printed"),
        "most": liu2021_regions,
        "central": liu2021_central_regions_maximum,
    }
    return {
        name: np.array([[math.log(of(n1, s0 + k)) for k in (0, 1)] for n1, s0 in pairs])
        for name, of in counted.items()
    }


@inequality(
    "Theorem 4, its conclusion from the maxima",
    sample=neighbours,
    status=Status.CORRECTED,
    count=128,
    roundings=ROUNDINGS,
    controls=[
        Control("the printed lower bounds", lower_bounds=True),
        Control("half of the regions on the right", part=0.5),
    ],
    evaluations=768,
)
def theorem_4_monotone(printed, most, central, *, lower_bounds=False, part=1.0):
    r"""$$\sum_{j \le s_0} \binom{n_1}{j} \le \sum_{j \le s_0 + 1} \binom{n_1}{j}, \quad
    2 \sum_{j < s_0} \binom{n_1 - 1}{j} \le 2 \sum_{j \le s_0} \binom{n_1 - 1}{j}$$

    In logarithms. Fewer inputs with weight, fewer regions at most, with biases and without: the
    conclusion of the paper, for weights $f$ that do not depend on $x$.
    """
    few, many = jnp.stack([printed, printed] if lower_bounds else [most, central], axis=1)
    return few, many + math.log(part)
