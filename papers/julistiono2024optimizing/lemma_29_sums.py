r"""Sums in the proofs of Lemmas 29 and 30, over sequences of norms that grow as Lemma 4 allows.

Our `x` is the paper's ||W(k)||_{p,p}, x_0 >= e, along rising sequences with
x_{k+1}^{p-1} - x_k^{p-1} <= c, whose summands are f(x_k) (x_{k+1}^{p-1} - x_k^{p-1}) with
f(x) = log x / x. The paper compares them with integrals up to unnamed constants. As f falls from e
on, a sum exceeds its integral by at most c f(x_0): every constant is explicit. The formulas of the
proof are lost; its sentences name the three cases, a split of the indices and levels of the norm.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, ProofStep, Sides, assume
from attlas.claims.statement import inequality

_CHAIN = "Lemmas 27-29"
_STEPS = 400


def norms(rng, count, exponents):
    """Sequences whose increments are constant, of one decade, or mostly zero with few jumps."""
    p = rng.uniform(*exponents, count) if len(exponents) == 2 else np.full(count, exponents[0])
    start = np.e + rng.exponential(size=count) * rng.choice([0.0, 1.0, 10.0], count)
    largest = 10 ** rng.uniform(-3, 2, count)
    constant, loguniform = np.ones((count, _STEPS)), 10 ** rng.uniform(-1, 0, (count, _STEPS))
    jumps = rng.random((count, _STEPS)) < 0.03
    kind = np.arange(count)[:, None] % 3
    increments = np.select([kind == 0, kind == 1], [constant, loguniform], jumps)
    return {"p": p, "start": start, "increments": largest[:, None] * increments}


def _sequence(p, start, increments):
    """Norms x_0 .. x_K, and the largest increment of their power p - 1."""
    power = start ** (p - 1) + jnp.concatenate([jnp.zeros(1), jnp.cumsum(increments)])
    return power ** (1 / (p - 1)), jnp.max(increments)


def _weight(x):
    return jnp.log(x) / x


def _sum(x, increments):
    return jnp.sum(_weight(x[:-1]) * increments)


def _integral(x, p):
    """The antiderivative of f(x) (p-1) x^{p-2} for p other than 2."""
    return (p - 1) * x ** (p - 2) * (jnp.log(x) / (p - 2) - 1 / (p - 2) ** 2)


on_norms = partial(
    inequality,
    search_over=("start", "increments"),
    project=lambda start, increments: {
        "start": jnp.maximum(start, jnp.e),
        "increments": jnp.abs(increments),
    },
    assumptions=[
        assume(
            r"$x_0 \ge e$ and the norms rise",
            lambda start, increments: (start >= jnp.e) & jnp.all(increments >= 0),
        )
    ],
)


@on_norms(
    "Lemma 29, proof, $p > 2$",
    sample=partial(norms, exponents=(2.1, 4.0)),
    controls=[Control("0.9 times the integral and its correction", factor=0.9)],
    proof_step=ProofStep(_CHAIN, 9),
)
def lemma_29_above_two(p, start, increments, *, factor=1.0):
    r"""$$p > 2: \quad \sum_{k<K} \frac{\log x_k}{x_k}\big(x_{k+1}^{p-1} - x_k^{p-1}\big) \le
    \frac{p-1}{p-2}\Big[x^{p-2}\Big(\log x - \frac1{p-2}\Big)\Big]_{x_0}^{x_K}
    + c\,\frac{\log x_0}{x_0} = O\big(x_K^{p-2} \log x_K\big)$$
    """
    x, c = _sequence(p, start, increments)
    bound = _integral(x[-1], p) - _integral(x[0], p) + c * _weight(x[0])
    size = jnp.abs(_integral(x[-1], p)) + jnp.abs(_integral(x[0], p))
    return Sides(_sum(x, increments), factor * bound, magnitude=_STEPS * size)


@on_norms(
    "Lemma 29, proof, $p = 2$",
    sample=partial(norms, exponents=(2.0,)),
    controls=[Control("0.9 times the integral and its correction", factor=0.9)],
    proof_step=ProofStep(_CHAIN, 10),
)
def lemma_29_at_two(p, start, increments, *, factor=1.0):
    r"""$$p = 2: \quad \sum_{k<K} \frac{\log x_k}{x_k}\big(x_{k+1} - x_k\big) \le
    \frac12\big((\log x_K)^2 - (\log x_0)^2\big) + c\,\frac{\log x_0}{x_0}
    = O\big((\log x_K)^2\big)$$
    """
    x, c = _sequence(p, start, increments)
    squares = jnp.square(jnp.log(x[-1])), jnp.square(jnp.log(x[0]))
    bound = (squares[0] - squares[1]) / 2 + c * _weight(x[0])
    return Sides(_sum(x, increments), factor * bound, magnitude=_STEPS * squares[0])


@on_norms(
    "Lemma 29, proof, $1 < p < 2$",
    sample=partial(norms, exponents=(1.1, 1.9)),
    controls=[Control("0.9 times the integral and its correction", factor=0.9)],
    proof_step=ProofStep(_CHAIN, 11),
)
def lemma_29_below_two(p, start, increments, *, factor=1.0):
    r"""$$1 < p < 2: \quad \sum_{k<K} \frac{\log x_k}{x_k}\big(x_{k+1}^{p-1} - x_k^{p-1}\big) \le
    \frac{p-1}{2-p}\,x_0^{p-2}\Big(\log x_0 + \frac1{2-p}\Big) + c\,\frac{\log x_0}{x_0} = O(1)$$

    The bound does not depend on $K$: the integral converges. It is nearly attained by few large
    increments, and by many small ones from a large $x_0$ on.
    """
    x, c = _sequence(p, start, increments)
    bound = -_integral(x[0], p) + c * _weight(x[0])
    return Sides(_sum(x, increments), factor * bound, magnitude=_STEPS * jnp.abs(bound))


def _long_steps(x):
    """Which norms double from one index to the next."""
    return x[1:] >= 2 * x[:-1]


@on_norms(
    "Lemma 29, proof, the indices of long steps",
    sample=partial(norms, exponents=(1.1, 1.9)),
    controls=[Control("a quarter of the sum over the powers of two", factor=0.25)],
    proof_step=ProofStep(_CHAIN, 12),
)
def lemma_29_long_steps(p, start, increments, *, factor=1.0):
    r"""$$1 < p < 2,\ I = \{k : x_{k+1} \ge 2 x_k\}: \quad
    \sum_{k \in I} \frac{\log x_k}{x_k}\big(x_{k+1}^{p-1} - x_k^{p-1}\big) \le
    c \sum_{j \ge 0} \frac{\log(2^j x_0)}{2^j x_0} = \frac{2c\,(\log x_0 + \log 2)}{x_0}$$

    The $j$-th index of $I$ has a norm of at least $2^j x_0$. The paper splits the indices into
    three sets whose definitions are lost; two are enough.
    """
    x, c = _sequence(p, start, increments)
    total = jnp.sum(jnp.where(_long_steps(x), _weight(x[:-1]) * increments, 0))
    bound = 2 * c * (jnp.log(x[0]) + jnp.log(2)) / x[0]
    return Sides(total, factor * bound, magnitude=_STEPS * bound)


@on_norms(
    "Lemma 29, proof, the other indices",
    sample=partial(norms, exponents=(1.1, 1.9)),
    controls=[Control("without the factor $2^{3-p}$ and half the rest", base=1.0, factor=0.5)],
    proof_step=ProofStep(_CHAIN, 13),
)
def lemma_29_short_steps(p, start, increments, *, base=2.0, factor=1.0):
    r"""$$1 < p < 2,\ K = \{k : x_{k+1} < 2 x_k\}: \quad
    \sum_{k \in K} \frac{\log x_k}{x_k}\big(x_{k+1}^{p-1} - x_k^{p-1}\big) \le
    2^{3-p} (p-1) \int_{x_0}^\infty x^{p-3} \log x\,dx = 2^{3-p}\,\frac{p-1}{2-p}\,
    x_0^{p-2}\Big(\log x_0 + \frac1{2-p}\Big)$$

    By Lemma 15, since $x^{p-3}$ falls by at most $2^{3-p}$ within such a step. For short steps the
    factor is lost: the sum is at most the integral and the first summand.
    """
    x, _ = _sequence(p, start, increments)
    total = jnp.sum(jnp.where(_long_steps(x), 0, _weight(x[:-1]) * increments))
    bound = -(base ** (3 - p)) * _integral(x[0], p)
    return Sides(total, factor * bound, magnitude=_STEPS * bound)


def level_counts(rng, count):
    """Sequences with x_{k+1}^{p-1} = x_k^{p-1} + c e^{-a x_k} from 1, and a level."""
    p, a = rng.uniform(1.1, 4.0, count), 10 ** rng.uniform(-2, 0.3, count)
    c = 10 ** rng.uniform(-2, 0, count)
    x, path = np.ones(count), []
    for _ in range(5 * _STEPS):
        path.append(x)
        x = (x ** (p - 1) + c * np.exp(-a * x)) ** (1 / (p - 1))
    x = np.stack(path, axis=1)
    # A level that the sequence has passed, or the last one that it reaches.
    level = np.maximum(np.floor(1 + (x[:, -1] - 1) * rng.random(count)), 1)
    return {"p": p, "a": a, "c": c, "x": x, "level": level}


@inequality(
    "Lemma 30, proof, the growth of the indices",
    sample=level_counts,
    search_over=("a", "c", "level"),
    project=lambda a, c, level: {"a": jnp.abs(a), "c": jnp.abs(c), "level": level},
    assumptions=[
        assume(
            r"$x_{k+1}^{p-1} \ge x_k^{p-1} + c\,e^{-a x_k}$",
            lambda x, p, a, c: jnp.all(_grows(x, p, a, c)),
        )
    ],
    controls=[Control(r"$e^{a i}$ in place of $e^{a(i+1)}$, half of it", ahead=0.0, factor=0.5)],
)
def lemma_30_growth_of_indices(x, p, a, c, level, *, ahead=1.0, factor=1.0):
    r"""$$x_{k+1}^{p-1} \ge x_k^{p-1} + c\,e^{-a x_k} \;\Rightarrow\; \#\{k : i \le x_k < i+1\} \le
    1 + \frac{(i+1)^{p-1} - i^{p-1}}{c}\,e^{a(i+1)}$$

    Summed over levels: the first index from which the norm is at least $i$ is at most of order
    $e^{a i}$ up to a power of $i$, hence $\|W(k)\|_{p,p} = \Omega(\log k)$.
    """
    inside = jnp.sum((x >= level) & (x < level + 1))
    rise = (level + 1) ** (p - 1) - level ** (p - 1)
    return Sides(1.0 * inside, 1 + factor * rise * jnp.exp(a * (level + ahead)) / c)


def _grows(x, p, a, c):
    """Whether each step adds what the recursion demands, up to rounding of the powers."""
    low, high = x[:-1] ** (p - 1), x[1:] ** (p - 1)
    slack = 64 * jnp.finfo(x.dtype).eps * high
    return high - low >= c * jnp.exp(-a * x[:-1]) - slack
