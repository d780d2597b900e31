r"""Theorem 6.6 is vacuous at every sample size: 1 / (lambda sqrt n) where Gamma is not.

In a fixed dimension the smallest eigenvalue of n samples falls faster than any power of n, as n
inputs have a direction that no monomial of low degree sees. Proof: docs/proofs/gu2024_diffusion.md.
"""

import math

import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.gu2024_score import (
    gu2024_complexity,
    gu2024_log_smallest_eigenvalue,
)
from attlas.core.claim import Control, Kind, Sides, Status
from attlas.core.statement import computed

_LARGEST = 12.0


@computed(
    Kind.INEQUALITY,
    "Assumption 6.2, how small the eigenvalue is",
    status=Status.NEW,
    count=96,
    not_attacked="eigenvalues of drawn inputs; equality needs a direction of equal entries",
    controls=[Control("without $n$, a hundredth of it", share=0.01), Control("$q+1$", more=1)],
    roundings=2**10,
)
def smallest_eigenvalue_falls(rng, count, *, share=1.0, more=0):
    r"""$$\lambda_{\min}\big[\langle x_i,x_j\rangle e^{\sigma^2\langle x_i,x_j\rangle}\big]\le
    n\sum_{j\ge q}\frac{\sigma^{2(j-1)}}{(j-1)!},\quad \binom{d+q-1}d\le n$$

    Inputs on the unit sphere, on the line and in the plane; where $n=2$ and $d=1$ with opposite
    inputs the direction has equal entries.
    """
    left, right, size = np.zeros((3, count))
    for e in range(count):
        d, sigma = 1 + e % 2, 10 ** rng.uniform(-0.7, 0.4)
        n = int(rng.integers(1, 9 if d == 2 else 3))
        X = rng.normal(size=(n, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        if d == 1 and n == 2:
            X[1] = -X[0] * (1 if e % 4 else -1)
        inner = X @ X.T
        left[e] = np.linalg.eigvalsh(inner * np.exp(sigma**2 * inner))[0]
        whole = gu2024_log_smallest_eigenvalue(n, d, sigma)
        if more:
            # The next power's tail: what one degree more would give.
            q = next(q for q in range(1, 99) if math.comb(d + q, d) - 1 >= n) + more
            terms = [sigma ** (2 * j - 2) / math.factorial(j - 1) for j in range(q, q + 60)]
            whole = math.log(n * sum(terms))
        right[e], size[e] = share * math.exp(whole), n * math.exp(sigma**2)
    return Sides(*map(jnp.asarray, (left, right)), magnitude=jnp.asarray(size))


def settings(rng, count):
    """Samples up to 10^12; dimensions 2 to 6 at sigma up to 3, to 8 at sigma up to 2."""
    d = rng.integers(2, 9, count)
    sigma = rng.uniform(0.1, 1, count) * np.where(d > 6, 2, 3)
    n = np.floor(10 ** rng.uniform(0.5, _LARGEST, count))
    return n, d, sigma


@computed(
    Kind.INEQUALITY,
    "Theorem 6.6, no sample size at which it is non-vacuous",
    status=Status.NEW,
    count=160,
    not_attacked="closed forms of whole numbers",
    controls=[
        Control(r"$\Gamma$ alone", terms="complexity"),
        Control(r"$1/(\lambda\sqrt n)$ alone", terms="coupling"),
    ],
)
def theorem_6_6_never(rng, count, *, terms="both"):
    r"""$$\log\max\{\frac1{\lambda\sqrt n},\,\Gamma_\delta\}\ge0\qquad
    (3\le n\le10^{12},\ 2\le d\le8,\ \sigma\le2;\ d\le6,\ \sigma\le3)$$

    With $\lambda$ at most its bound for inputs in the unit ball and the hidden constants 1: the
    zero function obeys the theorem at every size, as its error is at most 1. Below about $10^5$
    samples the statistical term is above 1 for $d=2$, from a few dozen on the coupling term is;
    for any hidden constant it grows faster than any power of $n$.
    """
    n, d, sigma = settings(rng, count)
    coupling = np.zeros(count)
    for e in range(count):
        least = gu2024_log_smallest_eigenvalue(int(n[e]), int(d[e]), float(sigma[e]))
        coupling[e] = -least - math.log(n[e]) / 2
    # delta = 1 makes Gamma smallest; it is in (0, 1).
    rows = zip(n.tolist(), d.tolist(), strict=True)
    complexity = np.log([float(gu2024_complexity(m, 1.0 * k, 1.0)) for m, k in rows])
    right = {"coupling": coupling, "complexity": complexity}
    both = np.maximum(coupling, complexity)
    return np.zeros(count), right.get(terms, both)
