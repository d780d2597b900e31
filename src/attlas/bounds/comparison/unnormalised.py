"""Bounds on one layer without normalisation, Theorem 4.1 of trauger2023sequence, as rows of m."""

import functools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.bounds.comparison.bound_table import BALLS, FIELD, LEMMA, BoundTable, Inputs, Label
from attlas.bounds.comparison.weight_norms import WeightNorms
from attlas.bounds.constants import Constants
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.norm_grid import norm_grid_cost
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import Ball, trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single

CONSTANTS: tuple[tuple[Constants, str], ...] = (
    ("printed", "unknown c set to 1"),
    ("corrected", "2.41, 8.24, softmax 2"),
    ("sharp", "chain, softmax 1"),
)
Cover = Ball | Literal["log T", "log m"]
COVERS: tuple[Cover, ...] = (*BALLS, "log T", "log m")
FIELDS: dict[str, str] = {**FIELD, "log m": "column_sum"}
TINY = 1e-300
"""A matrix that is 0 has nothing to cover; this keeps logarithms defined."""


class _Heads(NamedTuple):
    """One grid: outer factor, norms in the order of `COVERS`, spectral norm, by head."""

    outer: Float[Array, " H"]
    norms: Float[Array, "covers H"]
    spectral: Float[Array, " H"]


def _labels() -> tuple[Label, ...]:
    """The rows in order."""
    rows = [Label("trivial", True, "none", "largest |output| of the class")]
    for ball in BALLS:
        where = f"Theorem 4.1 with {LEMMA[ball]}, ||W_QK||_{{{ball}}}"
        rows += [
            Label(f"{ball} {constants}", constants != "printed", words, where)
            for constants, words in CONSTANTS
        ]
    where = "Edelman et al. 2022 cover of W_QK at"
    last = "dimension of W_QK times logarithm of its spectral norm"
    return (
        *rows,
        Label("log T", True, "chain, softmax 1", f"{where} m T tokens"),
        Label("log m", True, "chain, softmax 1", f"{where} m [CLS] tokens"),
        Label("parameters", True, "chain, softmax 1", last),
    )


@functools.partial(jax.jit, static_argnames="d", compiler_options=CHEAP_COMPILATION)
def _by_head(
    heads: _Heads,
    ranks: Float[Array, " H"],
    tokens: Float[Array, " 4"],
    m: Float[Array, " rows"],
    d: int,
) -> Float[Array, "rows H"]:
    """Every row before its sum over heads; `tokens` are T and the three norms."""
    T, two, one, largest = tokens

    def cover(name: Cover, size: Array, samples: Array) -> Array:
        if name == "log T" or name == "log m":
            points = samples * T if name == "log T" else samples
            C = edelman2022_cover(size, two, points, d, samples)
        else:
            reach = two if name == "1,1" else one
            C = trauger2023_cover(name, size, reach, d, d, samples)
        return jnp.maximum(C, TINY)

    def row(name: Cover, constants: Constants, samples: Array) -> Array:
        size = heads.norms[COVERS.index(name)]
        return jax.vmap(
            lambda B, norm: trauger2023_single(
                B,
                cover(name, norm, samples),
                two,
                d,
                samples,
                constants=constants,
                largest_entry=largest,
            )
        )(heads.outer, size)

    def counted(factored: bool) -> Array:
        p = 2 * d * ranks if factored else jnp.full_like(ranks, d**2)
        return jax.vmap(
            lambda B, norm, count: parameter_counting_single(
                B, norm, two, count, d, m[-1], factored
            )
        )(heads.outer, heads.spectral, p)

    wanted: list[tuple[Cover, Constants]] = []
    for ball in BALLS:
        for constants, _ in CONSTANTS:
            wanted.append((ball, constants))
    wanted.append(("log T", "sharp"))
    wanted.append(("log m", "sharp"))
    found = [row(name, which, m[i]) for i, (name, which) in enumerate(wanted, 1)]
    return jnp.stack([heads.outer * largest, *found, jnp.minimum(counted(False), counted(True))])


def _heads(norms: WeightNorms, lipschitz: float) -> _Heads:
    """The arrays of one grid."""
    layer = norms.layers[0]
    # columns of W_c and of W_v are the rows of what acts on the features
    outer = [norms.readout.total * lipschitz * head.output.row * head.value.row for head in layer]
    sizes = [[getattr(head.query_key, FIELDS[name]) for head in layer] for name in COVERS]
    spectral = [head.query_key.spectral for head in layer]
    return _Heads(*(jax.device_put(np.array(each)) for each in (outer, sizes, spectral)))


def _prices(norms: WeightNorms, resolution: int | None) -> np.ndarray:
    """Nats of the norms of each row; none for norms that were fixed in advance."""
    if resolution is None:
        return np.zeros(len(_labels()))
    layer = norms.layers[0]

    def union_cost(*values: float) -> float:
        return float(norm_grid_cost(np.array(values), resolution).sum())

    base = union_cost(norms.readout.total, *(n for h in layer for n in (h.output.row, h.value.row)))
    either = len(layer) * math.log(2)  # the better orientation is picked afterwards
    of = {
        name: union_cost(*(getattr(h.query_key, field) for h in layer))
        + (0.0 if name in ("1,1", "log m") else either)
        for name, field in FIELDS.items()
    }
    rows = [0.0, *(of[ball] for ball in BALLS for _ in CONSTANTS), of["log T"], of["log m"]]
    return base + np.array([*rows, union_cost(*(h.query_key.spectral for h in layer))])


def unnormalised(
    grids: Sequence[tuple[WeightNorms, int | None]], tokens: Inputs, m: int, lipschitz: float
) -> BoundTable:
    """The rows of one layer without normalisation, heads added up.

    Args:
        grids: norms with the resolution of the grid that they were rounded to, None for norms
            that cost nothing.
        tokens: norms of the inputs.
        m: samples at which shares are given.
        lipschitz: L_sigma.

    Returns:
        The rows.

    Source: Theorem 4.1 of trauger2023sequence; constants derived.
    """
    layer = grids[0][0].layers[0]
    labels, d = _labels(), layer[0].query_key.rows
    sizes = jax.device_put(np.array(tokens, float))
    ranks = jax.device_put(np.array([float(head.query_key.rank) for head in layer]))
    heads = [_heads(norms, lipschitz) for norms, _ in grids]

    def each(samples: np.ndarray) -> list[np.ndarray]:
        at = jax.device_put(np.asarray(samples, float))
        return [np.asarray(_by_head(part, ranks, sizes, at, d)) for part in heads]

    def values(samples: np.ndarray) -> np.ndarray:
        found = np.array([rows.sum(1) for rows in each(samples)])
        # a formula with its constant unknown is no bound and is shown as it comes out
        bound = np.array([label.is_bound for label in labels])
        return np.where(bound[None, :], np.minimum(found, found[:, :1]), found)

    own = np.abs(each(np.full(len(labels), float(m)))[0])
    return BoundTable(
        labels,
        values,
        np.array([_prices(*grid) for grid in grids]),
        tuple(f"head {number}" for number in range(1, len(layer) + 1)),
        own / np.maximum(own.sum(1, keepdims=True), TINY),
        np.full(len(labels), math.nan),
    )
