r"""The cases of the proof of Lemma 13: where expression (11) is smallest, sign by sign.

(11) is |x|^p - |y|^p - p sign(y) |y|^{p-1} (x - y). The sentences of the proof are printed, its
formulas are lost: each is what its sentence needs. Case 1 has equal signs and x - y fixed, case 2
opposite signs.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, ProofStep, Sides, assume
from attlas.claims.statement import identity, inequality
from julistiono2024optimizing.lemma_13 import expression_11

_ABOVE, _BELOW = (2.0, 2.25, 2.5, 3.0, 4.0), (1.05, 1.1, 1.25, 1.5, 1.75, 1.9)


def _sizes(rng, count, exponents):
    """Sizes of x and y up to 1 over six decades, every third pair with one next to its end."""
    sizes = 10 ** rng.uniform(-6, 0, (2, count)) * rng.choice([0.5, 1.0], (2, count))
    end = np.where(np.arange(count) % 2 == 0, 1.0, 10 ** rng.uniform(-9, -6, count))
    sizes[0] = np.where(np.arange(count) % 3 == 0, end, sizes[0])
    sizes[1] = np.where(np.arange(count) % 3 == 1, end, sizes[1])
    return sizes, rng.choice(exponents, count)


def same_sign(rng, count, exponents):
    """Numbers x and y of one sign, and an exponent."""
    (x, y), p = _sizes(rng, count, exponents)
    sign = rng.choice([-1.0, 1.0], count)
    return {"x": sign * x, "y": sign * y, "p": p}


def opposite_signs(rng, count, exponents):
    """Numbers x and y of opposite signs, and an exponent."""
    (x, y), p = _sizes(rng, count, exponents)
    sign = rng.choice([-1.0, 1.0], count)
    return {"x": sign * x, "y": -sign * y, "p": p}


def _inside(x, y, sign):
    """Sizes of at least 1e-9 and at most 1; y has the sign of x, or the opposite one."""
    x, y = jnp.where(x == 0, 1e-9, x), jnp.abs(y)
    limit = partial(jnp.clip, min=1e-9, max=1.0)
    return {"x": jnp.sign(x) * limit(jnp.abs(x)), "y": sign * jnp.sign(x) * limit(y)}


SAME = assume("$x y > 0$ and $|x|, |y| \\le 1$", lambda x, y: (x * y > 0) & _at_most_one(x, y))
OPPOSITE = assume("$x y < 0$ and $|x|, |y| \\le 1$", lambda x, y: (x * y < 0) & _at_most_one(x, y))


def _at_most_one(x, y):
    return jnp.maximum(jnp.abs(x), jnp.abs(y)) <= 1


on_same_signs = partial(
    inequality,
    assumptions=[SAME],
    search_over=("x", "y"),
    project=partial(_inside, sign=1.0),
)


@on_same_signs(
    "Lemma 13, proof, Case 1: the derivative",
    sample=partial(same_sign, exponents=_ABOVE + _BELOW),
    controls=[
        Control("the regimes of $p$ exchanged", exchanged=True),
        Control("1.1 times the left side", factor=1.1),
    ],
    proof_step=ProofStep("Lemma 13", 3),
)
def lemma_13_case_1_derivative(x, y, p, *, exchanged=False, factor=1.0):
    r"""$$x, y > 0,\ \Delta = x - y: \quad p (y+\Delta)^{p-1} - p y^{p-1} - p(p-1) y^{p-2} \Delta
    \ge 0\ (p \ge 2),\quad \le 0\ (1 < p < 2)$$

    The derivative of (11) in $y$ at fixed $\Delta$: $z^{p-1}$ lies above its tangent where it is
    convex, and below it where it is concave. Shown as tangent and value, divided by $y^{p-1}$.
    """
    ratio = x / y
    value, tangent = ratio ** (p - 1), 1 + (p - 1) * (ratio - 1)
    convex = (p >= 2) ^ exchanged
    left, right = jnp.where(convex, tangent, value), jnp.where(convex, value, tangent)
    return Sides(factor * left, right, magnitude=value + 1 + (p - 1) * (ratio + 1))


@on_same_signs(
    "Lemma 13, proof, Sub-Case 1.1",
    sample=partial(same_sign, exponents=_ABOVE),
    controls=[Control("1.05 times the minimum", factor=1.05)],
    proof_step=ProofStep("Lemma 13", 4),
)
def lemma_13_case_1_1(x, y, p, *, factor=1.0):
    r"""$$p \ge 2,\ x y > 0: \quad |x|^p - |y|^p - p\,\mathrm{sign}(y)|y|^{p-1}(x-y) \ge
    |x-y|^p\ (|x| \ge |y|),\quad (p-1)|x-y|^p\ (|x| < |y|)$$

    The smaller of the two at its end 0: then both are equalities.
    """
    value, size = expression_11(x, y, p)
    constant = factor * jnp.where(jnp.abs(x) >= jnp.abs(y), 1.0, p - 1)
    return Sides(constant * jnp.abs(x - y) ** p, value, magnitude=size)


@on_same_signs(
    "Lemma 13, proof, Sub-Case 1.2",
    sample=partial(same_sign, exponents=_BELOW),
    controls=[Control("1.05 times the minimum", factor=1.05)],
    proof_step=ProofStep("Lemma 13", 5),
)
def lemma_13_case_1_2(x, y, p, *, factor=1.0):
    r"""$$1 < p < 2,\ x y > 0,\ |x|, |y| \le 1,\ h = |x - y|: \quad
    |x|^p - |y|^p - p\,\mathrm{sign}(y)|y|^{p-1}(x-y) \ge
    1 - (1-h)^p - p h (1-h)^{p-1}\ (|x| \ge |y|),\quad (1-h)^p - 1 + p h\ (|x| < |y|)$$

    The larger of the two at its end 1: then both are equalities.
    """
    value, size = expression_11(x, y, p)
    h = jnp.abs(x - y)
    outward = 1 - (1 - h) ** p - p * h * (1 - h) ** (p - 1)
    least = jnp.where(jnp.abs(x) >= jnp.abs(y), outward, (1 - h) ** p - 1 + p * h)
    # h is known to one rounding, and near h = 1 the power p - 1 of 1 - h magnifies it.
    rounding = jnp.finfo(h.dtype).eps
    error = p * (p - 1) * h * jnp.maximum(1 - h, rounding) ** (p - 2) * rounding
    return Sides(factor * least, value, magnitude=size + 2 + p * h, error=error)


@identity(
    "Lemma 13, proof, Case 2",
    sample=partial(opposite_signs, exponents=_ABOVE + _BELOW),
    assumptions=[OPPOSITE],
    controls=[Control(r"$p|y|^p$ in place of $(p-1)|y|^p$", less=0.0)],
    proof_step=ProofStep("Lemma 13", 6),
)
def lemma_13_case_2(x, y, p, *, less=1.0):
    r"""$$x y < 0: \quad |x|^p - |y|^p - p\,\mathrm{sign}(y)|y|^{p-1}(x-y) =
    |x|^p + (p-1)|y|^p + p |y|^{p-1} |x|$$

    All terms are positive, so that nothing can cancel.
    """
    value, size = expression_11(x, y, p)
    small, large = jnp.abs(x), jnp.abs(y)
    simple = small**p + (p - less) * large**p + p * large ** (p - 1) * small
    return Sides(value, simple, magnitude=size)


@inequality(
    "Lemma 13, proof, Case 2",
    sample=partial(opposite_signs, exponents=_ABOVE + _BELOW),
    assumptions=[OPPOSITE],
    search_over=("x", "y"),
    project=partial(_inside, sign=-1.0),
    controls=[Control("1.2 times the left side", factor=1.2)],
    proof_step=ProofStep("Lemma 13", 7),
)
def lemma_13_case_2_bounds(x, y, p, *, factor=1.0):
    r"""$$x y < 0: \quad \max\{|x|, |y|\}^p \le |x|^p + (p-1)|y|^p + p|y|^{p-1}|x|\ (p \ge 2),\quad
    (p-1)^2 (x-y)^2 \le |x|^p + (p-1)|y|^p + p|y|^{p-1}|x|\ (1 < p < 2,\ |x|, |y| \le 1)$$

    One of $|x|$ and $|y|$ is at least $|x-y|/2$, which gives the constant $2^{-p}$ of the lemma.
    """
    small, large = jnp.abs(x), jnp.abs(y)
    value = small**p + (p - 1) * large**p + p * large ** (p - 1) * small
    square = (p - 1) ** 2 * jnp.square(small + large)
    left = jnp.where(p >= 2, jnp.maximum(small, large) ** p, square)
    return Sides(factor * left, value, magnitude=value)
