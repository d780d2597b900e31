r"""Covers of linear maps whose size does not depend on the number of inputs (trauger2023sequence).

W maps R^d to R^k; ||W||_{q,p} is the p-norm over the columns of their q-norms. C stands for
log N(eps) <= C / eps^2 at every eps, uniformly over all inputs in the ball. No ceiling is needed,
see `greedy_cover`: papers/trauger2023sequence/proofs/covers.md.
"""

import math
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import Constants, require_constants
from attlas.bounds.covering.dudley import Number
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.core.errors import UserError
from attlas.core.ranges import require_at_least

Ball = Literal["1,1", "1,inf", "2,1"]


@closed_form
def trauger2023_cover(
    ball: Ball,
    norm: Number,
    B_x: Number,
    k: int,
    d: int,
    m: Number = 1e12,
    *,
    constants: Constants = "sharp",
) -> Float[Array, ""]:
    r"""The coefficient C of the entropy of a ball of matrices.

    $$\begin{aligned}C_{1,1}&=B_x^2B^2\ln(2dk+1)&&(\|x\|_2\le B_x),\\
    C_{1,\infty}&=d\,B_x^2B^2\ln(2k+1)&&(\|x\|_1\le B_x),\\
    C_{2,1}&=B_x^2B^2\min_\theta\big(\theta\ln(2kd+1)+\ln\lceil\log_\theta\tfrac m2\rceil\big)
    &&(\|x\|_1\le B_x)\end{aligned}$$

    The printed C_{2,1} = B_x^2 B^2 ln(dk) hides logarithms, and bounds the norms of columns, for
    which it is false (`covering_lower_bound`); the corrected one bounds the norms of rows.

    Args:
        ball: "1,1", "1,inf" or "2,1".
        norm: B, in the column orientation for "1,inf", in the row orientation for "2,1".
        B_x: bound on the inputs in the norm above.
        k: rows of W.
        d: columns of W.
        m: samples of the chain the cover is used in; for "2,1" alone.
        constants: "corrected" is "sharp".

    Raises:
        UserError: if the ball is not one of the three.

    Source: Lemmas 3.6, 3.3 and 3.4 of trauger2023sequence (found); "2,1" corrected (derived).

    Examples:
        >>> print(f"{float(trauger2023_cover('1,1', 2.0, 1.0, 3, 4)):.4f}")  # 4 ln 25
        12.8755
    """
    require_constants(constants)
    require_at_least(0, norm=norm, B_x=B_x)
    require_at_least(1, k=k, d=d, m=m)
    square = (jnp.asarray(norm) * B_x) ** 2
    if ball == "1,1":
        return square * math.log(2 * d * k + 1)
    if ball == "1,inf":
        return square * (d * math.log(2 * k + 1))
    if ball == "2,1":
        if constants == "printed":
            return square * math.log(d * k)
        return edelman2022_cover(norm, B_x, d, k, m)
    raise UserError(f"ball {ball!r} has no cover here: choose '1,1', '1,inf' or '2,1'")


@closed_form
def trauger2023_mapping_entropy(scalar_entropy: Number, k: int) -> Float[Array, ""]:
    r"""From scalar-valued linear functions to maps, row by row.

    $$\log N\big(k^{1/q}\epsilon,\|\cdot\|_q\big)\le k\log N_{\rm scalar}(\epsilon)$$

    Args:
        scalar_entropy: log N of one row at eps.

    Source: Appendix A of trauger2023sequence (found).

    Examples:
        >>> float(trauger2023_mapping_entropy(2.0, 3))
        6.0
    """
    return jnp.asarray(scalar_entropy) * k


@closed_form
def covering_lower_bound(norm: Number, B_x: Number, k: int, epsilon: Number) -> Float[Array, ""]:
    r"""Least entropy of the matrices of one column w, ||w||_2 <= B, in any cover (volumes).

    $$\log N(\epsilon)\ge k\ln\frac{BB_x}\epsilon$$

    It is linear in k, while the printed Lemma 3.4 has log k: its orientation cannot be meant.

    Here B is `norm`.

    Args:
        B_x: the input, a number as d = 1.

    Source: derived, papers/trauger2023sequence/proofs/covers.md.

    Examples:
        >>> floor = float(covering_lower_bound(2.0, 1.0, 64, 1.0))
        >>> printed = float(trauger2023_cover("2,1", 2.0, 1.0, 64, 1, constants="printed"))
        >>> print(f"{floor:.1f} > {printed:.1f}")
        44.4 > 16.6
    """
    return k * jnp.log(jnp.asarray(norm) * B_x / epsilon)
