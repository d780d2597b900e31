r"""Section 3.4: the three balls of matrices compared.

W has k rows and d columns; ||W||_{p,q} takes the p-norms of the columns first. C_{1,1} and
C_{1,inf} are the coefficients of Lemmas 3.6 and 3.3, log N(eps) <= C / eps^2.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.core.generator import generator
from attlas.core.norms.matrix import column_norm
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "trauger2023sequence"
_ROUNDINGS = 64
_INF = float("inf")


def _matrices(key: PRNGKeyArray, count: int) -> Instance:
    """Dense and sparse matrices of four rows and five columns, some with equal or flat columns."""
    rng = generator(key)
    W = 10 ** rng.uniform(-3, 3, (count, 1, 1)) * rng.normal(size=(count, 4, 5))
    W *= rng.random((count, 4, 5)) < rng.uniform(0.3, 1, (count, 1, 1))
    W[:, 0, 0] += 1e-3
    W[::4] = W[::4, :, :1]
    W[1::4] = np.sign(W[1::4]) * np.abs(W[1::4, :1, :1])
    return {"W": jnp.asarray(W)}


def _columns(instance: Instance, power: float = 1.0) -> Sides:
    W = instance["W"]
    left = jnp.stack([column_norm(W, p, 1) for p in (1, 2, _INF)])
    right = jnp.stack([column_norm(W, p, _INF) for p in (1, 2, _INF)])
    return Sides(left, W.shape[1] ** power * right)


SECTION_3_4_NORMS = Claim(
    name=f"{_PAPER}/section-3-4-norms",
    paper=_PAPER,
    locator="Section 3.4",
    statement=r"\|W\|_{p,1} \le d\,\|W\|_{p,\infty},\quad W \in \mathbb{R}^{k \times d}",
    kind=Kind.INEQUALITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=_matrices,
    sides=_columns,
    control=Control("the root of d in place of d", sides=partial(_columns, power=0.5)),
    terms=_ROUNDINGS,
    note="p = 1, 2 and infinity; equality for columns of equal norm.",
)


def _balls(instance: Instance, power: float = 0.5) -> Sides:
    W = instance["W"]
    entries, columns = column_norm(W, 1, 1), column_norm(W, 2, 1)
    left = jnp.stack([column_norm(W, 1, _INF), columns, entries])
    return Sides(left, jnp.stack([entries, entries, W.shape[0] ** power * columns]))


SECTION_3_4_BALLS = Claim(
    name=f"{_PAPER}/section-3-4-balls",
    paper=_PAPER,
    locator="Section 3.4, how the balls lie in each other",
    statement=(
        r"\|W\|_{1,\infty} \le \|W\|_{1,1},\quad "
        r"\|W\|_{2,1} \le \|W\|_{1,1} \le \sqrt{k}\,\|W\|_{2,1}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_matrices,
    sides=_balls,
    control=Control("||W||_{1,1} <= ||W||_{2,1}", sides=partial(_balls, power=0.0)),
    terms=_ROUNDINGS,
    note=(
        "The ball of Lemma 3.6 is the smallest of the three. For given weights its norm is up to "
        "sqrt(k) times that of Lemma 3.4, reached by entries of one size, and C up to k times."
    ),
)


def _classes(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    d, k = np.round(2 ** rng.uniform(0, 10, (2, count)))
    B, B_x = 10 ** rng.uniform(-2, 2, (2, count))
    d[::4] = 1.0
    return {name: jnp.asarray(v) for name, v in {"d": d, "k": k, "B": B, "B_x": B_x}.items()}


def _coefficients(instance: Instance, power: float = 1.0) -> Sides:
    d, k, B, B_x = (instance[name] for name in ("d", "k", "B", "B_x"))
    columns = d * (B * B_x) ** 2 * jnp.log(2 * k + 1)
    return Sides(columns, (d**power * B * B_x) ** 2 * jnp.log(2 * d * k + 1))


SECTION_3_4_COMPARISON = Claim(
    name=f"{_PAPER}/section-3-4-comparison",
    paper=_PAPER,
    locator="Section 3.4, Lemma 3.3 against Lemma 3.6 converted",
    statement=(
        r"\|W\|_{1,\infty} \le B_w \Rightarrow \|W\|_{1,1} \le d B_w: \quad "
        r"d\,B_w^2 B_x^2 \ln(2k+1) \le (d B_w)^2 B_x^2 \ln(2dk+1)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_classes,
    sides=_coefficients,
    control=Control(
        "equal radii of the two balls, not converted", sides=partial(_coefficients, power=0.0)
    ),
    terms=_ROUNDINGS,
    note=(
        "'Stronger than it lets on' is right by a factor of at least d on the (1, inf) ball; on "
        "the (1, 1) ball of the same radius Lemma 3.6 is the smaller one. Lemma 3.6 also allows "
        "more inputs, ||x||_2 <= B_x."
    ),
)
