r"""Theorem 6.6 (score estimation) with its assumptions, on the runs of `score_runs`.

Assumptions: 6.1 inputs and labels of norm at most 1; 6.2 lambda > 0 (our reading, the formula is
lost); 6.3 g bounded; 6.4 f_* Lipschitz in x; 6.5 early stopping errs by epsilon at most, read
here as the measured Z_3 of Claim G.1.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.gu2024_convergence import gu2024_width_log10
from attlas.claims.claim import Control, Expectation, Source, Status, assume
from attlas.claims.statement import inequality
from attlas.claims.verdict import Outcome
from gu2024exploring.claim_g_1 import distance
from gu2024exploring.library.bounds.gu2024_score import gu2024_complexity, gu2024_score_error
from gu2024exploring.score_runs import COUNT, large_ball, score_runs
from gu2024exploring.trajectories import SLOW

_DELTA = 0.1


def _normalised(X, Y):
    squares = jnp.sum(X**2, axis=1), jnp.sum(Y**2, axis=1)
    slack = 1 + 16 * jnp.finfo(X.dtype).eps  # lengths were divided by the largest
    return jnp.max(jnp.stack(squares)) <= slack


def _bounded_rate(start, end):
    ends = jnp.stack((start, end))
    return jnp.all(jnp.isfinite(ends) & (ends > 0))


def _as_wide_as_printed(n, d, m, sigma, lam):
    """At C = 1, with the third power of n d."""
    printed = gu2024_width_log10(n, d, lam, _DELTA, sigma, C=1.0, power=3, constants="printed")
    return printed <= jnp.log10(m)


_ASSUMPTIONS = (
    assume("6.1: training inputs and labels of norm at most 1", _normalised),
    assume(r"6.2: $\lambda > 0$", lambda lam: lam > 0),
    assume("6.3: $g$ positive and bounded, being linear on $[0, T]$", _bounded_rate),
    assume(
        "6.4: the measured slope of $f_*$ in $x$ is finite",
        lambda lipschitz: jnp.isfinite(lipschitz),
    ),
    assume(
        "6.5: the early stopping error is finite",
        lambda mass, pseudo, ball: jnp.isfinite(distance(mass, pseudo, ball)),
    ),
)
# Sums over 96 test points and four outputs, a handful of powers and logarithms.
on_score_runs = partial(
    inequality,
    source=Source.RECALLED,
    sample=score_runs,
    not_attacked=SLOW,
    count=COUNT,
    roundings=512,
)


def _error_and_bound(mass, F, pseudo, ball, truth, n, d, lam, R_H, alone):
    """The error, and the sum of the terms or the early stopping term alone."""
    early = distance(mass, pseudo, ball)
    terms = gu2024_score_error(n, d, lam, _DELTA, large_ball(R_H, d), early)
    total = jnp.sum(jnp.stack(list(terms.values())))
    return distance(mass, F, truth), terms["early_stopping"] if alone else total


@on_score_runs(
    "Theorem 6.6, as recalled",
    assumptions=[
        *_ASSUMPTIONS,
        assume("$m$ is at least the recalled width, constants 1", _as_wide_as_printed),
    ],
    expect=Expectation(
        Outcome.NOT_APPLICABLE,
        "with all hidden constants 1 the width is $10^{15}$ and more on the drawn runs",
    ),
    controls=[Control("the early stopping term alone, any width", sample=score_runs, alone=True)],
)
def theorem_6_6(mass, F, pseudo, ball, truth, n, d, lam, R_H, *, alone=False):
    r"""$$m \ge \lambda^{-2} n^3 d^3 e^{18B} \log^2 (nd/\delta) \;\Rightarrow\;
    \mathbb{E} \|F_{W(\hat T)} - f_*\|^2 \le \frac{1}{\lambda \sqrt n} + \epsilon(n, \hat T)
    + d A^2 + d A + \sqrt{d A \Gamma_\delta} + \Gamma_\delta$$

    On 288 runs, with $\lambda$ from $10^{-11}$ to $0.3$, $\sigma$ from 0.1 to 3 and $C = 1$, the
    width is $10^{15}$ to $10^{69}$, in the median $10^{28}$; with $C = 10$ it is $10^{27}$ to
    $10^{540}$. Assumption 6.2 could not be read.
    """
    return _error_and_bound(mass, F, pseudo, ball, truth, n, d, lam, R_H, alone)


@on_score_runs(
    "Theorem 6.6 with measured terms, at widths of 128 to 512",
    assumptions=_ASSUMPTIONS,
    controls=[Control("the early stopping term alone", alone=True)],
)
def theorem_6_6_any_width(mass, F, pseudo, ball, truth, n, d, lam, R_H, *, alone=False):
    r"""$$128 \le m \le 512: \quad
    \mathbb{E} \|F_{W(\hat T)} - f_*\|^2 \le \frac{1}{\lambda \sqrt n} + \epsilon(n, \hat T)
    + d A^2 + d A + \sqrt{d A \Gamma_\delta} + \Gamma_\delta$$

    Supported because it is vacuous: medians 960 for $1/(\lambda \sqrt n)$, 275 for $\Gamma$, 14,
    0.8 and 0.3 for the terms with $A$, 0.19 for early stopping, against an error of 0.15, over 5 to
    16 samples in two or four dimensions; the zero function, with 0.23, obeys it as well. No mutant
    that keeps one of the two large terms could be noticed. Hidden constants 1, $A$ at the measured
    $R_H$, or where it begins to fall.
    """
    return _error_and_bound(mass, F, pseudo, ball, truth, n, d, lam, R_H, alone)


def sample_sizes(rng, count, largest=5.0, d=8):
    """Sample sizes up to 10^largest, dimensions from 2 to d."""
    n = np.floor(10 ** rng.uniform(largest - 3, largest, count))
    dims = rng.integers(2, d + 1, count).astype(float)
    return {"n": n, "d": dims, "delta": 10 ** rng.uniform(-3, -0.5, count)}


@inequality(
    r"Theorem 6.6, the term $\Gamma$",
    status=Status.NEW,
    sample=sample_sizes,
    search_over=("n", "d", "delta"),
    project=lambda n, d, delta: {
        "n": jnp.clip(n, 100, 1e5),
        "d": jnp.clip(d, 2, 8),
        "delta": jnp.clip(delta, 1e-3, 0.9),
    },
    controls=[
        Control("$n$ above $10^6$ in the plane", sample=partial(sample_sizes, largest=9.0, d=2))
    ],
)
def theorem_6_6_vacuous(n, d, delta):
    r"""$$1 \le \Gamma_\delta,\quad 100 \le n \le 10^5,\ d \ge 2$$

    Labels of norm at most 1 make the error of the zero function at most 1, so that the bound is
    vacuous while $\Gamma > 1$: for $d = 2$ up to $n = 1.3 \cdot 10^5$, growing like
    $d^4 \log^3 n$. This hinges on the inside $e(n+1)$ of the logarithm, which is recalled: with 1
    in place of the logarithm it would be $n = 100$ for $d = 2$ and 17,000 for $d = 8$.
    """
    return jnp.ones_like(n), gu2024_complexity(n, d, delta)
