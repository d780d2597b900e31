r"""Lemma 3.3: the cover of the ||W||_{1,inf} ball for inputs of the l_1 ball, constructed.

Every column is covered on its own by greedy steps. By Lemma 3.2 the largest distance over all
inputs is B_x times the length of the worst column of W - centre.
"""

import math
from functools import partial

import jax.numpy as jnp

from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.claims.trauger2023sequence.cover_instances import (
    COLUMNS,
    ROUNDINGS,
    ROWS,
    greedy_instances,
)
from attlas.core.norms.balls import project_each_column
from attlas.core.norms.matrix import column_norm, spectral_norm
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "trauger2023sequence"


def _distance(instance: Instance, euclidean: bool = False) -> Sides:
    W, centre, B, B_x = (instance[name] for name in ("W", "centre", "B", "B_x"))
    gap = W - project_each_column(centre, B)
    largest = spectral_norm(gap) if euclidean else column_norm(gap, 2, float("inf"))
    return Sides(B_x * largest, instance["epsilon"], scale=B * B_x)


LEMMA_3_3_DISTANCE = Claim(
    name=f"{_PAPER}/lemma-3-3-distance",
    paper=_PAPER,
    locator="Lemma 3.3, the cover: its distance",
    statement=(
        r"\|W\|_{1,\infty} \le B_w: \quad \exists\, \hat W \in \hat V \otimes \cdots \otimes "
        r"\hat V: \sup_{\|x\|_1 \le B_x} \|(W-\hat W) x\|_2 \le \epsilon"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=partial(greedy_instances, by_column=True),
    sides=_distance,
    control=Control("inputs with l_2 norm B_x", sides=partial(_distance, euclidean=True)),
    terms=ROUNDINGS,
    note=(
        "Greedy centres, projected so that the cover lies in the class; the supremum is exact. "
        "Equality at a vertex for epsilon = B_w B_x / 2."
    ),
)


def _size(instance: Instance, ceiling: bool = False, columns: int = COLUMNS) -> Sides:
    B, B_x, epsilon = (instance[name] for name in ("B", "B_x", "epsilon"))
    log_size = instance["size"]
    if ceiling:
        terms = jnp.ceil((B * B_x / epsilon) ** 2 * (1 - 1e-12))
        log_size = COLUMNS * terms * math.log(2 * ROWS + 1)
    return Sides(log_size, trauger2023_cover("1,inf", B, B_x, ROWS, columns) / epsilon**2)


LEMMA_3_3 = Claim(
    name=f"{_PAPER}/lemma-3-3",
    paper=_PAPER,
    locator="Lemma 3.3, the cover: its size",
    statement=(
        r"\|W\|_{1,\infty} \le B_w,\ \|x\|_1 \le B_x: \quad "
        r"\log \mathcal{N}_\infty(\mathcal{F}, \epsilon, N, \|\cdot\|_2) \le "
        r"\frac{d B_w^2 B_x^2}{\epsilon^2} \log(2k+1)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=partial(greedy_instances, by_column=True),
    sides=_size,
    control=(
        Control("Maurey's number of terms, a ceiling", sides=partial(_size, ceiling=True)),
        Control("without the factor d", sides=partial(_size, columns=1)),
    ),
    terms=ROUNDINGS,
    note=(
        "True as printed at every epsilon, by the greedy cover; the printed proof drops Maurey's "
        "ceiling. The size is that of the constructed cover, not the least one."
    ),
)
