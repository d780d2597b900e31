r"""Bounds on the gradient and the Hessian of multi-head attention (deora2023optimization).

Constants stand side by side. "printed" are those of Proposition 1, which need no correction.
"dimension_free" drops d from the Hessian, because the second derivative in W is a third central
moment of the softmax law. "sharp" has the best constant of that moment, 4/(3 sqrt 3), and the
exact norm of the two blocks; each of its blocks is attained. Proofs:
papers/deora2023optimization/proofs/dimension_free_hessian.md.

T tokens of norm at most R are the rows of X; U is a head's decoder over all tokens
(`MultiHead.token_decoders`), `constants` one of `HeadConstants`.
"""

import math
from collections.abc import Callable
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.core.errors import UserError
from attlas.models.attention.multi_head import Decoder

HeadConstants = Literal["printed", "corrected", "dimension_free", "sharp"]
"""The words of `attlas.bounds.constants`, of which "corrected" means the printed ones here, and the
sharp ones before their last step. Where these are not derived, they are the printed ones."""

THIRD_MOMENT = 4 / (3 * math.sqrt(3))
"""Largest |E[(a - Ea)(b - Eb)^2]| over all laws and all |a|, |b| <= 1."""


def require_head_constants(constants: str) -> None:
    """Check that `constants` is one of the four.

    Examples:
        >>> require_head_constants("sharper")
        Traceback (most recent call last):
        attlas.core.errors.UserError: constants = 'sharper': choose one of printed, corrected, ...
    """
    choices = get_args(HeadConstants)
    if constants not in choices:
        raise UserError(f"constants = {constants!r}: choose one of {', '.join(choices)}")


@closed_form
def deora2023_effective_tokens(T: int, decoder: Decoder = Decoder.FULL) -> int:
    r"""The number that stands for T in all bounds, by what the decoder reads.

    The gradient in a decoder u shared by all tokens is a sum of T rows, of norm up to T R and not
    sqrt(T) R as the footnote of section 2 has it; that of the last token alone is one row. With
    T^2 and 1 instead of T, every bound of the paper holds for the two.

    Returns:
        T, T^2 or 1 for the full, the pooled and the last-token decoder.

    An unknown decoder is a `UserError` of one line.

    Source: Proposition 1 of deora2023optimization; for the pooled decoder corrected (derived).

    Examples:
        >>> deora2023_effective_tokens(5, Decoder.POOLED)
        25
    """
    tokens = {Decoder.FULL: T, Decoder.POOLED: T * T, Decoder.LAST: 1}
    if decoder not in tokens:
        raise UserError(f"decoder = {decoder!r} is unknown: choose {', '.join(Decoder)}")
    return tokens[decoder]


@closed_form
def deora2023_gradient(
    X: Float[Array, "T d"],
    U: Float[Array, "T d"],
    constants: HeadConstants = "sharp",
    decoder: Decoder = Decoder.FULL,
) -> Float[Array, ""]:
    r"""Bound on ||grad Phi|| of one head.

    $$2R^2\sum_t\|Xu_t\|_\infty+\sqrt TR\ \text{(printed)},\qquad
    \sqrt TR\max\Big(1,R\big(\textstyle\sum_t\|Xu_t\|_\infty^2\big)^{1/2}\Big)\ \text{(sharp)}$$

    with R the largest norm of a token.

    Source: Proposition 1 of deora2023optimization (found); "sharp" derived.

    Examples:
        >>> X, U = jnp.array([[1.0], [-1.0]]), jnp.array([[1.0], [-1.0]])
        >>> print(f"{float(deora2023_gradient(X, U, 'printed')):.4f}")
        5.4142
        >>> float(deora2023_gradient(X, U))  # attained at W = 0
        2.0...
    """
    require_head_constants(constants)
    R = jnp.sqrt(jnp.max(jnp.sum(X**2, axis=1)))
    largest = jnp.max(jnp.abs(U @ X.T), axis=1)
    tokens = deora2023_effective_tokens(X.shape[0], decoder)
    if constants == "sharp":
        # for one u read at all tokens, sqrt(T) stands in the factor tokens already
        share = X.shape[0] / tokens if decoder is Decoder.POOLED else 1.0
        # the maximum under the root keeps the derivative finite at U = 0
        return math.sqrt(tokens) * R * jnp.sqrt(jnp.maximum(1, R**2 * share * jnp.sum(largest**2)))
    return 2 * R**2 * jnp.sum(largest) + math.sqrt(tokens) * R


@closed_form
def deora2023_hessian(
    X: Float[Array, "T d"],
    U: Float[Array, "T d"],
    constants: HeadConstants = "sharp",
    decoder: Decoder = Decoder.FULL,
) -> Float[Array, ""]:
    r"""Bound on the spectral norm of the Hessian of one head.

    $$6dR^2m^2S+2\sqrt{Td}\,R^2m\ \text{(printed)},\quad
    2R^4S+\sqrt TR^3\ \text{(dimension-free)},\quad
    \tfrac12\Big(c+\sqrt{c^2+4TR^6}\Big),\ c=\tfrac4{3\sqrt3}R^4S\ \text{(sharp)}$$

    with S = sum_t ||X u_t||_inf, R the largest norm of a token, and m the largest entry of X.

    Source: Proposition 1 of deora2023optimization (found); the two others derived.

    Examples:
        >>> X, U = jnp.array([[1.0], [-1.0]]), jnp.zeros((2, 1))
        >>> several = ("printed", "dimension_free", "sharp")
        >>> [round(float(deora2023_hessian(X, U, constants)), 4) for constants in several]
        [2.8284, 1.4142, 1.4142]
    """
    require_head_constants(constants)
    d = X.shape[1]
    R = jnp.sqrt(jnp.max(jnp.sum(X**2, axis=1)))
    total = jnp.sum(jnp.max(jnp.abs(U @ X.T), axis=1))
    root = math.sqrt(deora2023_effective_tokens(X.shape[0], decoder))
    if constants == "sharp":
        corner = THIRD_MOMENT * R**4 * total
        return (corner + jnp.sqrt(corner**2 + 4 * (root * R**3) ** 2)) / 2
    if constants == "dimension_free":
        return 2 * R**4 * total + root * R**3
    m = jnp.max(jnp.abs(X))
    return 6 * d * R**2 * m**2 * total + 2 * root * math.sqrt(d) * R**2 * m


def _largest(norm: Callable[..., Array], X: Array, U: Array, *options: object) -> Float[Array, ""]:
    """The largest bound of one head."""
    return jnp.max(jax.vmap(lambda head: norm(X, head, *options))(U))


@closed_form
def deora2023_multi_head_gradient(
    X: Float[Array, "T d"],
    U: Float[Array, "H T d"],
    constants: HeadConstants = "sharp",
    decoder: Decoder = Decoder.FULL,
) -> Float[Array, ""]:
    r"""Bound on the gradient of H heads: the largest bound of one, whatever H.

    Source: Appendix A.1 of deora2023optimization (derived).

    Examples:
        >>> X, U = jnp.ones((1, 1)), jnp.array([[[0.0]], [[1.0]]])
        >>> float(deora2023_multi_head_gradient(X, U, "printed"))
        3.0
    """
    return _largest(deora2023_gradient, X, U, constants, decoder)


@closed_form
def deora2023_multi_head_hessian(
    X: Float[Array, "T d"],
    U: Float[Array, "H T d"],
    constants: HeadConstants = "sharp",
    decoder: Decoder = Decoder.FULL,
) -> Float[Array, ""]:
    r"""Bound on the Hessian of H heads: the largest bound of one, divided by sqrt(H).

    Source: Appendix A.1 of deora2023optimization (derived).

    Examples:
        >>> X, U = jnp.ones((1, 1)), jnp.ones((4, 1, 1))
        >>> float(deora2023_multi_head_hessian(X, U, "printed"))
        4.0
    """
    return _largest(deora2023_hessian, X, U, constants, decoder) / math.sqrt(U.shape[0])
