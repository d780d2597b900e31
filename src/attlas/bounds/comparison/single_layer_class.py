r"""Bounds on the complexity of one attention layer whose weights lie in given norm balls.

The class is that of Theorem 4.1 of trauger2023sequence, before any training: tokens of Euclidean
norm at most B_x = 1 and B_w B_c L_sigma B_v = 1, so that the trivial bound is 1. The bounds are
proportional to that product.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.bounds.closed_form import closed_form
from attlas.bounds.comparison.transformer_weights import matrix_norms
from attlas.bounds.constants import Constants
from attlas.bounds.covering.dudley import Number
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.memory import require_memory
from attlas.core.ranges import require_at_least

Cover = str | Number
"""A ball of W_QK, "parameters", or the number of points of the cover of Edelman et al. (2022)."""


class LayerNorms(NamedTuple):
    """Bounds on the norms of W_QK, and on the tokens.

    Attributes:
        total: ||W||_{1,1}, the sum of all |entries|.
        column: ||W||_{1,inf}, the largest l_1 norm of a column.
        row_sum: the sum of the Euclidean norms of the rows.
        spectral: largest singular value.
        token: largest l_1 norm of a token.
    """

    total: Number
    column: Number
    row_sum: Number
    spectral: Number
    token: Number

    def scaled(self, factor: Number) -> "LayerNorms":
        """The norms of W times a factor >= 0, with the same tokens."""
        total, column, row_sum, spectral, token = self
        return LayerNorms(
            factor * total, factor * column, factor * row_sum, factor * spectral, token
        )


@closed_form
def norms_in_ball(ball: str, radius: Number, d: int) -> LayerNorms:
    r"""The largest norms of the matrices of a ball; each is attained.

    $$\sup_{\|W\|_{1,\infty}\le r}\Big(\|W\|_{1,1},\ \sum_i\|W_i\|_2,\ \|W\|_2\Big)
    =\big(dr,\ dr,\ \sqrt d\,r\big)$$

    Here r is `radius`.

    Args:
        ball: "1,1", "1,inf" or "2,1", where the norm of the rows is bounded.
        d: rows and columns.

    Returns:
        The norms, with tokens in the Euclidean unit ball.

    Raises:
        UserError: if the ball is not one of the three.

    Examples:
        >>> norms_in_ball("2,1", 3.0, 4)
        LayerNorms(total=6.0, column=3.0, row_sum=3.0, spectral=3.0, token=2.0)
    """
    root = math.sqrt(d)
    factors = {
        "1,1": (1.0, 1.0, 1.0, 1.0),
        "1,inf": (d, 1.0, d, root),
        "2,1": (root, 1.0, 1.0, 1.0),
    }
    if ball not in factors:
        raise UserError(f"ball {ball!r} is unknown here: choose '1,1', '1,inf' or '2,1'")
    total, column, row_sum, spectral = (radius * factor for factor in factors[ball])
    return LayerNorms(total, column, row_sum, spectral, root)


def norms_of_dense_matrix(key: PRNGKeyArray, d: int) -> LayerNorms:
    r"""The norms of a Gaussian d x d matrix scaled to a sum 1 of row norms, and dense tokens.

    A token of Euclidean norm 1 in a Gaussian direction has the l_1 norm $\sqrt{2d/\pi}$, nearly.

    Examples:
        >>> norms = norms_of_dense_matrix(jax.random.key(0), 64)
        >>> print(f"{norms.total:.1f} {norms.row_sum:.1f} {norms.token:.1f}")
        6.5 1.0 6.4
    """
    require_at_least(1, d=d)
    require_memory(8 * d**2, f"a matrix of d = {d}", "give fewer rows")
    measured = matrix_norms(generator(key).normal(size=(d, d)))
    sizes = (measured.total, measured.column, measured.row_sum, measured.spectral)
    total, column, row_sum, spectral = (size / measured.row_sum for size in sizes)
    return LayerNorms(total, column, row_sum, spectral, math.sqrt(2 * d / math.pi))


@refuse_misfits
@closed_form
def single_layer_bounds(
    norms: LayerNorms,
    covers: Sequence[Cover],
    d: int,
    m: Number,
    *,
    constants: Constants = "sharp",
    rows: int | None = None,
) -> Float[Array, " covers"]:
    r"""Bounds on the empirical Rademacher complexity of the class, by cover of W_QK.

    $$2\,{\rm Dudley}\big(\ln2d+\log N_{\rm cover}(\epsilon)\big)$$

    Args:
        covers: a ball; "parameters" for parameter counting; or the number of points of the cover
            of Edelman et al. (2022): m T for all tokens, m for the [CLS] tokens alone.
        constants: constants of Theorem 4.1; parameter counting always uses the chain.
        rows: number of rows of W_QK, d if None. One, if [CLS] is the same in every sequence and
            attention depends on the vector W_QK x_CLS alone.

    Returns:
        One bound per cover; those above 1 are vacuous.

    Source: Theorem 4.1 of trauger2023sequence and the covers that are compared with it.

    Examples:
        >>> norms = norms_in_ball("1,1", 1.0, 64)
        >>> covers = ["1,1", 1e6 * 20, "parameters"]
        >>> [f"{float(R):.3f}" for R in single_layer_bounds(norms, covers, 64, 1e6)]
        ['0.159', '0.250', '0.392']
    """
    k = d if rows is None else rows

    by_cover = [cover for cover in covers if not (isinstance(cover, str) and cover == "parameters")]
    bounds: list[Array] = []
    if by_cover:
        C = jnp.stack([_coefficient(norms, cover, k, d, m) for cover in by_cover])
        # One chain for all covers: it is what takes time to compile.
        bounds = list(
            jax.vmap(lambda C: trauger2023_single(1.0, C, 1.0, d, m, constants=constants))(C)
        )
    if len(by_cover) < len(covers):
        counted = parameter_counting_single(1.0, norms.spectral, 1.0, k * d, d, m)
        return jnp.stack(
            [
                counted if isinstance(cover, str) and cover == "parameters" else bounds.pop(0)
                for cover in covers
            ]
        )
    return jnp.stack(bounds)


def _coefficient(norms: LayerNorms, cover: Cover, k: int, d: int, m: Number) -> Array:
    """The coefficient of 1 / eps^2 in the entropy of a cover."""
    if not isinstance(cover, str):
        return edelman2022_cover(norms.row_sum, 1.0, cover, k, m)
    if cover == "1,1":
        return trauger2023_cover(cover, norms.total, 1.0, k, d)
    if cover == "1,inf":
        return trauger2023_cover(cover, norms.column, norms.token, k, d)
    if cover == "2,1":
        return trauger2023_cover(cover, norms.row_sum, norms.token, k, d, m)
    raise UserError(
        f"cover {cover!r} is unknown: choose '1,1', '1,inf', '2,1', 'parameters' or a number "
        "of points"
    )
