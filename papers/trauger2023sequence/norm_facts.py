r"""Facts about norms and projections that the proofs use, and Section 3.4's balls of matrices.

C_{1,1} and C_{1,inf} are the coefficients of Lemmas 3.6 and 3.3, log N(eps) <= C / eps^2.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import inequality
from attlas.norms.balls import ball_norm, dual_norm, project
from attlas.norms.matrix import column_norm, frobenius_norm, row_norm, spectral_norm

_ROUNDINGS = 128
"""Products and norms of 12 entries, a sort and a singular value decomposition of rank 3."""
_INF = float("inf")
_BALLS = ("1,1", "1,inf", "2,1")


def matrices(rng, count):
    """Dense, rank-one, single-entry and flat-column matrices of four rows, and vectors."""
    W, V = six_decades(rng, (2, count, 1, 1), -2, 2) * rng.normal(size=(2, count, 4, 3))
    x, y = six_decades(rng, (2, count, 1), -2, 2) * rng.normal(size=(2, count, 3))
    u = rng.normal(size=(count, 4))
    W[::4] = u[::4, :, None] * x[::4, None, :]
    W[1::4] = 0
    W[1::4, 2, 0], x[1::4, 1:] = 3.0, 0
    W[2::4, :, 1:] = 0
    W[2::4] = np.sign(W[2::4])
    V[2::4] = W[2::4]
    return {"W": W, "V": V, "x": x, "y": y}


def _length(vector):
    return jnp.sqrt(jnp.sum(vector**2))


on_matrices = partial(inequality, sample=matrices, roundings=_ROUNDINGS)


@on_matrices(
    "Lemma 3.6, proof: the chain of norms",
    Source.FOUND,
    search_over=("W", "x"),
    controls=[
        Control("the longest column in place of the spectral norm", columns=True),
        Control("0.9 of each norm", factor=0.9),
    ],
)
def lemma_3_6_norms(W, x, *, columns=False, factor=1.0):
    r"""$$\|W x\|_2 \le \|W\|_{2 \to 2} \|x\|_2,\quad
    \|W\|_{2 \to 2} \le \|W\|_F \le \|W\|_{1,1}$$

    Each step is an equality for matrices of rank one or of one entry.
    """
    first = column_norm(W, 2, _INF) if columns else spectral_norm(W)
    norms = [first, frobenius_norm(W), column_norm(W, 1, 1)]
    return jnp.stack([_length(W @ x) / _length(x), *norms[:2]]), factor * jnp.stack(norms)


@on_matrices(
    "Appendix C, the facts of linear algebra",
    Source.FOUND,
    search_over=("W", "x", "y"),
    controls=[
        Control("without the norm of $v$, as the display of Appendix C ends", bounded=False),
        Control("0.9 of each bound", factor=0.9),
    ],
)
def appendix_c_norms(W, x, y, *, bounded=True, factor=1.0):
    r"""$$v^\top u \le \|v\|_1 \max_j |u_j|,\quad
    \|P v\|_2 \le \|P\|_{2,\infty} \|v\|_1,\quad
    \|X\|_{2 \to \infty} = \|X^\top\|_{2,\infty}$$

    The last fact is tested as $|X v|_\infty \le \|X^\top\|_{2,\infty} \|v\|_2$. Printed is
    '$v^\top u \le B_v \max_j |e_j u| = \max_{j,s} s\, e_j u^\top$': the second expression lacks
    $B_v$ (the proof has it).
    """
    size = factor * jnp.sum(jnp.abs(x)) if bounded else jnp.asarray(1.0)
    longest_row = factor * row_norm(W, 2, _INF) * _length(x)
    products = [jnp.abs(x @ y), _length(W @ x), jnp.max(jnp.abs(W @ x))]
    bounds = [size * jnp.max(jnp.abs(y)), size * column_norm(W, 2, _INF), longest_row]
    added = [jnp.sum(jnp.abs(x * y)), bounds[1], longest_row]
    return Sides(jnp.stack(products), jnp.stack(bounds), magnitude=jnp.stack(added))


@on_matrices(
    "Theorem 4.2, the layers: projection of rows on the unit ball",
    search_over=("x", "y"),
    controls=[
        Control("rows scaled to length one", sphere=True),
        Control("nine tenths of the distance", share=0.9),
    ],
)
def row_projection(x, y, *, sphere=False, share=1.0):
    r"""$$\|\Pi_{norm}(a) - \Pi_{norm}(b)\|_2 \le \|a - b\|_2,\quad
    \Pi_{norm}(a) = \frac{a}{\max(1, \|a\|_2)}$$

    Layer normalisation, which the projection stands for in the paper, scales short rows up; the
    control shows that it has no such constant.
    """
    a, b = (v / (_length(v) if sphere else jnp.maximum(_length(v), 1.0)) for v in (x, y))
    return Sides(_length(a - b), share * _length(x - y), magnitude=_length(x) + _length(y))


@on_matrices(
    "The three balls: nearest points, for the ascents over them",
    status=Status.NEW,
    search_over="W",
    controls=[Control("$W$ scaled into the ball", scaled=True)],
)
def ball_projection(W, *, scaled=False):
    r"""$$P = \arg\min_{\|P\| \le B} \|W - P\|_F: \quad
    \max_{\|V\| \le B} \langle W - P, V \rangle = B \|W - P\|_* \le \langle W - P, P \rangle$$

    The norms $(1,1)$, $(1,\infty)$ and $(2,1)$, each ball of radius half the norm of $W$. The
    condition makes $P$ the nearest point, no farther from any member of the class than $W$ is: so
    constructed centres may be projected.
    """
    lefts, rights = [], []
    for ball in _BALLS:
        radius = ball_norm(W, ball) / 2
        P = W / 2 if scaled else project(W, ball, radius)
        lefts.append(radius * dual_norm(W - P, ball))
        rights.append(jnp.sum((W - P) * P))
    return Sides(jnp.stack(lefts), jnp.stack(rights), magnitude=jnp.sum(W**2))


@on_matrices(
    "The three balls: suprema of linear functions",
    status=Status.NEW,
    search_over=("W", "V"),
    controls=[
        Control("rows first in the norm of $W$", transposed=True),
        Control("0.9 of each norm", factor=0.9),
    ],
)
def dual_norms(W, V, *, transposed=False, factor=1.0):
    r"""$$\langle W, C \rangle \le \|W\|_{1,1} \|C\|_{\infty,\infty},\quad
    \langle W, C \rangle \le \|W\|_{1,\infty} \|C\|_{\infty,1},\quad
    \langle W, C \rangle \le \|W\|_{2,1} \|C\|_{2,\infty}$$

    These give the exact suprema of linear classes. Equality for one flat column.
    """
    measured = jnp.swapaxes(W, 0, 1) if transposed else W
    right = jnp.stack([ball_norm(measured, ball) * dual_norm(V, ball) for ball in _BALLS]) * factor
    ones = jnp.ones_like(right)
    left = jnp.abs(jnp.sum(W * V)) * ones
    return Sides(left, right, magnitude=jnp.sum(jnp.abs(W * V)) * ones)


def sparse_matrices(rng, count):
    """Dense and sparse matrices of four rows and five columns, some with equal or flat columns."""
    W = 10 ** rng.uniform(-3, 3, (count, 1, 1)) * rng.normal(size=(count, 4, 5))
    W *= rng.random((count, 4, 5)) < rng.uniform(0.3, 1, (count, 1, 1))
    W[:, 0, 0] += 1e-3
    W[::4] = W[::4, :, :1]
    W[1::4] = np.sign(W[1::4]) * np.abs(W[1::4, :1, :1])
    W[2::4, :, 1:] = 0
    return {"W": W}


@inequality(
    "Section 3.4",
    Source.FOUND,
    sample=sparse_matrices,
    search_over="W",
    controls=[Control("the root of $d$ in place of $d$", power=0.5)],
)
def section_3_4_norms(W, *, power=1.0):
    r"""$$\|W\|_{p,1} \le d\,\|W\|_{p,\infty},\quad W \in \mathbb{R}^{k \times d}$$

    $p = 1$, 2 and infinity; equality for columns of equal norm.
    """
    left, right = (jnp.stack([column_norm(W, p, q) for p in (1, 2, _INF)]) for q in (1, _INF))
    return left, W.shape[1] ** power * right


@inequality(
    "Section 3.4, how the balls lie in each other",
    sample=sparse_matrices,
    search_over="W",
    status=Status.NEW,
    controls=[
        Control(r"$\|W\|_{1,1} \le \|W\|_{2,1}$", power=0.0),
        Control(r"0.9 of $\|W\|_{1,1}$", factor=0.9),
    ],
)
def section_3_4_balls(W, *, power=0.5, factor=1.0):
    r"""$$\|W\|_{1,\infty} \le \|W\|_{1,1},\quad
    \|W\|_{2,1} \le \|W\|_{1,1} \le \sqrt{k}\,\|W\|_{2,1}$$

    The ball of Lemma 3.6 is the smallest of the three. For given weights its norm is up to
    $\sqrt k$ times that of Lemma 3.4, reached by entries of one size, and $C$ up to $k$ times.
    """
    entries, columns = column_norm(W, 1, 1), column_norm(W, 2, 1)
    left = jnp.stack([column_norm(W, 1, _INF), columns, entries])
    return left, jnp.stack([factor * entries, factor * entries, W.shape[0] ** power * columns])


def sizes(rng, count):
    """Rows and columns from 1 to 1024, and radii of all scales."""
    d, k = np.round(2 ** rng.uniform(0, 10, (2, count)))
    B, B_x = six_decades(rng, (2, count), -2, 2)
    d[::4] = 1.0
    return {"d": d, "k": k, "B": B, "B_x": B_x}


@inequality(
    "Section 3.4, Lemma 3.3 against Lemma 3.6 converted",
    sample=sizes,
    search_over=("d", "k", "B", "B_x"),
    project=lambda d, k: {"d": jnp.maximum(d, 1), "k": jnp.maximum(k, 1)},
    controls=[
        Control("equal radii of the two balls, not converted", power=0.0),
        Control("nine tenths of the entropy", share=0.9),
    ],
)
def section_3_4_comparison(d, k, B, B_x, *, power=1.0, share=1.0):
    r"""$$\|W\|_{1,\infty} \le B_w \Rightarrow \|W\|_{1,1} \le d B_w: \quad
    d\,B_w^2 B_x^2 \ln(2k+1) \le (d B_w)^2 B_x^2 \ln(2dk+1)$$

    'Stronger than it lets on' is right by a factor of at least $d$ on the $(1, \infty)$ ball; on
    the $(1, 1)$ ball of the same radius Lemma 3.6 is the smaller one. Lemma 3.6 also allows more
    inputs, $\|x\|_2 \le B_x$.
    """
    columns = d * (B * B_x) ** 2 * jnp.log(2 * k + 1)
    return columns, share * (d**power * B * B_x) ** 2 * jnp.log(2 * d * k + 1)
