"""The class of normalised networks that norms define: what its covers are computed from."""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attlas.bounds.comparison.bound_table import TINY, Inputs
from attlas.bounds.comparison.transformer_weights import MatrixNorms
from attlas.bounds.comparison.weight_norms import WeightNorms
from attlas.bounds.constants import Constants
from attlas.bounds.covering.dudley import chain_levels
from attlas.bounds.covering.norm_grid import norm_grid_cost
from attlas.bounds.covering.parameter_counting import parameter_entropy
from attlas.bounds.generalisation.trauger2023_deep import Part, trauger2023_parts
from attlas.bounds.generalisation.trauger2023_masked import trauger2023_masked_parts
from attlas.core.errors import refuse_misfits

_COSTS: tuple[Constants, ...] = ("corrected", "sharp")


class Shape(NamedTuple):
    """What the logarithm of a cover depends on."""

    rows: int
    columns: int
    readout: bool


class NetworkClass(eqx.Module):
    """Networks with bounded norms; arrays over matrices have the readout first.

    Attributes:
        T: number of tokens.
        radius: largest absolute value of an output, or half the range of the loss.
        norms: of every matrix, under the names of `MatrixNorms`, with rows, columns and rank.
        beta: what an error in each matrix costs in the output, by `Constants`.
        l2: largest Euclidean norm of the inputs of each matrix.
        l1: their largest l_1 norm.
        counted: entropies by parameter counting at the levels of `dudley_chain`, without m.
        shape: index of each matrix in `shapes`.
        shapes: the shapes that occur.
    """

    T: Float[Array, ""]
    radius: Float[Array, ""]
    norms: dict[str, Float[Array, " n"]]
    beta: dict[str, Float[Array, " n"]]
    l2: Float[Array, " n"]
    l1: Float[Array, " n"]
    counted: Float[Array, "r k"]
    shape: Int[Array, " n"]
    shapes: tuple[Shape, ...] = eqx.field(static=True)

    def by_shape(self, value: Callable[[Shape], Array]) -> Float[Array, " n"]:
        """A number for every matrix that depends on its shape alone."""
        values = [jnp.asarray(value(shape), self.radius.dtype) for shape in self.shapes]
        return jnp.stack(values)[self.shape]


class NetworkCosts(NamedTuple):
    """Nats of norms that were measured after training.

    Attributes:
        norms: nats of every matrix, under the names of `MatrixNorms`, the readout first.
        masked: whether the readout has a row for each token of a vocabulary.
    """

    norms: dict[str, Float[np.ndarray, " n"]]
    masked: bool

    @property
    def recursion(self) -> float:
        """Of what the cost of an error is made of: spectral norms, longest row of the readout."""
        return self.norms["row_length"][0] + float(self.norms["spectral"][1:].sum())

    @property
    def orientation(self) -> float:
        """Of W_QK or its transpose: the smaller norm is picked afterwards, head by head."""
        return (len(self.norms["spectral"]) - 1) / 3 * math.log(2)


def network_class(
    norms: WeightNorms, tokens: Inputs, lipschitz: float, loss_range: float
) -> NetworkClass:
    """The class of one grid of norms, on the device.

    Examples:
        >>> from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
        >>> from attlas.bounds.comparison.weight_norms import weight_norms
        >>> head = Head(np.eye(2), np.eye(2), np.eye(2))
        >>> norms = weight_norms(TransformerWeights(((head,),), np.array([3.0, 4.0])))
        >>> found = network_class(norms, Inputs(T=4, l2=1.0, l1=1.0, largest=1.0), 1.0, 2.0)
        >>> print(f"{found.radius:.6f}", found.norms["rows"].tolist())
        5.000000 [1.0, 2.0, 2.0, 2.0]
    """
    matrices = _matrices(norms)
    recursion = {
        constants: _recursion(norms, tokens.l2, lipschitz, constants) for constants in _COSTS
    }
    l2, l1, kinds = [], [], []
    for part, matrix in zip(recursion["sharp"], matrices, strict=True):
        spread = math.sqrt(matrix.columns) * part.input_norm
        raw = part.layer == 1 and part.kind != "output"
        l2.append(part.input_norm)
        l1.append(min(spread, tokens.l1) if raw else spread)
        kinds.append(Shape(matrix.rows, matrix.columns, part.kind == "readout"))
    shapes = tuple(dict.fromkeys(kinds))
    # a constant taken off the losses leaves the complexity as it is: half the range is enough
    radius = loss_range / 2 if norms.masked else max(norms.readout.row_length, TINY)

    def put(values: object) -> Array:
        return jax.device_put(np.array(values, float))

    columns = zip(MatrixNorms._fields, zip(*matrices, strict=True), strict=True)
    sizes = {name: put(values) for name, values in columns}
    beta = {name: put([float(part.beta) for part in costs]) for name, costs in recursion.items()}
    return NetworkClass(
        put(float(tokens.T)),
        put(radius),
        sizes,
        beta,
        put(l2),
        put(l1),
        _counted(sizes, put(l2), beta["sharp"], put(radius)),
        jax.device_put(np.array([shapes.index(kind) for kind in kinds])),
        shapes,
    )


@refuse_misfits
def counting(norms: dict[str, Array], l2: Float[Array, " n"]) -> tuple[Array, Array]:
    """Free parameters of every matrix, whole or as two factors, and scales of their cells.

    Examples:
        >>> norms = {"rows": 4.0, "columns": 4.0, "rank": 1.0, "spectral": 3.0}
        >>> norms = {name: jnp.array([value]) for name, value in norms.items()}
        >>> [array.tolist() for array in counting(norms, jnp.ones(1))]
        [[8.0], [12.0]]
    """
    full, l2 = norms["rows"] * norms["columns"], jnp.asarray(l2)
    low = norms["rank"] * (norms["rows"] + norms["columns"])
    factor = jnp.where(full <= low, 2.0, 4.0)
    return jnp.minimum(full, low), jnp.maximum(factor * norms["spectral"] * l2, TINY)


@jax.jit
def _counted(norms: dict[str, Array], l2: Array, beta: Array, radius: Array) -> Array:
    return parameter_entropy(*counting(norms, l2), jnp.maximum(beta, TINY), chain_levels(radius))


def network_costs(norms: WeightNorms, resolution: int) -> NetworkCosts:
    """The nats of all norms on one grid.

    Examples:
        >>> from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
        >>> from attlas.bounds.comparison.weight_norms import weight_norms
        >>> head = Head(np.eye(2), np.eye(2), np.eye(2))
        >>> nats = network_costs(weight_norms(TransformerWeights(((head,),), np.ones(2))), 3)
        >>> nats.norms["spectral"].shape, f"{nats.orientation / math.log(2):.6f}"
        ((4,), '1.000000')
    """
    nats = norm_grid_cost(np.array([matrix[3:] for matrix in _matrices(norms)]), resolution)
    return NetworkCosts(dict(zip(MatrixNorms._fields[3:], nats.T, strict=True)), norms.masked)


def part_names(norms: WeightNorms) -> tuple[str, ...]:
    """Names of the matrices in the order of a class, such as "W_QK of layer 1, head 2".

    Examples:
        >>> from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
        >>> from attlas.bounds.comparison.weight_norms import weight_norms
        >>> head = Head(np.eye(2), np.eye(2), np.eye(2))
        >>> part_names(weight_norms(TransformerWeights(((head,),), np.ones(2))))
        ('the readout', 'W_c of layer 1', 'W_v of layer 1', 'W_QK of layer 1')
    """
    names = ["the readout"]
    for layer, heads in enumerate(norms.layers, 1):
        for number in range(1, len(heads) + 1):
            head = f", head {number}" if len(heads) > 1 else ""
            names += [f"{matrix} of layer {layer}{head}" for matrix in ("W_c", "W_v", "W_QK")]
    return tuple(names)


def _matrices(norms: WeightNorms) -> tuple[MatrixNorms, ...]:
    """The readout, then W_c, W_v, W_QK head by head."""
    return (norms.readout, *(norm for heads in norms.layers for head in heads for norm in head))


def _recursion(
    norms: WeightNorms, B_x: float, lipschitz: float, constants: Constants
) -> list[Part]:
    """Costs of the matrices; layers of fewer heads are filled with zero heads and cut again."""
    widest = max(len(heads) for heads in norms.layers)
    sizes = np.zeros((3, len(norms.layers), widest))
    for layer, heads in enumerate(norms.layers):
        for head, triple in enumerate(heads):
            sizes[:, layer, head] = [matrix.spectral for matrix in triple]
    c, v, qk = (jax.device_put(size) for size in sizes)
    readout = norms.readout.row_length
    padded = trauger2023_parts(c, v, qk, readout, B_x, lipschitz, constants=constants)
    matrices = [padded[0]]
    for layer, heads in enumerate(norms.layers):
        start = 1 + 3 * layer * widest
        matrices += padded[start : start + 3 * len(heads)]
    return trauger2023_masked_parts(matrices) if norms.masked else matrices
