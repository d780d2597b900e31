"""The list of bounds on one layer without normalisation, Theorem 4.1 of trauger2023sequence.

Each `NormBound` of `PLAIN` is about a single head, and the heads of a layer add up.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.bounds.comparison.bound_table import (
    BALLS,
    CORRECTED,
    FIELD,
    LEMMA,
    SHARP,
    TINY,
    BoundTable,
    Complexity,
    Inputs,
    NormBound,
    TheoremCondition,
    union_costs,
)
from attlas.bounds.comparison.transformer_weights import MatrixNorms
from attlas.bounds.comparison.weight_norms import WeightNorms
from attlas.bounds.constants import Constants
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.norm_grid import norm_grid_cost
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import Ball, trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas.core.errors import refuse_misfits
from attlas.core.ranges import require_at_least

THEOREM_4_1 = (
    TheoremCondition(
        lambda weights, m: m > weights.readout.shape[-1],
        "m = {m} samples: Theorem 4.1 requires more than d = {d}; give more data",
        lambda weights: weights.readout.shape[-1] + 1,
    ),
    TheoremCondition(
        lambda weights, m: len(weights.layers) == 1 and weights.readout.ndim == 1,
        "model 'plain' is one layer with a readout (d,): use model 'normalised'",
    ),
)
CONSTANTS: tuple[tuple[Constants, str], ...] = (
    ("printed", "unknown c set to 1"),
    ("corrected", CORRECTED),
    ("sharp", SHARP),
)


class HeadClass(eqx.Module):
    """One head with bounded norms.

    Attributes:
        outer: product of the norms outside the attention.
        norms: of W_QK, under the names of `MatrixNorms`.
        T: number of tokens.
        l2: largest Euclidean norm of a token.
        l1: its largest l_1 norm.
        largest: its largest entry.
        d: embedding dimension.
    """

    outer: Float[Array, "..."]
    norms: dict[str, Float[Array, "..."]]
    T: Float[Array, ""]
    l2: Float[Array, ""]
    l1: Float[Array, ""]
    largest: Float[Array, ""]
    d: int = eqx.field(static=True)


class LayerCosts(NamedTuple):
    """Nats of norms that were measured after training.

    Attributes:
        outer: of all norms outside the attention.
        norms: of W_QK of every head, under the names of `MatrixNorms`.
    """

    outer: float
    norms: dict[str, Float[np.ndarray, " H"]]

    def total(self, norm: str, *, turned: bool = False) -> float:
        """Of one norm of every W_QK; of its transpose where that is `turned` and smaller."""
        either = len(self.norms[norm]) * math.log(2) if turned else 0.0
        return self.outer + (float(self.norms[norm].sum()) + either)


def _trivial(head: HeadClass, m: Array) -> Complexity:
    return Complexity(head.outer * head.largest)


def _by_cover(
    label: str,
    reason: str,
    coefficient: Callable[[HeadClass, Array], Array],
    cost: Callable[[LayerCosts], float],
    constants: tuple[Constants, str] = ("sharp", SHARP),
) -> NormBound[HeadClass, LayerCosts]:
    """Theorem 4.1 with a cover of W_QK."""
    which, words = constants

    def value(head: HeadClass, m: Array) -> Complexity:
        C = jnp.maximum(coefficient(head, m), TINY)
        return Complexity(
            trauger2023_single(
                head.outer, C, head.l2, head.d, m, constants=which, largest_entry=head.largest
            )
        )

    return NormBound(label, reason, words, value, cost, THEOREM_4_1, which != "printed")


def _balls(ball: Ball) -> list[NormBound[HeadClass, LayerCosts]]:
    """Theorem 4.1 with one ball, for all constants."""
    field = FIELD[ball]

    def coefficient(head: HeadClass, m: Array) -> Array:
        inputs = head.l2 if ball == "1,1" else head.l1
        return trauger2023_cover(ball, head.norms[field], inputs, head.d, head.d, m)

    reason = f"Theorem 4.1 with {LEMMA[ball]}, ||W_QK||_{{{ball}}}"
    return [
        _by_cover(
            f"{ball} {constants[0]}",
            reason,
            coefficient,
            lambda nats: nats.total(field, turned=ball != "1,1"),
            constants,
        )
        for constants in CONSTANTS
    ]


def _counted(head: HeadClass, m: Array) -> Complexity:
    """The smaller of the counts of W_QK and of its two factors."""
    d, norms = head.d, head.norms

    def bound(parameters: Array, factored: bool) -> Array:
        return parameter_counting_single(
            head.outer, norms["spectral"], head.l2, parameters, d, m, factored
        )

    rank = norms["rank"]
    return Complexity(
        jnp.minimum(bound(jnp.full_like(rank, d**2), False), bound(2 * d * rank, True))
    )


PLAIN: tuple[NormBound[HeadClass, LayerCosts], ...] = (
    NormBound(
        "trivial",
        "largest |output| of the class",
        "none",
        _trivial,
        lambda nats: nats.outer,
        THEOREM_4_1,
    ),
    *(bound for ball in BALLS for bound in _balls(ball)),
    _by_cover(
        "log T",
        "Edelman et al. 2022 cover of W_QK at m T tokens",
        lambda head, m: edelman2022_cover(head.norms["row_sum"], head.l2, m * head.T, head.d, m),
        lambda nats: nats.total("row_sum", turned=True),
    ),
    _by_cover(
        "log m",
        "Edelman et al. 2022 cover of W_QK at m [CLS] tokens",
        lambda head, m: edelman2022_cover(head.norms["column_sum"], head.l2, m, head.d, m),
        lambda nats: nats.total("column_sum"),
    ),
    NormBound(
        "parameters",
        "dimension of W_QK times logarithm of its spectral norm",
        SHARP,
        _counted,
        lambda nats: nats.total("spectral"),
        THEOREM_4_1,
    ),
)


@functools.partial(jax.jit, static_argnames="bounds", compiler_options=CHEAP_COMPILATION)
def _by_head(
    bounds: tuple[NormBound[HeadClass, LayerCosts], ...],
    heads: HeadClass,
    m: Float[Array, " bounds"],
) -> Float[Array, "bounds H"]:
    """Every bound of every head, each bound at its own m."""

    def values(outer: Array, norms: dict[str, Array]) -> list[Array]:
        head = replace(heads, outer=outer, norms=norms)
        return [bound.value(head, at).value for bound, at in zip(bounds, m, strict=True)]

    return jnp.stack(jax.vmap(values)(heads.outer, heads.norms))


def _heads(norms: WeightNorms, tokens: Inputs, lipschitz: float) -> HeadClass:
    """The heads of one grid of norms, on the device."""
    layer = norms.layers[0]
    # columns of W_c and of W_v are the rows of what acts on the features
    outer = [norms.readout.total * lipschitz * head.output.row * head.value.row for head in layer]
    columns = zip(*(head.query_key for head in layer), strict=True)
    sizes = dict(zip(MatrixNorms._fields, columns, strict=True))

    def put(values: object) -> Array:
        return jax.device_put(np.array(values, float))

    return HeadClass(
        put(outer),
        {name: put(values) for name, values in sizes.items()},
        put(tokens.T),
        put(tokens.l2),
        put(tokens.l1),
        put(tokens.largest),
        layer[0].query_key.rows,
    )


def _costs(norms: WeightNorms, resolution: int) -> LayerCosts:
    """The nats of all norms on one grid."""
    layer = norms.layers[0]
    outer = [norms.readout.total, *(n for h in layer for n in (h.output.row, h.value.row))]
    nats = norm_grid_cost(np.array([head.query_key[3:] for head in layer]), resolution)
    return LayerCosts(
        float(norm_grid_cost(np.array(outer), resolution).sum()),
        dict(zip(MatrixNorms._fields[3:], nats.T, strict=True)),
    )


@refuse_misfits
def unnormalised(
    grids: Sequence[tuple[WeightNorms, int | None]], tokens: Inputs, m: int, lipschitz: float
) -> BoundTable:
    """The bounds on one layer without normalisation, heads added up.

    Here L_sigma is `lipschitz`.

    Args:
        grids: norms with the resolution of the grid that they were rounded to, None for norms
            that cost nothing.
        tokens: norms of the inputs.
        m: samples at which shares are computed.

    Source: Theorem 4.1 of trauger2023sequence; constants derived.

    Examples:
        The readout adds an entry of size one times 3 to one times 4.

        >>> from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
        >>> from attlas.bounds.comparison.weight_norms import weight_norms
        >>> head = Head(np.eye(2), np.eye(2), np.eye(2))
        >>> norms = weight_norms(TransformerWeights(((head,),), np.array([3.0, 4.0])))
        >>> rows = unnormalised([(norms, None)], Inputs(4, 1.0, 1.0, 1.0), 100, 1.0)
        >>> rows.part_names, f"{rows.values(np.full(len(rows.bounds), 100.0))[0, 0]:.6f}"
        (('head 1',), '7.000000')
    """
    require_at_least(1, m=m)
    require_at_least(0, lipschitz=lipschitz)
    classes = [_heads(norms, tokens, lipschitz) for norms, _ in grids]
    # a formula with its constant unknown is no bound and is shown as it comes out
    is_bound = np.array([bound.is_bound for bound in PLAIN])

    def by_head(samples: np.ndarray, heads: HeadClass) -> np.ndarray:
        return np.asarray(_by_head(PLAIN, heads, jax.device_put(np.asarray(samples, float))))

    def values(samples: np.ndarray) -> np.ndarray:
        sums = np.array([by_head(samples, heads).sum(1) for heads in classes])
        return np.where(is_bound[None, :], np.minimum(sums, sums[:, :1]), sums)

    sizes = np.abs(by_head(np.full(len(PLAIN), float(m)), classes[0]))
    return BoundTable(
        PLAIN,
        tuple(bound.reason for bound in PLAIN),
        values,
        union_costs(PLAIN, grids, _costs),
        tuple(f"head {number}" for number in range(1, sizes.shape[1] + 1)),
        sizes / np.maximum(sizes.sum(1, keepdims=True), TINY),
        np.full(len(PLAIN), math.nan),
    )
