r"""Section 3.4: the three balls of matrices compared.

W has k rows and d columns; ||W||_{p,q} takes the p-norms of the columns first. C_{1,1} and
C_{1,inf} are the coefficients of Lemmas 3.6 and 3.3, log N(eps) <= C / eps^2.
"""

import jax.numpy as jnp
import numpy as np

from attlas.core.claim import Control, Source, Status
from attlas.core.norms.matrix import column_norm
from attlas.core.statement import inequality

_INF = float("inf")


def matrices(rng, count):
    """Dense and sparse matrices of four rows and five columns, some with equal or flat columns."""
    W = 10 ** rng.uniform(-3, 3, (count, 1, 1)) * rng.normal(size=(count, 4, 5))
    W *= rng.random((count, 4, 5)) < rng.uniform(0.3, 1, (count, 1, 1))
    W[:, 0, 0] += 1e-3
    W[::4] = W[::4, :, :1]
    W[1::4] = np.sign(W[1::4]) * np.abs(W[1::4, :1, :1])
    return {"W": W}


@inequality(
    "Section 3.4",
    Source.FOUND,
    sample=matrices,
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
    sample=matrices,
    status=Status.NEW,
    controls=[Control(r"$\|W\|_{1,1} \le \|W\|_{2,1}$", power=0.0)],
)
def section_3_4_balls(W, *, power=0.5):
    r"""$$\|W\|_{1,\infty} \le \|W\|_{1,1},\quad
    \|W\|_{2,1} \le \|W\|_{1,1} \le \sqrt{k}\,\|W\|_{2,1}$$

    The ball of Lemma 3.6 is the smallest of the three. For given weights its norm is up to
    $\sqrt k$ times that of Lemma 3.4, reached by entries of one size, and $C$ up to $k$ times.
    """
    entries, columns = column_norm(W, 1, 1), column_norm(W, 2, 1)
    left = jnp.stack([column_norm(W, 1, _INF), columns, entries])
    return left, jnp.stack([entries, entries, W.shape[0] ** power * columns])


def sizes(rng, count):
    """Rows and columns from 1 to 1024, and radii of all scales."""
    d, k = np.round(2 ** rng.uniform(0, 10, (2, count)))
    B, B_x = 10 ** rng.uniform(-2, 2, (2, count))
    d[::4] = 1.0
    return {"d": d, "k": k, "B": B, "B_x": B_x}


@inequality(
    "Section 3.4, Lemma 3.3 against Lemma 3.6 converted",
    sample=sizes,
    controls=[Control("equal radii of the two balls, not converted", power=0.0)],
)
def section_3_4_comparison(d, k, B, B_x, *, power=1.0):
    r"""$$\|W\|_{1,\infty} \le B_w \Rightarrow \|W\|_{1,1} \le d B_w: \quad
    d\,B_w^2 B_x^2 \ln(2k+1) \le (d B_w)^2 B_x^2 \ln(2dk+1)$$

    'Stronger than it lets on' is right by a factor of at least $d$ on the $(1, \infty)$ ball; on
    the $(1, 1)$ ball of the same radius Lemma 3.6 is the smaller one. Lemma 3.6 also allows more
    inputs, $\|x\|_2 \le B_x$.
    """
    columns = d * (B * B_x) ** 2 * jnp.log(2 * k + 1)
    return columns, (d**power * B * B_x) ** 2 * jnp.log(2 * d * k + 1)
