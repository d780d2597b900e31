r"""Lemma 3.2: inputs of the l_1 ball are covered on the scaled basis vectors alone.

W holds a finite class of matrices, x one input, B the bound on its l_1 norm, `points` sets of
inputs, of which the first begins with B e_1, ..., B e_d. A cover is a subset of the class; the
smallest is found by trying all subsets. Section 2.4 allows any q > 0; for q < 1 the lemma is false.
"""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Kind, Source
from attlas.claims.sampling import six_decades
from attlas.claims.statement import erratum, identity, inequality

_ROWS, _COLUMNS, _CLASS, _POINTS, _SETS = 2, 3, 5, 9, 8
# Inner products of 4 terms, powers, and sums of 3: the default of 64 roundings.


def differences(rng, count):
    """Differences of two matrices and inputs inside, on the faces and at the vertices."""
    B = 10 ** rng.uniform(-1, 1, count)
    shares = rng.dirichlet(np.full(4, 0.4), count) * rng.choice([-1.0, 1.0], (count, 4))
    shares[::4] = np.eye(4)[rng.integers(4, size=len(shares[::4]))]
    shares[1::4] *= 0.5
    D = six_decades(rng, (count, 1, 1), -2, 2) * rng.normal(size=(count, 3, 4))
    return {"D": D, "x": B[:, None] * shares, "B": B}


def _lengths(vectors):
    """Norms of the rows for q = 1, 2 and infinity."""
    size = jnp.abs(vectors)
    euclidean = jnp.sqrt(jnp.sum(size**2, axis=1))
    return jnp.stack([jnp.sum(size, axis=1), euclidean, jnp.max(size, axis=1)])


@inequality(
    "Lemma 3.2, proof (Appendix B)",
    Source.FOUND,
    sample=differences,
    search_over=("D", "x"),
    project=lambda x, B: {"x": x / jnp.maximum(1, jnp.sum(jnp.abs(x)) / B)},
    controls=[
        Control("inputs with $l_2$ norm $B_x$", euclidean=True),
        Control("nine tenths of the right side", share=0.9),
    ],
)
def lemma_3_2_distance(D, x, B, *, euclidean=False, share=1.0):
    r"""$$\|x\|_1 \le B_x: \quad \|(W-\hat W) x\|_q \le
    \max_{i \in [d]} \|(W-\hat W) B_x e_i\|_q,\quad q \in \{1, 2, \infty\}$$

    Equality at the vertices of the $l_1$ ball, which are the scaled basis vectors.
    """
    if euclidean:
        x = B * x / jnp.sqrt(jnp.sum(x**2))
    return _lengths((D @ x)[None])[:, 0], share * B * jnp.max(_lengths(D.T), axis=1)


def finite_classes(rng, count):
    """Five matrices, eight sets of inputs, the basis in the first, and a distance between gaps."""
    B = 10 ** rng.uniform(-1, 1, count)
    W = rng.normal(size=(count, _CLASS, _ROWS, _COLUMNS))
    W *= six_decades(rng, (count, 1, 1, 1), -1, 1)
    q = rng.choice([1.0, 2.0, 4.0], count)
    points = rng.dirichlet(np.full(_COLUMNS, 0.4), (count, _SETS, _POINTS))
    points *= rng.choice([-1.0, 1.0], points.shape)
    points[:, 0, :_COLUMNS] = np.eye(_COLUMNS)
    # Distances of pairs on the basis; epsilon lies midway between two of them, away from ties.
    gaps = (W[:, :, None] - W[:, None]) * B[:, None, None, None, None]
    power = q[:, None, None, None]
    sizes = np.sum(np.abs(gaps) ** power[..., None], axis=3) ** (1 / power)
    pairs = np.sort(np.max(sizes, axis=3)[:, *np.triu_indices(_CLASS, 1)], axis=1)
    rank = rng.integers(0, pairs.shape[1] - 1, count)
    rows = np.arange(count)
    epsilon = (pairs[rows, rank] + pairs[rows, rank + 1]) / 2
    points *= B[:, None, None, None]
    return {"W": W, "points": points, "B": B, "q": q, "epsilon": epsilon}


def covering_number(W, points, q, epsilon):
    """The least number of members of a class W that cover it on points, at less than epsilon.

    Distances of two values are l_q norms; all subsets are tried.
    """
    values = jnp.einsum("nkd,pd->npk", W, points)
    gaps = jnp.abs(values[:, None] - values[None])
    sizes = jnp.sum(jnp.where(gaps > 0, gaps, 0) ** q, axis=3) ** (1 / q)
    near = jnp.where(jnp.max(sizes, axis=2) < epsilon, 1.0, 0.0)
    subsets = jnp.asarray(np.array(list(product([0.0, 1.0], repeat=W.shape[0]))))
    covers = jnp.min(subsets @ near, axis=1) > 0
    return jnp.min(jnp.where(covers, jnp.sum(subsets, axis=1), jnp.inf))


@identity(
    "Lemma 3.2",
    Source.FOUND,
    sample=finite_classes,
    controls=[
        Control("inputs with $l_2$ norm $B_x$", euclidean=True),
        Control("sets of one point, fewer than $d$", size=1),
        Control("the sets that do not hold the basis", first=1),
    ],
)
def lemma_3_2(W, points, B, q, epsilon, *, euclidean=False, size=_POINTS, first=0):
    r"""$$\|x\|_1 \le B_x,\ N \ge d,\ q \ge 1: \quad
    \sup_{x_1, \dots, x_N} \mathcal{N}_\infty(\mathcal{F}, \epsilon, \{x_t\}, \|\cdot\|_q) =
    \mathcal{N}_\infty(\mathcal{F}, \epsilon, \{B_x e_1, \dots, B_x e_d\}, \|\cdot\|_q)$$

    Five matrices of two rows and three columns, $q = 1$, 2 and 4, $N = 9$. The supremum is over
    eight sets, of which the first holds the basis: it is reached there, and no other set needs
    more centres.
    """
    basis = points[0, : W.shape[2]]
    sets = points[first:, :size]
    if euclidean:
        sets = B * sets / jnp.sqrt(jnp.sum(sets**2, axis=2, keepdims=True))
    numbers = jax.vmap(lambda points: covering_number(W, points, q, epsilon))(sets)
    return jnp.max(numbers), covering_number(W, basis, q, epsilon)


def zero_and_identity():
    """The zero and the identity matrix, q = 1/2, epsilon = 3/2 and the midpoint of two vertices."""
    return {
        "W": np.stack([np.zeros((2, 2)), np.eye(2)]),
        "points": np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]),
        "q": np.asarray(0.5),
        "epsilon": np.asarray(1.5),
    }


@erratum(
    "Lemma 3.2 with $q$ of Section 2.4",
    of=Kind.IDENTITY,
    witness=zero_and_identity,
    reason="$q = 1/2$: two centres on three points, one on the basis",
    corrected=Control("$q = 1$ in place of $q = 1/2$", factor=2.0),
)
def lemma_3_2_small_q(W, points, q, epsilon, *, factor=1.0):
    r"""$$\|x\|_1 \le B_x,\ N \ge d,\ q > 0: \quad
    \mathcal{N}_\infty(\mathcal{F}, \epsilon, N, \|\cdot\|_q) =
    \mathcal{N}_\infty(\mathcal{F}, \epsilon, \{B_x e_1, \dots, B_x e_d\}, \|\cdot\|_q)$$

    $W = 0$ and $W = I$, $B_x = 1$, $\epsilon = 3/2$: on the basis the two are at distance 1, at
    $x = (1/2, 1/2)$ at distance 2.
    """
    q, basis = factor * q, points[: W.shape[2]]
    return covering_number(W, points, q, epsilon), covering_number(W, basis, q, epsilon)
