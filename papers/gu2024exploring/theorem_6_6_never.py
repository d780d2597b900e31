r"""Theorem 6.6 is vacuous at every sample size: 1 / (lambda sqrt n) where Gamma is not.

In a fixed dimension the smallest eigenvalue of n samples falls faster than any power of n, as n
inputs have a direction that no monomial of low degree sees. Proof:
papers/gu2024exploring/proofs/diffusion.md.
"""

import math

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.statement import computed
from gu2024exploring.library.bounds.gu2024_score import (
    gu2024_complexity,
    gu2024_log_smallest_eigenvalue,
)

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
        log_bound = gu2024_log_smallest_eigenvalue(n, d, sigma)
        if more:
            # The next power's tail: what one degree more would give.
            q = next(q for q in range(1, 99) if math.comb(d + q, d) - 1 >= n) + more
            terms = [sigma ** (2 * j - 2) / math.factorial(j - 1) for j in range(q, q + 60)]
            log_bound = math.log(n * sum(terms))
        right[e], size[e] = share * math.exp(log_bound), n * math.exp(sigma**2)
    return Sides(*map(jnp.asarray, (left, right)), magnitude=jnp.asarray(size))


_DEVIATION = {d: 3.0 if d < 7 else 2.0 for d in range(2, 9)}
"""Largest sigma of each dimension."""
_LEAST = {2: 42.5, 3: 34.9, 4: 17.1, 5: 6.32, 6: 1.97, 7: 8.01, 8: 3.27}
"""Least value of the two terms over all sizes, rounded down."""
_WHERE = {2: 629, 3: 9879, 4: 123409, 5: 1370753, 6: 13983815, 7: 5379615, 8: 30260339}
"""The size at which it is."""


def settings(rng, count):
    """Samples up to 10^12; in every fourth case the size and deviation that come nearest."""
    d = rng.integers(2, 9, count)
    sigma = rng.uniform(0.1, 1, count) * np.array([_DEVIATION[int(k)] for k in d])
    n = np.floor(10 ** rng.uniform(0.5, _LARGEST, count))
    for e in range(0, count, 4):
        sigma[e], n[e] = _DEVIATION[int(d[e])], _WHERE[int(d[e])]
    return n, d, sigma


@computed(
    Kind.INEQUALITY,
    "Theorem 6.6, no sample size at which it is non-vacuous",
    status=Status.NEW,
    count=160,
    not_attacked="closed forms of whole numbers; the least value over all of them is an instance",
    controls=[
        Control(r"$\Gamma$ alone", terms="complexity"),
        Control(r"$1/(\lambda\sqrt n)$ alone", terms="coupling"),
        Control("2 % more than the least value", least=1.02),
    ],
)
def theorem_6_6_never(rng, count, *, terms="both", least=1.0):
    r"""$$\max\{\frac1{\lambda\sqrt n},\,\Gamma_\delta\}\ge c_d,\quad
    c_2,\dots,c_8=42.5,\,34.9,\,17.1,\,6.32,\,1.97,\,8.01,\,3.27\qquad(3\le n\le10^{12})$$

    $\sigma\le3$ for $d\le6$ and $\sigma\le2$ for $d=7,8$. With $\lambda$ at most its bound for
    inputs in the unit ball and the hidden constants 1, or any down to $1/c_d$: the
    zero function obeys the theorem at every size, as its error is at most 1. Below about $10^5$
    samples the statistical term is above 1 for $d=2$, from a few dozen at $\sigma=1$ and 530 at
    $\sigma=3$ on the coupling term is;
    for any hidden constant it grows faster than any power of $n$. Each $c_d$ is attained, at the
    largest $\sigma$ and $n=\binom{d+q}d-1$.
    """
    n, d, sigma = settings(rng, count)
    coupling = np.zeros(count)
    for e in range(count):
        below = gu2024_log_smallest_eigenvalue(int(n[e]), int(d[e]), float(sigma[e]))
        coupling[e] = -below - math.log(n[e]) / 2
    # delta = 1 makes Gamma smallest; it is in (0, 1).
    rows = zip(n.tolist(), d.tolist(), strict=True)
    complexity = np.log([float(gu2024_complexity(m, 1.0 * k, 1.0)) for m, k in rows])
    right = {"coupling": coupling, "complexity": complexity}
    larger = np.maximum(coupling, complexity)
    # in logarithms, above 0 on both sides
    floor = np.log([least * _LEAST[int(k)] for k in d])
    return floor, right.get(terms, larger)
