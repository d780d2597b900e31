r"""(A2) and (A4): attention is concentrated, of rows that sum to one.

p = 9 weights, softmax rows from nearly uniform to nearly one-hot. Everything is compared for all
numbers s of largest weights at once.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity, inequality
from attlas.measures.attention.concentration import concentration

_P = 9


def rows(rng, count):
    """Rows of logits, whose spreads span six decades, and for each a factor r >= 1, often 1."""
    spread = six_decades(rng, count, -1.5, 1)
    logits = spread[:, None] * rng.standard_normal((count, _P))
    r = rng.uniform(1, 5, count)
    r[::4] = 1.0
    return {"logits": logits, "r": r}


def falling(logits, r=1.0):
    """Weights softmax(r z) in falling order."""
    ordered = jnp.sort(logits)[::-1]
    return jax.nn.softmax(r * (ordered - ordered[0]))


# A weight falls faster than the rounding of its logit grows; then sums of p terms.
of_rows = partial(inequality, sample=rows, count=48, roundings=256)


@of_rows(
    "(A2) and (A4), for softmax",
    status=Status.NEW,
    search_over="logits",
    controls=[Control("uniform attention", uniform=True)],
)
def assumption_a2(logits, *, uniform=False):
    r"""$$a = \mathrm{softmax}(z),\ \Delta = z_{(s)} - z_{(s+1)}: \quad
    \frac{\|a_{(1..s)}\|_2}{\|a\|_2} \ge
    \left( 1 + \tfrac{p-s}{s} e^{-2\Delta} \right)^{-1/2}, \quad
    \sum_{i \le s} a_{(i)} \ge \left( 1 + \tfrac{p-s}{s} e^{-\Delta} \right)^{-1}$$

    When softmax does 'naturally' satisfy (A2): if the $s_0$-th logit leads the next by $\Delta$.
    Attained by two levels of logits. At $p = 130$, $s_0 = 11$ and $\tau = 0.1$ a lead of 1.92 is
    enough; without a lead nothing is gained over uniform attention.
    """
    z, s = jnp.sort(logits)[::-1], jnp.arange(1.0, _P)
    a = jnp.full(_P, 1 / _P) if uniform else jax.nn.softmax(z)
    lead, others = jnp.exp(z[1:] - z[:-1]), (_P - s) / s
    left = jnp.stack([1 / (1 + others * lead), 1 / jnp.sqrt(1 + others * lead**2)])
    shares, squares = jnp.cumsum(a)[:-1], jnp.cumsum(a**2)[:-1] / jnp.sum(a**2)
    return left, jnp.stack([shares, jnp.sqrt(squares)])


@of_rows(
    "(A2), for every attention",
    status=Status.NEW,
    search_over="logits",
    controls=[
        Control("the $s$ smallest weights", smallest=True),
        Control("0.9 of the norm", share=0.9),
    ],
)
def assumption_a2_trivial(logits, *, smallest=False, share=1.0):
    r"""$$\|f_{(1..s)}\|_2 \ge \sqrt{s/p}\, \|f\|_2 \quad (1 \le s < p)$$

    'There exist $0 < s_0 < p$ and $0 < \tau < 1$' holds for all weights, uniform ones too:
    $s_0 = 1$ and $\tau = 1 - 1/\sqrt{p}$. (A2) names $s_0$ and $\tau$ and restricts nothing. The
    top 11 of 130 uniform weights have the relative $\ell_2$ norm 0.29.
    """
    a = falling(logits)
    squares = jnp.cumsum((a[::-1] if smallest else a) ** 2) / jnp.sum(a**2)
    return jnp.sqrt(jnp.arange(1.0, _P) / _P), share * jnp.sqrt(squares[:-1])


@of_rows(
    "Experiment 1, what an l2 norm of 0.909 means",
    status=Status.NEW,
    alike=True,
    search_over="logits",
    controls=[Control("rows scaled to length one, as in model (3)", unit=True)],
)
def largest_weight(logits, *, unit=False):
    r"""$$a \ge 0,\ \sum_i a_i = 1: \quad \max_i a_i \ge \|a_{(1..s)}\|_2^2 \quad (1 \le s \le p)$$

    If 0.909 is the plain $\ell_2$ norm of softmax weights, one weight holds at least 0.826 of the
    row: the top $\sqrt{p}$ are then little more than one word. Equality at $m \le s$ equal weights
    $1/m$.
    """
    a = falling(logits)
    a = a / jnp.sqrt(jnp.sum(a**2)) if unit else a
    return jnp.cumsum(a**2), a[0]


@of_rows(
    "Experiment 1, l2 norm against share",
    status=Status.NEW,
    search_over="logits",
    controls=[Control("the norm of the row left out", relative=False)],
)
def share_below_norm(logits, *, relative=True):
    r"""$$a \ge 0,\ \sum_i a_i = 1: \quad
    \sum_{i \le s} a_{(i)} \le \frac{\|a_{(1..s)}\|_2^2}{\|a\|_2^2} \quad (1 \le s \le p)$$

    'The top $\sqrt{p}$ contribute to 90.9 % of attention weights' is an $\ell_2$ norm. If it is
    relative to the row, the share of the attention is at most 82.6 % and may be much less. Equality
    at uniform rows.
    """
    a = falling(logits)
    squares = jnp.cumsum(a**2)
    return jnp.cumsum(a), squares / jnp.sum(a**2) if relative else squares


@of_rows(
    "Section 5, 'the smaller the temperature, more concentrated'",
    search_over=("logits", "r"),
    project=lambda r: {"r": jnp.clip(r, 1.0, 5.0)},
    controls=[
        Control("each large weight alone", alone=True),
        Control("$r \\ge 0.9$", least=0.9),
    ],
)
def temperature(logits, r, *, alone=False, least=1.0):
    r"""$$a = \mathrm{softmax}(z),\ b = \mathrm{softmax}(rz),\ r \ge 1: \quad
    \sum_{i \le s} a_{(i)} \le \sum_{i \le s} b_{(i)}, \quad
    \frac{\|a_{(1..s)}\|_2}{\|a\|_2} \le \frac{\|b_{(1..s)}\|_2}{\|b\|_2}, \quad
    \|a_{(1..s)}\|_2 \le \|b_{(1..s)}\|_2, \quad H(b) \le H(a)$$

    For every $s$: the colder row majorises, so $s_0$ falls for every $\tau$ and every norm. The
    control: by section 6 a factor of 5 'retains all large weights', which only the largest is sure
    of; $(0.5, 0.4, 0.1)$ becomes $(0.753, 0.247, 0.000)$.
    """
    largest_entropy = jnp.log(float(_P))

    def grows(a):
        """Statistics that may only grow as the temperature falls."""
        squares = jnp.cumsum(a**2)
        lack = jnp.sum(a * jnp.log(jnp.maximum(a, jnp.finfo(a.dtype).tiny))) + largest_entropy
        tops = (a if alone else jnp.cumsum(a))[:-1]
        return jnp.concatenate([tops, squares[:-1] / squares[-1], squares, lack[None]])

    left, right = grows(falling(logits)), grows(falling(logits, least * r))
    return Sides(left, right, jnp.full_like(left, largest_entropy))


_TAUS = (0.01, 0.1, 0.5)
_NORMS = ("l2", "raw l2", "l1")


def measured(rng, count):
    """Rows, the library's smallest s_0 for three levels and norms, and its other statistics.

    Every fourth row is ten times colder: in the print's norm only rows of one large weight reach
    the highest level.
    """
    logits = rows(rng, count)["logits"]
    logits[::4] *= 10
    a = np.exp(logits - logits.max(axis=1, keepdims=True))
    a /= a.sum(axis=1, keepdims=True)
    by_norm = [concentration(a, taus=_TAUS, norm=norm) for norm in _NORMS]
    first = by_norm[0]
    names = ("top_norm", "relative_top_norm", "top_share", "effective_support", "participation")
    s0 = np.stack([statistics.s0 for statistics in by_norm], axis=1).astype(float)
    return {"a": a, "s0": s0, "statistics": np.stack([getattr(first, k) for k in names], axis=1)}


@identity(
    "(A2), (A4) and experiment 1, what is measured",
    Source.FOUND,
    sample=measured,
    status=Status.RECONSTRUCTED,
    count=48,
    controls=[
        Control("one weight fewer", fewer=1),
        Control("squared norms", power=2),
        Control("the largest weight left out of entropy and participation", skip=1),
        Control("all weights where no $s$ reaches the level", unreached=_P),
    ],
)
def experiment_1_statistics(a, s0, statistics, *, fewer=0, power=1, skip=0, unreached=0):
    r"""$$s_0 = \min \{ s : \|a_{(1..s)}\| \ge (1 - \tau) \|a\| \}, \quad
    \|a_{(1..\lfloor \sqrt{p} \rfloor)}\|_2, \quad \frac{\|a_{(1..\lfloor \sqrt{p}
    \rfloor)}\|_2}{\|a\|_2}, \quad \sum_{i \le \lfloor \sqrt{p} \rfloor} a_{(i)}, \quad e^{H(a)},
    \quad \frac{1}{\|a\|_2^2}$$

    For $\tau = 0.01$, 0.1 and 0.5, in the $\ell_2$ norm, the print's $\|a_{(1..s)}\|_2 \ge
    1 - \tau$ (0 where no $s$ reaches it), and the $\ell_1$ norm.
    """
    ordered, tau = -jnp.sort(-a), jnp.asarray(_TAUS)
    squares, shares = jnp.sqrt(jnp.cumsum(ordered**2)), jnp.cumsum(ordered)
    sizes = []
    for norms, total in ((squares, squares[-1]), (squares, 1.0), (shares, shares[-1])):
        enough = norms[None, :] ** power >= (1 - tau[:, None]) * total**power * (1 - 1e-13)
        reached = 1 + jnp.argmax(enough, axis=1).astype(float) - fewer
        sizes.append(jnp.where(jnp.any(enough, axis=1), reached, float(unreached)))
    k = math.isqrt(_P) - 1 - fewer
    after_skip = ordered[skip:]
    entropy = -jnp.sum(
        jnp.where(
            after_skip > 0, after_skip * jnp.log(jnp.where(after_skip > 0, after_skip, 1.0)), 0.0
        )
    )
    norm, total = squares[k] ** power, squares[-1] ** power
    # Nothing is left of a one-hot row without its largest weight.
    left_over, tiny = jnp.sum(after_skip**2), jnp.finfo(a.dtype).tiny
    others = jnp.stack(
        [norm, norm / total, shares[k], jnp.exp(entropy), 1 / jnp.maximum(left_over, tiny)]
    )
    right = jnp.concatenate([jnp.stack(sizes).reshape(-1), others])
    return Sides(jnp.concatenate([s0.reshape(-1), statistics]), right, 1 + right)
