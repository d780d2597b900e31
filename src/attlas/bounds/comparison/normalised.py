"""Bounds on normalised layers, Theorems 4.2 and 5.1 of trauger2023sequence, as rows of m."""

import functools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.bounds.comparison.bound_table import BALLS, FIELD, LEMMA, BoundTable, Inputs, Label
from attlas.bounds.comparison.transformer_weights import MatrixNorms
from attlas.bounds.comparison.weight_norms import WeightNorms
from attlas.bounds.constants import Constants
from attlas.bounds.covering.dudley import chain_levels, dudley_chain, dudley_integral
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.norm_grid import norm_grid_cost
from attlas.bounds.covering.parameter_counting import parameter_entropy
from attlas.bounds.covering.trauger2023_allocation import trauger2023_allocation
from attlas.bounds.covering.trauger2023_cover import Ball, trauger2023_cover
from attlas.bounds.generalisation.trauger2023_deep import Part, trauger2023_parts
from attlas.bounds.generalisation.trauger2023_masked import trauger2023_masked_parts

Cover = Ball | Literal["log T"]
COVERS: tuple[Cover, ...] = (*BALLS, "log T")
CONSTANTS: tuple[tuple[Constants, str], ...] = (
    ("corrected", "2.41, 8.24, softmax 2"),
    ("sharp", "chain, softmax 1"),
)
THRESHOLD = {"corrected": 599.3, "sharp": 67.95}
"""m R^2 / D from which Dudley and the chain are below R.

Proof: papers/trauger2023sequence/proofs/dudley.md.
"""
TINY = 1e-300
"""A matrix that is 0 has nothing to cover; this keeps the allocation defined."""


class _Shape(NamedTuple):
    """What the logarithm of a cover depends on."""

    rows: int
    columns: int
    readout: bool


class _Grid(NamedTuple):
    """One class: norms in the order of `COVERS`, costs by constants, radius, and the counts."""

    norms: Float[Array, "covers n"]
    beta: Float[Array, "2 n"]
    radius: Float[Array, ""]
    parameters: Float[Array, " n"]
    scales: Float[Array, " n"]


class _Reach(NamedTuple):
    """Bounds on the inputs of each matrix, and which of the shapes it has."""

    two: Float[Array, " n"]
    one: Float[Array, " n"]
    shape: Int[Array, " n"]


@jax.jit
def _counts(grid: _Grid) -> tuple[Array, Array]:
    """Entropies by parameter counting at the levels of the chain, and the parts' shares."""
    beta = jnp.maximum(grid.beta[1], TINY)
    arrays = grid.parameters, grid.scales, beta
    at = grid.radius / 2
    total = jnp.sum(grid.parameters)
    scale = jnp.log(grid.scales) + jnp.log(beta) + jnp.log(total / grid.parameters)
    own = grid.parameters * jnp.logaddexp(0.0, scale - jnp.log(at))
    return parameter_entropy(*arrays, chain_levels(grid.radius)), own / jnp.sum(own)


@functools.partial(jax.jit, static_argnames="shapes", compiler_options=CHEAP_COMPILATION)
def _rows(
    grid: _Grid,
    reach: _Reach,
    counted: Float[Array, "r k"],
    T: Float[Array, ""],
    m: Float[Array, " rows"],
    shapes: tuple[_Shape, ...],
) -> tuple[Array, Array, Array]:
    """Values, entropies times eps^2 and shares of the rows after the trivial one."""

    def factor(name: Cover, samples: Array) -> Array:
        found = []
        for shape in shapes:
            points = samples if shape.readout else samples * T
            if name == "log T":
                found.append(edelman2022_cover(1.0, 1.0, points, shape.rows, samples))
            else:
                sides = shape.rows, shape.columns
                found.append(trauger2023_cover(name, 1.0, 1.0, *sides, samples))
        return jnp.stack([jnp.asarray(each, grid.norms.dtype) for each in found])[reach.shape]

    def cover(name: Cover, samples: Array) -> Array:
        size = grid.norms[COVERS.index(name)]
        inputs = reach.two if name in ("1,1", "log T") else reach.one
        return jnp.maximum((size * inputs) ** 2 * factor(name, samples), TINY)

    C = [cover(name, m[i]) for i, name in enumerate((*COVERS, *COVERS), 1)]
    every = [cover(name, m[9]) for name in COVERS]
    C = jnp.stack([*C, jnp.min(jnp.stack(every), axis=0)])
    beta = grid.beta[jnp.array([0] * 4 + [1] * 5)]
    D = jax.vmap(trauger2023_allocation)(C, beta)[0]
    part = jnp.cbrt(C) * jnp.cbrt(beta) ** 2
    # an entropy that overflows leaves the trivial value
    usable = jnp.where(jnp.isfinite(D), D, 1.0)
    radius = grid.radius
    integral = jax.vmap(lambda D, m: dudley_integral(0.0, D, m, radius))(usable[:4], m[1:5])
    integral = jnp.where(jnp.isfinite(D[:4]), jnp.minimum(integral, radius), radius)
    chain = jax.vmap(lambda D, m: dudley_chain(lambda e: D / e**2, m, radius))(usable[4:], m[5:10])
    chain = jnp.where(jnp.isfinite(D[4:]), chain, radius)
    count = dudley_chain(lambda _: counted, m[10], radius)
    values = jnp.concatenate([integral, chain, count[None]])
    return values, D, part / jnp.sum(part, axis=1, keepdims=True)


def _matrices(norms: WeightNorms) -> tuple[MatrixNorms, ...]:
    """The readout, then W_c, W_v, W_QK head by head."""
    return (norms.readout, *(each for heads in norms.layers for head in heads for each in head))


def _parts(norms: WeightNorms, B_x: float, lipschitz: float, constants: Constants) -> list[Part]:
    """Costs of the matrices; layers of fewer heads are filled with zero heads and cut again."""
    widest = max(len(heads) for heads in norms.layers)
    sizes = np.zeros((3, len(norms.layers), widest))
    for layer, heads in enumerate(norms.layers):
        for head, triple in enumerate(heads):
            sizes[:, layer, head] = [each.spectral for each in triple]
    c, v, qk = (jax.device_put(size) for size in sizes)
    readout = norms.readout.row_length
    parts = trauger2023_parts(c, v, qk, readout, B_x, lipschitz, constants=constants)
    kept = [parts[0]]
    for layer, heads in enumerate(norms.layers):
        start = 1 + 3 * layer * widest
        kept += parts[start : start + 3 * len(heads)]
    return trauger2023_masked_parts(kept) if norms.masked else kept


def _inputs_of(
    parts: list[Part], norms: Sequence[MatrixNorms], tokens: Inputs
) -> tuple[_Reach, tuple[_Shape, ...]]:
    """Euclidean and l_1 bounds on the inputs of each matrix, and the shapes there are."""
    two, one, kinds = [], [], []
    for part, each in zip(parts, norms, strict=True):
        spread = math.sqrt(each.columns) * part.reach
        raw = part.layer == 1 and part.kind != "output"
        two.append(part.reach)
        one.append(min(spread, tokens.one) if raw else spread)
        kinds.append(_Shape(each.rows, each.columns, part.kind == "readout"))
    shapes = tuple(dict.fromkeys(kinds))
    index = [shapes.index(kind) for kind in kinds]
    return _Reach(*(jax.device_put(np.array(each)) for each in (two, one, index))), shapes


def _grid(norms: WeightNorms, tokens: Inputs, lipschitz: float, loss_range: float) -> _Grid:
    """The arrays of one class."""
    matrices = _matrices(norms)
    parts = [_parts(norms, tokens.two, lipschitz, constants) for constants, _ in CONSTANTS]
    parameters, scales = [], []
    for part, each in zip(parts[0], matrices, strict=True):
        full, low = each.rows * each.columns, each.rank * (each.rows + each.columns)
        parameters.append(float(min(full, low)))
        factor = 2.0 if full <= low else 4.0
        scales.append(max(factor * each.spectral * part.reach, TINY))
    # a constant taken off the losses leaves the complexity as it is: half the range is enough
    radius = loss_range / 2 if norms.masked else max(norms.readout.row_length, TINY)
    arrays = (
        [[getattr(each, FIELD[name]) for each in matrices] for name in COVERS],
        [[float(part.beta) for part in each] for each in parts],
        radius,
        parameters,
        scales,
    )
    return _Grid(*(jax.device_put(np.array(each)) for each in arrays))


def _prices(norms: WeightNorms, resolution: int | None) -> np.ndarray:
    """Nats of the norms of each row; none for norms that were fixed in advance."""
    if resolution is None:
        return np.zeros(11)
    matrices = _matrices(norms)
    union_costs = norm_grid_cost(np.array([each[3:] for each in matrices]), resolution)
    union_cost = dict(zip(MatrixNorms._fields[3:], union_costs.T, strict=True))
    # in the cost of a deep error stand the spectral norms, and the longest row of the readout
    base = union_cost["row_length"][0] + float(union_cost["spectral"][1:].sum())
    either = (len(matrices) - 1) / 3 * math.log(2)  # the better orientation is picked afterwards
    of = [
        base + float(union_cost[FIELD[name]].sum()) + (0.0 if name == "1,1" else either)
        for name in COVERS
    ]
    dearest = np.max([union_cost[FIELD[name]] for name in COVERS], axis=0)
    mixed = base + float(dearest.sum()) + len(matrices) * math.log(len(COVERS)) + either
    largest = 0.0 if norms.masked else float(union_cost["row_length"][0])
    return np.array([largest, *of, *of, mixed, base + float(union_cost["spectral"][0])])


def _labels(masked: bool) -> tuple[Label, ...]:
    """The rows in order."""
    what = "half the range of the loss" if masked else "largest |output| of the class"
    theorem = "Theorem 5.1 by a cover of the scores" if masked else "Theorem 4.2"
    rows = [Label("trivial", True, "none", what)]
    for constants, words in CONSTANTS:
        for name in (*COVERS, "mixed") if constants == "sharp" else COVERS:
            rows.append(Label(f"{name} {constants}", True, words, f"{theorem}, {_reason(name)}"))
    last = f"{theorem}, dimensions times logarithms of spectral norms"
    return (*rows, Label("parameters", True, "chain, softmax 1", last))


def _reason(name: str) -> str:
    """Which cover a name means."""
    if name in LEMMA:
        return f"all matrices by {LEMMA[name]}"
    if name == "mixed":
        return "each matrix by its smallest cover"
    return "all matrices by the cover of Edelman et al. 2022 at m T tokens"


def _part_names(parts: list[Part], norms: WeightNorms) -> tuple[str, ...]:
    """Such as W_QK of layer 1, head 2."""
    heads = [len(layer) for layer in norms.layers]
    numbers = [n for count in heads for n in range(1, count + 1) for _ in range(3)]
    matrix = {"output": "W_c", "value": "W_v", "query_key": "W_QK"}
    names = ["the readout"]
    for part, number in zip(parts[1:], numbers, strict=True):
        which = f", head {number}" if heads[part.layer - 1] > 1 else ""
        names.append(f"{matrix[part.kind]} of layer {part.layer}{which}")
    return tuple(names)


def normalised(
    grids: Sequence[tuple[WeightNorms, int | None]],
    tokens: Inputs,
    m: int,
    lipschitz: float,
    loss_range: float,
) -> BoundTable:
    """The rows of layers with normalisation; of the losses where the readout has K rows.

    Args:
        grids: norms with the resolution of the grid that they were rounded to, None for norms
            that cost nothing.
        tokens: norms of the inputs.
        m: samples at which shares and `log10_samples` are given.
        lipschitz: L_sigma.
        loss_range: length of the interval of the losses, for a readout of K rows.

    Returns:
        The rows.

    Source: Theorems 4.2 and 5.1 of trauger2023sequence; constants derived.
    """
    first = grids[0][0]
    labels, matrices = _labels(first.masked), _matrices(first)
    parts = _parts(first, tokens.two, lipschitz, "sharp")
    reach, shapes = _inputs_of(parts, matrices, tokens)
    arrays = [_grid(norms, tokens, lipschitz, loss_range) for norms, _ in grids]
    counted = [_counts(grid) for grid in arrays]
    T = jax.device_put(np.array(float(tokens.T)))

    def each(samples: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        at = jax.device_put(np.asarray(samples, float))
        pairs = zip(arrays, counted, strict=True)
        found = [_rows(grid, reach, count, T, at, shapes) for grid, (count, _) in pairs]
        return [tuple(map(np.asarray, rows)) for rows in found]

    radius = np.array([float(grid.radius) for grid in arrays])

    def values(samples: np.ndarray) -> np.ndarray:
        rows = np.array([found[0] for found in each(samples)])
        return np.concatenate([radius[:, None], rows], axis=1)

    _, entropy, shares = each(np.full(len(labels), float(m)))[0]
    return BoundTable(
        labels,
        values,
        np.array([_prices(*grid) for grid in grids]),
        _part_names(parts, first),
        np.concatenate([np.zeros((1, len(parts))), shares, np.asarray(counted[0][1])[None]]),
        _log10_samples(entropy, radius[0]),
    )


def _log10_samples(entropy: np.ndarray, radius: float) -> np.ndarray:
    """Of all rows, from entropies times eps^2 of those between the first and the last."""
    limits = [THRESHOLD["corrected"]] * len(COVERS) + [THRESHOLD["sharp"]] * (len(COVERS) + 1)
    needed = np.log10(limits) + np.log10(entropy) - 2 * math.log10(radius)
    return np.array([math.nan, *needed, math.nan])
