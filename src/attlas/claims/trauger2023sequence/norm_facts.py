r"""Facts about norms and projections that the proofs use, and the trauger2023sequence norm balls.

||W||_{p,q} takes the p-norms of the columns first; ||W||_{2->2} is the largest singular value.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.core.generator import generator
from attlas.core.norms.balls import ball_norm, dual_norm, project
from attlas.core.norms.matrix import column_norm, frobenius_norm, row_norm, spectral_norm
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "trauger2023sequence"
_ROUNDINGS = 128
"""Products and norms of 12 entries, a sort and a singular value decomposition of rank 3."""
_INF = float("inf")
_BALLS = ("1,1", "1,inf", "2,1")


def _matrices(key: PRNGKeyArray, count: int) -> Instance:
    """Dense, rank-one, single-entry and flat-column matrices of four rows, and vectors."""
    rng = generator(key)
    W, V = 10 ** rng.uniform(-2, 2, (2, count, 1, 1)) * rng.normal(size=(2, count, 4, 3))
    x, y = 10 ** rng.uniform(-2, 2, (2, count, 1)) * rng.normal(size=(2, count, 3))
    u = rng.normal(size=(count, 4))
    W[::4] = u[::4, :, None] * x[::4, None, :]
    W[1::4] = 0
    W[1::4, 2, 0], x[1::4, 1:] = 3.0, 0
    W[2::4, :, 1:] = 0
    W[2::4] = np.sign(W[2::4])
    V[2::4] = W[2::4]
    parts = {"W": W, "V": V, "x": x, "y": y}
    return {name: jnp.asarray(value) for name, value in parts.items()}


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "instances": _matrices,
    "terms": _ROUNDINGS,
}


def _length(vector: Array) -> Array:
    return jnp.sqrt(jnp.sum(vector**2))


def _operator(instance: Instance, columns: bool = False) -> Sides:
    W, x = instance["W"], instance["x"]
    norms = [spectral_norm(W), frobenius_norm(W), column_norm(W, 1, 1)]
    if columns:
        norms[0] = column_norm(W, 2, _INF)
    left = jnp.stack([_length(W @ x) / _length(x), norms[0], norms[1]])
    return Sides(left, jnp.stack(norms))


NORM_CHAIN = Claim(
    name=f"{_PAPER}/lemma-3-6-norms",
    locator="Lemma 3.6, proof: the chain of norms",
    statement=(
        r"\|W x\|_2 \le \|W\|_{2 \to 2} \|x\|_2,\quad "
        r"\|W\|_{2 \to 2} \le \|W\|_F \le \|W\|_{1,1}"
    ),
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    sides=_operator,
    control=Control(
        "the longest column in place of the spectral norm", sides=partial(_operator, columns=True)
    ),
    note="Each step is an equality for matrices of rank one or of one entry.",
    **_COMMON,
)


def _hoelder(instance: Instance, bounded: bool = True) -> Sides:
    W, x, y = (instance[name] for name in ("W", "x", "y"))
    size = jnp.sum(jnp.abs(x)) if bounded else jnp.asarray(1.0)
    longest_row = row_norm(W, 2, _INF)
    products = [jnp.abs(x @ y), _length(W @ x), jnp.max(jnp.abs(W @ x))]
    bounds = [
        size * jnp.max(jnp.abs(y)),
        size * column_norm(W, 2, _INF),
        longest_row * _length(x),
    ]
    scale = [jnp.sum(jnp.abs(x * y)), bounds[1], longest_row * _length(x)]
    return Sides(jnp.stack(products), jnp.stack(bounds), scale=jnp.stack(scale))


HOELDER = Claim(
    name=f"{_PAPER}/appendix-c-norms",
    locator="Appendix C, the facts of linear algebra",
    statement=(
        r"v^\top u \le \|v\|_1 \max_j |u_j|,\quad "
        r"\|P v\|_2 \le \|P\|_{2,\infty} \|v\|_1,\quad "
        r"\|X\|_{2 \to \infty} = \|X^\top\|_{2,\infty}"
    ),
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    sides=_hoelder,
    control=Control(
        "without the norm of v, as the display of Appendix C ends",
        sides=partial(_hoelder, bounded=False),
    ),
    note=(
        "The last fact is tested as |X v|_inf <= ||X'||_{2,inf} ||v||_2. Printed is 'v'u <= B_v "
        "max_j |e_j u| = max_{j,s} s e_j u': the second expression lacks B_v (the proof has it)."
    ),
    **_COMMON,
)


def _rows(instance: Instance, sphere: bool = False) -> Sides:
    a, b = instance["x"], instance["y"]

    def placed(vector: Array) -> Array:
        length = _length(vector)
        return vector / (length if sphere else jnp.maximum(length, 1.0))

    return Sides(_length(placed(a) - placed(b)), _length(a - b), scale=_length(a) + _length(b))


ROW_PROJECTION = Claim(
    name=f"{_PAPER}/row-projection",
    locator="Theorem 4.2, the layers: projection of rows on the unit ball",
    statement=(
        r"\|\Pi_{norm}(a) - \Pi_{norm}(b)\|_2 \le \|a - b\|_2,\quad "
        r"\Pi_{norm}(a) = \frac{a}{\max(1, \|a\|_2)}"
    ),
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    sides=_rows,
    control=Control("rows scaled to length one", sides=partial(_rows, sphere=True)),
    note=(
        "Layer normalisation, which the projection stands for in the paper, scales short rows up; "
        "the control shows that it has no such constant."
    ),
    **_COMMON,
)


def _nearest(instance: Instance, scaled: bool = False) -> Sides:
    """The variational inequality at its worst V, each ball of radius half the norm of W."""
    W = instance["W"]
    lefts, rights = [], []
    for ball in _BALLS:
        radius = ball_norm(W, ball) / 2
        P = W / 2 if scaled else project(W, ball, radius)
        lefts.append(radius * dual_norm(W - P, ball))
        rights.append(jnp.sum((W - P) * P))
    return Sides(jnp.stack(lefts), jnp.stack(rights), scale=jnp.sum(W**2))


BALL_PROJECTION = Claim(
    name=f"{_PAPER}/ball-projection",
    locator="The three balls: nearest points, for the ascents over them",
    statement=(
        r"P = \arg\min_{\|P\| \le B} \|W - P\|_F: \quad "
        r"\max_{\|V\| \le B} \langle W - P, V \rangle = B \|W - P\|_* \le "
        r"\langle W - P, P \rangle"
    ),
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    sides=_nearest,
    control=Control("W scaled into the ball", sides=partial(_nearest, scaled=True)),
    note=(
        "The norms (1,1), (1,inf) and (2,1). The condition says that P is the nearest point, no "
        "farther from any member of the class than W is: so constructed centres may be projected."
    ),
    **_COMMON,
)


def _duality(instance: Instance, transposed: bool = False) -> Sides:
    W, V = instance["W"], instance["V"]
    products, bounds = [], []
    for ball in _BALLS:
        measured = jnp.swapaxes(W, 0, 1) if transposed else W
        products.append(jnp.abs(jnp.sum(W * V)))
        bounds.append(ball_norm(measured, ball) * dual_norm(V, ball))
    left = jnp.stack(products)
    return Sides(left, jnp.stack(bounds), scale=jnp.sum(jnp.abs(W * V)) * jnp.ones_like(left))


DUAL_NORMS = Claim(
    name=f"{_PAPER}/dual-norms",
    locator="The three balls: suprema of linear functions",
    statement=(
        r"\langle W, C \rangle \le \|W\|_{1,1} \|C\|_{\infty,\infty},\quad "
        r"\langle W, C \rangle \le \|W\|_{1,\infty} \|C\|_{\infty,1},\quad "
        r"\langle W, C \rangle \le \|W\|_{2,1} \|C\|_{2,\infty}"
    ),
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    sides=_duality,
    control=Control("rows first in the norm of W", sides=partial(_duality, transposed=True)),
    note="These give the exact suprema of linear classes. Equality for one flat column.",
    **_COMMON,
)
