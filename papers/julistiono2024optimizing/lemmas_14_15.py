r"""Lemmas 14 and 15: scalar differences of powers for x >= y >= 0."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, assume
from attlas.claims.statement import inequality
from julistiono2024optimizing.instances import EXPONENTS


def pairs(rng, count):
    """Exponential pairs, a third of them close together, where both ends are tight."""
    y, gap = rng.exponential(size=(2, count))
    gap = np.where(np.arange(count) % 3 == 0, gap / 100, gap)
    return {"x": y + gap, "y": y, "p": rng.choice(EXPONENTS, size=count)}


def ordered(x, y):
    """The sizes of a moved pair, in order."""
    first, second = jnp.abs(x), jnp.abs(y)
    return {"x": jnp.maximum(first, second), "y": jnp.minimum(first, second)}


on_pairs = partial(inequality, sample=pairs, search_over=("x", "y"), project=ordered)
ORDER = assume(r"$x \ge y \ge 0$", lambda x, y: (x >= y) & (y >= 0))
POSITIVE = assume("$y > 0$, as $y^{p-2}$ needs for $p < 2$", lambda y: y > 0)


@on_pairs(
    "Lemma 14",
    assumptions=[ORDER],
    controls=[
        Control("$p$ and $p - 1$ exchanged", exchanged=True),
        Control("the factors $y$ and $x$ exchanged", crossed=True),
        Control("1.1 times each left side", factor=1.1),
    ],
)
def lemma_14(x, y, p, *, exchanged=False, crossed=False, factor=1.0):
    r"""$$x \ge y \ge 0: \quad \frac{p}{p-1} y (x^{p-1} - y^{p-1}) \le x^p - y^p
    \le \frac{p}{p-1} x (x^{p-1} - y^{p-1})$$

    Both ends are tight as $x - y$ becomes small.
    """
    ratio = (p - 1) / p if exchanged else p / (p - 1)
    middle, step = x**p - y**p, x ** (p - 1) - y ** (p - 1)
    magnitude = x**p + y**p + ratio * x * (x ** (p - 1) + y ** (p - 1))
    low, high = (x, y) if crossed else (y, x)
    left, right = jnp.stack([ratio * low * step, middle]), jnp.stack([middle, ratio * high * step])
    return Sides(factor * left, right, magnitude=magnitude)


@on_pairs(
    "Lemma 15",
    assumptions=[ORDER, POSITIVE],
    controls=[
        Control("the regimes of $p$ exchanged", exchanged=True),
        Control("1.1 times each left side", factor=1.1),
    ],
)
def lemma_15(x, y, p, *, exchanged=False, factor=1.0):
    r"""$$x \ge y \ge 0: \quad
    (p-1) y^{p-2} (x-y) \le x^{p-1} - y^{p-1} \le (p-1) x^{p-2} (x-y)
    \ (p \ge 2), \quad \text{reversed for } 1 < p < 2$$

    Equalities at $p = 2$, and as $x - y$ becomes small.
    """
    small, large = jnp.where((p >= 2) ^ exchanged, jnp.stack([y, x]), jnp.stack([x, y]))
    step = x ** (p - 1) - y ** (p - 1)
    low, high = ((p - 1) * base ** (p - 2) * (x - y) for base in (small, large))
    magnitude = x ** (p - 1) + y ** (p - 1) + jnp.stack([low, high])
    left, right = jnp.stack([low, step]), jnp.stack([step, high])
    return Sides(factor * left, right, magnitude=magnitude)
