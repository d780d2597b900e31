r"""Bounds on one layer in the plane of the norm of W_QK and the number of samples."""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.bounds.closed_form import closed_form
from attlas.bounds.comparison.single_layer_class import LayerNorms, single_layer_bounds
from attlas.bounds.covering.dudley import Number
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.parameter_counting import parameter_entropy
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_bracket


@closed_form
def trauger2023_orders(
    norm: Number, m: Number, lengths: Sequence[int], d: int
) -> Float[Array, " orders"]:
    r"""Orders of the bounds on one layer, no bounds: every norm is B, unknown constants are 1.

    $$C=B^2\ln(2d^2+1),\qquad C=B^2\ln(dmT)\ \text{for each}\ T,\qquad
    d^2\ln\Big(1+\frac{4B}\epsilon\Big)$$

    Args:
        norm: norm bound B.
        lengths: T of the cover of Edelman et al. (2022).
        d: dimension of the tokens, of Euclidean norm at most 1.

    Returns:
        Theorem 4.1 with the (1,1) norm, the log T cover at each length, and parameter counting,
        cut off at the trivial value 1.

    Source: sections 2.5 and 4.1 of trauger2023sequence.

    Examples:
        >>> [f"{float(order):.3f}" for order in trauger2023_orders(1.0, 1e6, [20], 64)]
        ['0.039', '0.054', '0.100']
    """
    B, m = jnp.asarray(norm), jnp.asarray(m)
    covers = [trauger2023_cover("1,1", B, 1.0, d, d), *(B**2 * jnp.log(d * m * T) for T in lengths)]
    values = [trauger2023_bracket(C, 1.0, d, m, constants="corrected") for C in covers]
    # 4 B / eps cells per parameter; Gauss-Legendre in the square root of eps, where it is smooth.
    node, weight = np.polynomial.legendre.leggauss(60)
    root = (node + 1) / 2
    full = jnp.asarray([float(d * d)])
    entropy = parameter_entropy(full, 4 * B[None], jnp.ones(1), jnp.asarray(root**2))
    counted = jnp.sum(weight * root * jnp.sqrt((entropy + math.log(2 * d)) / m))
    return jnp.minimum(jnp.stack([*values, counted]), 1.0)


@closed_form
def break_even_ratio(T: Number, d: int, m: int = 10**6) -> Float[Array, ""]:
    r"""The ratio of norms below which Theorem 4.1 without T beats the cover with log T.

    $$\frac{\|W\|_{1,1}}{\sum_i\|W_i\|_2}\le\sqrt{\frac{C_{\log T}}{C_{1,1}}}$$

    Both entropies are quadratic in their norm, so that the ratio does not depend on it.

    Returns:
        The ratio; that of a dense matrix is about sqrt(2 d / pi).

    Examples:
        >>> print(f"{float(break_even_ratio(200.0, 64)):.2f}")
        1.85
    """
    cover = edelman2022_cover(1.0, 1.0, float(m) * T, d, m)
    return jnp.sqrt(cover / trauger2023_cover("1,1", 1.0, 1.0, d, d))


PLANE_COVERS = ("1,1", "1,inf", "2,1", "parameters")


@closed_form
def bounds_in_plane(
    unit: LayerNorms,
    norm: Float[Array | np.ndarray, " p"],
    m: Float[Array | np.ndarray, " p"],
    lengths: Sequence[int],
    d: int,
) -> Float[Array, "p covers"]:
    r"""The sharp bounds of `single_layer_bounds` at pairs $(B,m)$, for the norms B times `unit`.

    Args:
        unit: norms of W_QK at B = 1, and of the tokens.
        lengths: T of the cover of Edelman et al. at m T points; 1 for the [CLS] tokens alone.

    Returns:
        By pair, `PLANE_COVERS` and then the lengths.

    Examples:
        >>> one = LayerNorms(1.0, 1.0, 1.0, 1.0, 1.0)
        >>> result = bounds_in_plane(one, np.ones(1), np.array([1e6]), [20], 64)
        >>> [f"{float(R):.3f}" for R in result[0]]
        ['0.159', '0.612', '0.194', '0.392', '0.250']
    """
    arguments = (tuple(np.asarray(float(size)) for size in unit), norm, m)
    return _plane(*jax.device_put(arguments), tuple(lengths), d)


@functools.partial(jax.jit, static_argnames=("lengths", "d"), compiler_options=CHEAP_COMPILATION)
def _plane(unit: tuple, norm: Array, m: Array, lengths: tuple[int, ...], d: int) -> Array:
    def at(pair: tuple[Array, Array]) -> Array:
        B, samples = pair
        covers = (*PLANE_COVERS, *(samples * T for T in lengths))
        return single_layer_bounds(LayerNorms(*unit).scaled(B), covers, d, samples)

    return jax.lax.map(at, (norm, m), batch_size=16)


class SmallestBound(NamedTuple):
    """Which of some bounds is smallest, on a fine grid of norms and samples.

    Attributes:
        norm: B.
        samples: m.
        winner: number of the smallest bound, -1 where all are vacuous.
        value: the smallest bound.
    """

    norm: Float[np.ndarray, " B"]
    samples: Float[np.ndarray, " m"]
    winner: Int[np.ndarray, "B m"]
    value: Float[np.ndarray, "B m"]

    def shares(self, bounds: int) -> Float[np.ndarray, " bounds"]:
        """The part of the non-vacuous plane, in logarithms, where each bound is smallest.

        Returns:
            Shares that add up to 1; NaN where all of the plane is vacuous.
        """
        counts = np.array([np.sum(self.winner == k) for k in range(bounds)], float)
        return counts / counts.sum() if counts.any() else np.full(bounds, np.nan)


@closed_form
def smallest_bound(
    norm: Float[np.ndarray, " B"],
    samples: Float[np.ndarray, " m"],
    bounds: Float[np.ndarray, "B m covers"],
    points: int = 241,
) -> SmallestBound:
    """Compare bounds between the points of a grid, by bilinear interpolation of logarithms.

    Args:
        norm: increasing B of the grid.
        samples: increasing m of the grid.
        bounds: positive values on the grid; 1 and more is vacuous.
        points: points of the fine grid along each axis.

    Examples:
        >>> B, m = np.array([1.0, 100.0]), np.array([10.0, 1000.0])
        >>> both = np.stack([0.2 * np.ones((2, 2)), np.tile(0.02 * B[:, None], (1, 2))], axis=-1)
        >>> smallest_bound(B, m, both, 3).winner[:, 0]
        array([1, 0, 0])
    """
    from scipy.interpolate import RectBivariateSpline

    rows, columns = np.log(norm), np.log(samples)
    fine = [np.linspace(edge[0], edge[-1], points) for edge in (rows, columns)]
    logs = np.moveaxis(np.log(bounds), -1, 0)
    values = np.stack([RectBivariateSpline(rows, columns, z, kx=1, ky=1)(*fine) for z in logs])
    best = np.exp(values.min(axis=0))
    winner = np.where(best < 1, values.argmin(axis=0), -1)
    return SmallestBound(np.exp(fine[0]), np.exp(fine[1]), winner, best)
