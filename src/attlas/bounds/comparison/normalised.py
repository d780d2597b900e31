"""The list of bounds on normalised layers, Theorems 4.2 and 5.1 of trauger2023sequence.

A new bound is one more `NormBound` in `NORMALISED`.
"""

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.bounds.comparison.bound_table import (
    BALLS,
    FIELD,
    LEMMA,
    SHARP,
    TINY,
    BoundTable,
    Complexity,
    Inputs,
    NormBound,
    union_costs,
)
from attlas.bounds.comparison.network_class import (
    NetworkClass,
    NetworkCosts,
    counting,
    network_class,
    network_costs,
    part_names,
)
from attlas.bounds.comparison.network_cover import Cover, by_cover
from attlas.bounds.comparison.weight_norms import WeightNorms
from attlas.bounds.covering.dudley import dudley_chain
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.trauger2023_cover import Ball, trauger2023_cover
from attlas.core.errors import refuse_misfits
from attlas.core.ranges import require_at_least


def _ball(ball: Ball) -> Cover:
    """A cover of trauger2023sequence."""

    def coefficients(network: NetworkClass, m: Float[Array, ""]) -> Float[Array, " n"]:
        unit = network.by_shape(lambda s: trauger2023_cover(ball, 1.0, 1.0, s.rows, s.columns, m))
        inputs = network.l2 if ball == "1,1" else network.l1
        return (network.norms[FIELD[ball]] * inputs) ** 2 * unit

    return Cover(ball, f"all matrices by {LEMMA[ball]}", FIELD[ball], coefficients)


def _edelman(network: NetworkClass, m: Float[Array, ""]) -> Float[Array, " n"]:
    """The cover of Edelman et al. (2022); the readout acts on one token of each sample."""
    unit = network.by_shape(
        lambda s: edelman2022_cover(1.0, 1.0, m if s.readout else m * network.T, s.rows, m)
    )
    return (network.norms["row_sum"] * network.l2) ** 2 * unit


_TOKENS = "all matrices by the cover of Edelman et al. 2022 at m T tokens"
COVERS = (*(_ball(ball) for ball in BALLS), Cover("log T", _TOKENS, "row_sum", _edelman))


def _smallest(network: NetworkClass, m: Array) -> Array:
    """The smallest cover of each matrix."""
    return functools.reduce(jnp.minimum, [cover.coefficients(network, m) for cover in COVERS])


def _smallest_cost(nats: NetworkCosts) -> float:
    """Nats of the dearest norm of each matrix, and of the name of its cover."""
    dearest = np.max([nats.norms[cover.norm] for cover in COVERS], axis=0)
    names = len(dearest) * math.log(len(COVERS))
    return nats.recursion + float(dearest.sum()) + names + nats.orientation


def _trivial(network: NetworkClass, m: Array) -> Complexity:
    return Complexity(network.radius, jnp.zeros_like(network.l2))


def _counted(network: NetworkClass, m: Array) -> Complexity:
    """Parameter counting, with the shares of its entropy at half the radius."""
    radius = network.radius
    parameters, scales = counting(network.norms, network.l2)
    beta = jnp.maximum(network.beta["sharp"], TINY)
    cells = jnp.log(scales) + jnp.log(beta) + jnp.log(jnp.sum(parameters) / parameters)
    entropies = parameters * jnp.logaddexp(0.0, cells - jnp.log(radius / 2))
    return Complexity(dudley_chain(lambda _: network.counted, m, radius), entropies)


NORMALISED: tuple[NormBound[NetworkClass, NetworkCosts], ...] = (
    NormBound(
        "trivial",
        "{radius}",
        "none",
        _trivial,
        lambda nats: 0.0 if nats.masked else float(nats.norms["row_length"][0]),
    ),
    *(cover.bound("corrected") for cover in COVERS),
    *(cover.bound("sharp") for cover in COVERS),
    by_cover("mixed", "each matrix by its smallest cover", _smallest, _smallest_cost, "sharp"),
    NormBound(
        "parameters",
        "{theorem}, dimensions times logarithms of spectral norms",
        SHARP,
        _counted,
        lambda nats: nats.recursion + float(nats.norms["spectral"][0]),
    ),
)


@functools.partial(jax.jit, static_argnames="bounds", compiler_options=CHEAP_COMPILATION)
def _complexities(
    bounds: tuple[NormBound, ...], network: NetworkClass, m: Float[Array, " bounds"]
) -> tuple[Array, Array, Array]:
    """Values, entropies and shares of the parts of all bounds, each at its own m."""
    rows = [bound.value(network, m[row]) for row, bound in enumerate(bounds)]
    values, radius = jnp.stack([row.value for row in rows]), network.radius
    entropies = jnp.full_like(values, math.nan)
    for integral in dict.fromkeys(bound.integral for bound in bounds if bound.integral):
        at = np.array([row for row, bound in enumerate(bounds) if bound.integral is integral])
        D, finite = values[at], jnp.isfinite(values[at])
        integrals = jax.vmap(integral, (0, 0, None))(jnp.where(finite, D, 1.0), m[at], radius)
        # an entropy that overflows leaves the trivial value
        bounded = jnp.where(finite, jnp.minimum(integrals, radius), radius)
        values, entropies = values.at[at].set(bounded), entropies.at[at].set(D)
    contributions = jnp.stack([row.contributions for row in rows])
    total = jnp.sum(contributions, axis=1, keepdims=True)
    return values, entropies, contributions / jnp.where(total > 0, total, 1)


@refuse_misfits
def normalised(
    grids: Sequence[tuple[WeightNorms, int | None]],
    tokens: Inputs,
    m: int,
    lipschitz: float,
    loss_range: float,
) -> BoundTable:
    """The bounds on layers with normalisation; of the losses where the readout has K rows.

    Here L_sigma is `lipschitz`.

    Args:
        grids: norms with the resolution of the grid that they were rounded to, None for norms
            that cost nothing.
        tokens: norms of the inputs.
        m: samples at which shares and `log10_samples` are computed.
        loss_range: length of the interval of the losses, for a readout of K rows.

    Source: Theorems 4.2 and 5.1 of trauger2023sequence; constants derived.

    Examples:
        >>> from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
        >>> from attlas.bounds.comparison.weight_norms import weight_norms
        >>> head = Head(np.eye(2), np.eye(2), np.eye(2))
        >>> norms = weight_norms(TransformerWeights(((head,),), np.array([3.0, 4.0])))
        >>> rows = normalised([(norms, None)], Inputs(4, 1.0, 1.0, 1.0), 100, 1.0, 2.0)
        >>> rows.bounds[0].label, f"{rows.values(np.full(len(rows.bounds), 100.0))[0, 0]:.6f}"
        ('trivial', '5.000000')
    """
    require_at_least(1, m=m)
    require_at_least(0, lipschitz=lipschitz, loss_range=loss_range)
    first = grids[0][0]
    networks = [network_class(norms, tokens, lipschitz, loss_range) for norms, _ in grids]

    def complexities(samples: np.ndarray, network: NetworkClass) -> tuple[np.ndarray, ...]:
        at = jax.device_put(np.asarray(samples, float))
        return tuple(map(np.asarray, _complexities(NORMALISED, network, at)))

    _, entropies, shares = complexities(np.full(len(NORMALISED), float(m)), networks[0])
    thresholds = np.array([bound.threshold for bound in NORMALISED])
    log10 = np.log10(thresholds) + np.log10(entropies) - 2 * math.log10(float(networks[0].radius))
    words = {
        "theorem": "Theorem 5.1 by a cover of the scores" if first.masked else "Theorem 4.2",
        "radius": "half the range of the loss" if first.masked else "largest |output| of the class",
    }
    return BoundTable(
        NORMALISED,
        tuple(bound.reason.format(**words) for bound in NORMALISED),
        lambda samples: np.array([complexities(samples, network)[0] for network in networks]),
        union_costs(NORMALISED, grids, network_costs),
        part_names(first),
        shares,
        log10,
    )
