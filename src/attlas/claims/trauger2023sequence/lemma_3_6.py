r"""Lemma 3.6: the cover of the ||W||_{1,1} ball for inputs of the l_2 ball, constructed.

The greedy centre of `attlas.bounds.covering.greedy_cover` is projected on the ball, which
brings it no farther from W, so that the cover is a subset of the class as section 2.4 asks.
"""

import math
from functools import partial
from itertools import product

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.bounds.covering.greedy_cover import greedy_cover_errors
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.claims.trauger2023sequence.cover_instances import (
    COLUMNS,
    ROUNDINGS,
    ROWS,
    greedy_instances,
)
from attlas.core.norms.balls import project_entrywise
from attlas.core.norms.matrix import spectral_norm
from attlas.core.old_claim import (
    Claim,
    Control,
    Coverage,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)

_PAPER = "trauger2023sequence"


def _distance(instance: Instance, spread: bool = False) -> Sides:
    """The largest distance over all inputs; `spread` puts the whole norm in every column."""
    W, centre, B = (instance[name] for name in ("W", "centre", "B"))
    if spread:
        column = jnp.zeros_like(W).at[0].set(B)
        return Sides(instance["B_x"] * spectral_norm(column - centre), instance["epsilon"])
    left = instance["B_x"] * spectral_norm(W - project_entrywise(centre, B))
    return Sides(left, instance["epsilon"], scale=B * instance["B_x"])


LEMMA_3_6_DISTANCE = Claim(
    name=f"{_PAPER}/lemma-3-6-distance",
    paper=_PAPER,
    locator="Lemma 3.6, the cover: its distance",
    statement=(
        r"\|W\|_{1,1} \le B_w: \quad \exists\, \hat W \in \hat{\mathcal{W}}: "
        r"\sup_{\|x\|_2 \le B_x} \|(W-\hat W) x\|_2 \le \epsilon"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=partial(greedy_instances, by_column=False),
    sides=_distance,
    control=Control(
        "matrices of the (1, inf) ball, the norm B in every column",
        sides=partial(_distance, spread=True),
    ),
    terms=ROUNDINGS,
    note=(
        "Greedy centres, projected on the ball so that the cover lies in the class; the supremum "
        "is the spectral norm. Equality at a vertex for epsilon = B_w B_x / 2."
    ),
)


def _size(instance: Instance, ceiling: bool = False, signs: float = 2.0) -> Sides:
    """The log size of the constructed cover, or of Maurey's, against C / eps^2."""
    B, B_x, epsilon = (instance[name] for name in ("B", "B_x", "epsilon"))
    entries = ROWS * COLUMNS
    log_size = instance["size"]
    if ceiling:
        log_size = jnp.ceil((B * B_x / epsilon) ** 2 * (1 - 1e-12)) * math.log(2 * entries + 1)
    bound = trauger2023_cover("1,1", B, B_x, ROWS, COLUMNS) / epsilon**2
    share = math.log(signs * entries + 1) / math.log(2 * entries + 1)
    return Sides(log_size, share * bound)


LEMMA_3_6 = Claim(
    name=f"{_PAPER}/lemma-3-6",
    paper=_PAPER,
    locator="Lemma 3.6, the cover: its size",
    statement=(
        r"\|W\|_{1,1} \le B_w,\ \|x\|_2 \le B_x: \quad "
        r"\log \mathcal{N}_\infty(\mathcal{F}, \epsilon, N, \|\cdot\|_2) \le "
        r"\frac{B_x^2 B_w^2}{\epsilon^2} \log(2dk+1)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=partial(greedy_instances, by_column=False),
    sides=_size,
    control=(
        Control("Maurey's number of terms, a ceiling", sides=partial(_size, ceiling=True)),
        Control("log(dk + 1), the signs forgotten", sides=partial(_size, signs=1.0)),
    ),
    terms=ROUNDINGS,
    ledger=Link(f"{_PAPER}/slack", 10),
    note=(
        "True as printed at every epsilon, but not by the printed proof: Maurey's lemma takes "
        "ceil((B_w B_x / epsilon)^2) terms, the greedy cover at most (B_w B_x / epsilon)^2 (claim "
        "greedy-cover). The size is that of the constructed cover, not the least one."
    ),
)


def _centres(size: int, steps: int) -> np.ndarray:
    """All centres of the greedy cover of the unit l_1 ball that differ."""
    lengths = [0.5, *greedy_cover_errors(steps)[:-1]][:steps]
    moves = np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size)])
    sums = [
        sum(s * m for s, m in zip(lengths, path, strict=True))
        for path in product(moves, repeat=steps)
    ]
    return np.unique(np.round(np.array(sums), 12), axis=0)


def _small_covers(key: PRNGKeyArray, count: int) -> Instance:
    """Every entry count 1 to 3 and one to three steps: number of centres and measured radius."""
    del key, count
    rows = []
    for size, steps in product((1, 2, 3), repeat=2):
        pitch = 24
        # By symmetry the points with entries of one sign are enough.
        grid = np.array(
            [p for p in product(range(pitch + 1), repeat=size) if sum(p) <= pitch], float
        )
        centres = _centres(size, steps)
        gaps = np.linalg.norm(grid[:, None] / pitch - centres[None], axis=2)
        radius = float(np.max(np.min(gaps, axis=1)))
        rows.append((size, steps, len(centres), radius, greedy_cover_errors(steps)[-1]))
    names = ("size", "steps", "number", "radius", "error")
    return {name: jnp.asarray(v) for name, v in zip(names, np.array(rows).T, strict=True)}


def _small(instance: Instance, choices: float = 2.0) -> Sides:
    left = jnp.stack([instance["radius"], jnp.log(instance["number"])])
    told = instance["steps"] * jnp.log(choices * instance["size"] + 1)
    return Sides(left, jnp.stack([jnp.sqrt(instance["error"]), told]), scale=jnp.asarray(1.0))


LEMMA_3_6_SMALL = Claim(
    name=f"{_PAPER}/lemma-3-6-small",
    paper=_PAPER,
    locator="Lemma 3.6, covers written out",
    statement=(
        r"dk \le 3,\ K \le 3: \quad \sup_{\|v\|_1 \le 1} \min_{\hat v} \|v - \hat v\|_2 \le "
        r"\sqrt{E_K},\quad \log |\hat{\mathcal{V}}| \le K \log(2dk+1)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_small_covers,
    sides=_small,
    control=Control(
        "dk + 1 choices a step, the signs forgotten", sides=partial(_small, choices=1.0)
    ),
    count=9,
    terms=ROUNDINGS,
    coverage=Coverage.EXHAUSTIVE,
    note=(
        "All centres are listed, and the ball is searched on a grid of pitch 1/24. With one step "
        "both bounds are reached; with three the measured radius is 0.2 to 0.7 of its bound, and "
        "fewer than (2dk+1)^K centres differ."
    ),
)


def _recursion(key: PRNGKeyArray, count: int) -> Instance:
    del key
    errors = greedy_cover_errors(count)
    steps = np.arange(1, count + 1, dtype=float)
    return {"error": jnp.asarray(errors), "steps": jnp.asarray(steps)}


def _reached(instance: Instance, more: float = 3.0) -> Sides:
    return Sides(instance["error"], 1 / (instance["steps"] + more))


GREEDY_COVER = Claim(
    name=f"{_PAPER}/greedy-cover",
    paper=_PAPER,
    locator="Lemma 3.1 on the l_1 ball, sharpened",
    statement=(
        r"E_1 = \tfrac14,\ E_{K+1} = E_K - E_K^2: \quad "
        r"\|v\|_1 \le 1 \Rightarrow \min_{\hat v} \|v - \hat v\|_2^2 \le E_K \le \frac{1}{K+3}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=_recursion,
    sides=_reached,
    control=Control("K + 4 in place of K + 3", sides=partial(_reached, more=4.0)),
    terms=ROUNDINGS,
    coverage=Coverage.EXHAUSTIVE,
    note=(
        "Maurey's lemma has 1 / K. The gain of three steps is what lets the ceiling go. Equality "
        "at K = 1. The first inequality is checked in lemma-3-6-distance and lemma-3-6-small. That "
        "steps are left out below half their length is needed by the proof: centres built without "
        "that rule pass there as well."
    ),
)
