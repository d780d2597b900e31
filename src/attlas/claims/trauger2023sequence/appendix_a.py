r"""Appendix A: covers of maps from covers of their rows.

D = W - centre has the rows D_j, X the inputs, epsilon bounds the distance of every row. The rows
of the covered instances are covered by the perceptron of
`attlas.bounds.covering.edelman2022_cover`.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.edelman2022_cover import perceptron_cover
from attlas.bounds.covering.trauger2023_cover import trauger2023_mapping_entropy
from attlas.core.claim import Control, Source, Status
from attlas.core.statement import inequality

_ROWS, _COLUMNS, _POINTS = 4, 3, 6
_ROUNDINGS = 256
"""Up to 60 updates of a centre, products of 3 terms and sums of 4."""
_EXPONENTS = (1.0, 2.0, 4.0)


def covered(rng, count):
    """Rows covered on six points, a third of the matrices with equal rows; the updates counted."""
    b, B_x = 10 ** rng.uniform(-2, 2, (2, count))
    ratio = rng.uniform(0.8, 6, count)
    # the first input is along the first row: one update of the right length does, two would be
    # more than 1.405^2
    ratio[::5] = 1.405
    epsilon = b * B_x / ratio
    W = rng.normal(size=(count, _ROWS, _COLUMNS))
    W[::3] = W[::3, :1]
    W *= b[:, None, None] / np.linalg.norm(W, axis=2, keepdims=True)
    X = rng.normal(size=(count, _POINTS, _COLUMNS))
    X *= B_x[:, None, None] / np.linalg.norm(X, axis=2, keepdims=True)
    # The first input lies along the first row: the distance of that row is large there.
    X[:, 0] = W[:, 0] * (B_x / b)[:, None]
    centre, updates = np.zeros_like(W), np.zeros((count, _ROWS))
    for i in range(count):
        for j in range(_ROWS):
            found = perceptron_cover(W[i, j], X[i], float(epsilon[i]))
            centre[i, j], updates[i, j] = found
    drawn = {"D": W - centre, "X": X, "updates": updates}
    return drawn | {"b": b, "B_x": B_x, "epsilon": epsilon}


on_covered_rows = partial(inequality, sample=covered, count=48, roundings=_ROUNDINGS)


@on_covered_rows(
    "Appendix A",
    Source.FOUND,
    search_over=("D", "X"),
    controls=[
        Control(r"$\epsilon$ without $k^{1/q}$", rooted=False),
        Control("$C$ in place of $k C$", rows=1),
    ],
)
def appendix_a(D, X, updates, b, B_x, epsilon, *, rooted=True, rows=_ROWS):
    r"""$$|(W_j-\hat W_j) x_t| \le \epsilon\ (j \in [k]) \Rightarrow
    \|(W-\hat W) x_t\|_q \le k^{1/q} \epsilon, \quad
    \log N_\infty(\mathcal{F}, k^{1/q} \epsilon, N, \|\cdot\|_q) \le k\,C$$

    $q = 1$, 2 and 4; equality where all rows are equal. The cover of the maps is the product of
    those of the rows, so that the logs of their sizes add up. The print lacks absolute values
    under the power $q$.
    """
    gaps = jnp.abs(D @ X.T)
    ratio = gaps / jnp.max(gaps)
    left = jnp.stack([jnp.max(jnp.sum(ratio**q, axis=0) ** (1 / q)) for q in _EXPONENTS])
    right = jnp.asarray([_ROWS ** (1 / q) if rooted else 1.0 for q in _EXPONENTS])
    # the names of the rows' centres together, in units of one choice, against k C
    size = trauger2023_mapping_entropy((b * B_x / epsilon) ** 2, rows)
    return jnp.append(left, jnp.sum(updates)), jnp.append(right, size)


@on_covered_rows(
    "Appendix A, a cover of one row",
    status=Status.NEW,
    controls=[
        Control("an eighth of the updates", factor=0.125),
        Control("half of the distance", distance=0.5),
    ],
)
def appendix_a_rows(D, X, updates, b, B_x, epsilon, *, factor=1.0, distance=1.0):
    r"""$$\|w\|_2 \le B_w,\ \|x_t\|_2 \le B_x: \quad
    \text{fewer than } \frac{B_w^2 B_x^2}{\epsilon^2} \text{ updates reach }
    \max_t |(w-u)^\top x_t| \le \epsilon$$

    The scalar cover that Appendix A starts from, made explicit: $2 N + 1$ choices per update give
    $C = B_w^2 B_x^2 \ln(2 N + 1) / \epsilon^2$. Updates of 0.4 of the length are noticed.
    """
    gaps = jnp.max(jnp.abs(D @ X.T), axis=1) / epsilon
    allowed = factor * (b * B_x / epsilon) ** 2
    one = jnp.ones_like(gaps)
    return jnp.concatenate([gaps, updates]), jnp.concatenate([distance * one, allowed * one])
