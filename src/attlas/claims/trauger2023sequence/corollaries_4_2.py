r"""Corollaries 4.2.1, F.0.1 and F.0.2: Theorem 4.2 with the three covers, constants corrected.

Left: the optimum of Lemma E.1 with the cover of each matrix at its own size and on the inputs
that it sees. Right: one closed form for all. Both for m = 10,000 samples where the cover asks m.
"""

import math
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.covering.trauger2023_allocation import trauger2023_allocation
from attlas.bounds.covering.trauger2023_cover import Ball, Version, trauger2023_cover
from attlas.bounds.generalisation.trauger2023_deep import (
    trauger2023_parts,
    trauger2023_printed_entropy,
)
from attlas.claims.trauger2023sequence.layer_instances import longest
from attlas.core.generator import generator
from attlas.core.old_claim import (
    Claim,
    Control,
    Coverage,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness

_PAPER = "trauger2023sequence"
_SIZES = ((1, 16), (4, 8), (8, 8))
_LAYERS, _SAMPLES = 2, 10_000
_NORMS = ("B_c", "B_v", "B_qk", "B_w")


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Spectral norms over two decades, B their largest, B_x and L_sigma up to 1."""
    rng = generator(key)
    batch = {name: 10.0 ** rng.uniform(-1, 1, count) for name in _NORMS}
    batch["B"] = 10.0 ** rng.uniform(0, 1, count)
    batch["B_x"] = np.where(rng.random(count) < 0.5, 1.0, rng.uniform(0.3, 1, count))
    batch["lipschitz"] = np.where(rng.random(count) < 0.5, 1.0, rng.uniform(0.3, 1, count))
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _cover(ball: Ball, norm: Array, reach: Array, rows: int, columns: int) -> Array:
    """C of one matrix on inputs of Euclidean norm `reach`, whose l_1 norm is sqrt(columns) more."""
    spread = 1.0 if ball == "1,1" else math.sqrt(columns)
    return trauger2023_cover(ball, norm, spread * reach, rows, columns, _SAMPLES)


def _optimum(ball: Ball, instance: Instance, k: int, d: int) -> Array:
    """Lemma E.1 with each matrix at its own size."""
    c, v, qk = (jnp.full((_LAYERS, 1), 1.0) * instance[name] for name in _NORMS[:3])
    B_x, lipschitz = instance["B_x"], instance["lipschitz"]
    parts = trauger2023_parts(c, v, qk, instance["B_w"], B_x, lipschitz)
    shapes = {"readout": (1, d), "output": (d, k), "value": (k, d), "query_key": (d, d)}
    C = [_cover(ball, instance["B"], jnp.asarray(p.reach), *shapes[p.kind]) for p in parts]
    return trauger2023_allocation(jnp.stack(C), jnp.stack([part.beta for part in parts]))[0]


def _coefficient(ball: Ball, instance: Instance, k: int, d: int, form: str) -> Array:
    """C_1: that of a matrix of max(d, k) rows and columns, or as printed."""
    size = max(d, k)
    if form == "corrected":
        return _cover(ball, instance["B"], jnp.ones(()), size, size)
    square = instance["B"] ** 2
    if ball == "1,1":
        return square * math.log(2 * d * k + 1)
    return square * (d * math.log(2 * k + 1) if ball == "1,inf" else math.log(d * k))


def _sides(
    instance: Instance, ball: Ball, version: Version = "corrected", form: str = "corrected"
) -> Sides:
    B_c, B_v, B_qk, B_w = (instance[name] for name in _NORMS)
    norms = (B_c, B_v, B_qk, B_w)
    left, right = [], []
    for k, d in _SIZES:
        C_1 = _coefficient(ball, instance, k, d, form)
        C_x = C_1 * instance["B_x"] ** 2
        left.append(_optimum(ball, instance, k, d))
        right.append(
            trauger2023_printed_entropy(C_1, C_x, norms, _LAYERS, instance["lipschitz"], version)
        )
    return Sides(jnp.stack(left), jnp.stack(right))


def _controls(ball: Ball) -> tuple[Control, ...]:
    return (
        Control(
            "the printed gamma, eta and coefficient",
            sides=partial(_sides, ball=ball, version="printed", form="printed"),
        ),
        Control(
            "the printed gamma and eta alone", sides=partial(_sides, ball=ball, version="printed")
        ),
        Control("the printed coefficient alone", sides=partial(_sides, ball=ball, form="printed")),
    )


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "status": Status.CORRECTED,
    "provenance": Provenance.DERIVED,
    "instances": _instances,
    "count": 48,
    "terms": 256,
}
_CLOSED = (
    r"\min \sum_j \frac{C_j}{\epsilon_j^2} \le (\gamma+\eta)^3, \quad "
    r"\gamma = C_1^{1/3} \big( (2 B_x \lambda B_v \alpha_1 B_w)^{2/3}"
    r"+ 1 + (\alpha_1 B_w)^{2/3} + (\alpha_1 B_w \lambda)^{2/3} \big), \quad "
)

COROLLARY_4_2_1 = Claim(
    name=f"{_PAPER}/corollary-4-2-1",
    locator="Corollary 4.2.1, corrected",
    statement=_CLOSED + r"C_1 = B^2 \ln(2\bar d^2+1), \quad \bar d = \max(d,k)",
    sides=partial(_sides, ball="1,1"),
    control=_controls("1,1"),
    note=(
        "W_QK is d x d: the printed ln(2dk+1) does not cover it where k < d. B_x, L_sigma <= 1; "
        "two layers, (k, d) = (1, 16), (4, 8), (8, 8)."
    ),
    **_COMMON,
)

COROLLARY_F_0_1 = Claim(
    name=f"{_PAPER}/corollary-f-0-1",
    locator="Corollary F.0.1, corrected",
    statement=_CLOSED + r"C_1 = \bar d^2 B^2 \ln(2\bar d+1), \quad \bar d = \max(d,k)",
    sides=partial(_sides, ball="1,inf"),
    control=_controls("1,inf"),
    note=(
        "Lemma 3.3 asks for ||x||_1 <= 1, but rows behind Pi_norm have ||x||_2 <= 1 alone: "
        "another factor d (see corollary-f-0-rows). W_QK has ln(2d+1)."
    ),
    **_COMMON,
)

COROLLARY_F_0_2 = Claim(
    name=f"{_PAPER}/corollary-f-0-2",
    locator="Corollary F.0.2, corrected (norms of rows)",
    statement=_CLOSED
    + r"C_1 = \bar d B^2 \min_\theta \big( \theta \ln(2\bar d^2+1)"
    + r"+ \ln \lceil \log_\theta \tfrac m2 \rceil \big), \quad \sum_i \|W_i\|_2 \le B",
    sides=partial(_sides, ball="2,1"),
    control=_controls("2,1"),
    note=(
        "Norms of rows in place of columns, for which Lemma 3.4 is false; the logarithms that "
        "it hides; and the factor d of ||x||_1 <= sqrt(d) behind Pi_norm."
    ),
    **_COMMON,
)


def _witness() -> Witness:
    """One row of length 1 with equal entries, and an error with equal columns."""
    return {"x": np.full(9, 1 / 3), "error": np.outer(np.eye(4)[0], np.full(9, 1e-3))}


def _rows(instance: Instance, spread: float = 1.0) -> Sides:
    """The error on a row against its resolution on the l_1 ball, the largest column."""
    error = instance["error"]
    return Sides(longest((error @ instance["x"])[None]), spread * longest(error.T))


ROWS_F_0 = Claim(
    name=f"{_PAPER}/corollary-f-0-rows",
    paper=_PAPER,
    locator="Corollaries F.0.1 and F.0.2, the inputs of inner layers",
    statement=(
        r"d=9,\ x=\tfrac13(1,\dots,1),\ W-\hat W = 10^{-3} e_1 (1,\dots,1): \quad "
        r"\sup_{\|u\|_1 \le 1} \|(W-\hat W)u\| \le \epsilon, \ \|x\|_2 \le 1 \;\Rightarrow\;"
        r"\|(W-\hat W)x\| \le \epsilon"
    ),
    kind=Kind.INEQUALITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=lambda key, count: {
        k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in _witness().items()
    },
    sides=_rows,
    control=Control(
        "with the factor sqrt(d)", sides=partial(_rows, spread=3.0), expect=Outcome.SUPPORTED
    ),
    witness=_witness,
    expect=Expectation(
        Outcome.VIOLATED, "rows behind Pi_norm may have l_1 norm sqrt(d), and the cover pays it"
    ),
    count=1,
    coverage=Coverage.EXHAUSTIVE,
    note="The corollaries apply Lemmas 3.3 and 3.4 to rows of which only ||x||_2 <= 1 is known.",
)
