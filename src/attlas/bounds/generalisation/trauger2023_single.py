r"""Theorem 4.1 of trauger2023sequence: one layer of attention, [CLS] readout.

f(X) = w^T W_c^T sigma(W_v^T X^T softmax(X M x_cls)), M the product of keys and queries, with
||w||_1 <= B_w, sigma L-Lipschitz in each entry, sigma(0) = 0. The proof takes *columns* of W_c and
of W_v: ||W_c||_{1,inf} <= B_c, ||W_v||_{1,inf} <= B_v (the print transposes both). "printed" is the
paper's; "corrected" has Dudley's constants derived; "sharp" has 1 for the softmax and the chain
instead of the integral. Proofs: papers/trauger2023sequence/proofs/layers.md.

C is the entropy coefficient of x -> M x on tokens of dimension d and Euclidean norm at most B_x,
and m the number of samples.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import Constants, require_constants
from attlas.bounds.covering.dudley import Number, dudley_chain, dudley_integral
from attlas.bounds.covering.trauger2023_cover import Ball, trauger2023_cover
from attlas.core.ranges import require_at_least


def trauger2023_softmax_lipschitz(constants: Constants = "sharp") -> float:
    r"""Lipschitz constant of the softmax from the largest entry to the l_1 norm.

    $$\|{\rm softmax}(a)-{\rm softmax}(b)\|_1\le\kappa\|a-b\|_\infty,\qquad\kappa=2\
    \text{(printed)},\ 1\ \text{(sharp)}$$

    Args:
        constants: "corrected" is "printed".

    Source: Lemma C.1 of trauger2023sequence (found); "sharp" derived, attained.

    Examples:
        >>> trauger2023_softmax_lipschitz("printed"), trauger2023_softmax_lipschitz()
        (2.0, 1.0)
    """
    require_constants(constants)
    return 1.0 if constants == "sharp" else 2.0


@closed_form
def trauger2023_bracket(
    C: Number, B_x: Number, d: int, m: Number, *, constants: Constants = "sharp"
) -> Float[Array, ""]:
    r"""The bracket of Theorem 4.1, which an unknown constant multiplies.

    $$\frac{2B_x^2\sqrt C}{\sqrt m}\Big(1+\ln\frac{\sqrt m}{2B_x\sqrt C}\Big)
    +B_x\sqrt{\frac{\ln2d}m}\ \text{(printed)},\qquad
    \min_{0<\delta\le B_x}\delta+\int_\delta^{B_x}\Big(\sqrt{\tfrac{\ln2d}m}
    +\tfrac{2B_x^2\sqrt C}{\epsilon\sqrt m}\Big)d\epsilon\ \text{(corrected)}$$

    The printed one is negative where the best delta exceeds B_x.

    Args:
        constants: "sharp" has 1 instead of 2 before B_x^2 and does not split the root.

    Source: Theorem 4.1 of trauger2023sequence (found); erratum where negative.

    Examples:
        >>> C = trauger2023_cover("1,1", 10.0, 1.0, 64, 64)
        >>> for constants in ("printed", "corrected", "sharp"):
        ...     print(f"{trauger2023_bracket(C, 1.0, 64, 300, constants=constants):.2f}")
        -0.72
        1.00
        1.00
    """
    kappa = trauger2023_softmax_lipschitz(constants)
    C, B_x = jnp.asarray(C), jnp.asarray(B_x)
    if constants == "printed":
        scale = kappa * B_x**2 * jnp.sqrt(C / m)
        # the product tends to 0 with C and with B_x
        ratio = jnp.where(scale > 0, B_x / scale, 1)
        flat = B_x * jnp.sqrt(math.log(2 * d) / jnp.asarray(m))
        return scale * (1 + jnp.log(ratio)) + flat
    A, D = math.log(2 * d), kappa**2 * B_x**4 * C
    split = constants == "corrected"
    return dudley_integral(A, D, m, B_x, constants="printed", split=split)


@closed_form
def trauger2023_single(
    B: Number,
    C: Number,
    B_x: Number,
    d: int,
    m: Number,
    *,
    constants: Constants = "sharp",
    largest_entry: Number | None = None,
) -> Float[Array, ""]:
    r"""The bound on the empirical Rademacher complexity of one layer, one head.

    $$2B\,{\rm Dudley}\big(\ln2d+\kappa^2b^2B_x^2C/\epsilon^2,\ \text{radius}\ b\big),\qquad
    B=B_wB_cL_\sigma B_v$$

    with b = B_x, and b the largest |entry| of a token in "sharp". "printed" is B times the printed
    bracket, with its unknown constant set to 1: an order, no bound.

    Args:
        B: product of the norms outside the attention and of the Lipschitz constant.
        largest_entry: b; B_x where not given.

    Returns:
        The bound; H heads add up. Multiply by H where all heads share the norms.

    Source: Theorem 4.1 of trauger2023sequence (found); constants derived.

    Examples:
        >>> C = trauger2023_cover("1,1", 1.0, 1.0, 64, 64)
        >>> for constants in ("corrected", "sharp"):
        ...     print(f"{trauger2023_single(1.0, C, 1.0, 64, 1e6, constants=constants):.3f}")
        0.487
        0.159
    """
    require_at_least(0, B=B, C=C, B_x=B_x)
    require_at_least(1, d=d, m=m)
    if constants == "printed":
        return B * trauger2023_bracket(C, B_x, d, m, constants="printed")
    kappa = trauger2023_softmax_lipschitz(constants)
    C, B_x = jnp.asarray(C), jnp.asarray(B_x)
    if constants == "corrected":
        D = kappa**2 * B_x**4 * C
        raw = dudley_integral(math.log(2 * d), D, m, B_x)
        return 2 * B * jnp.minimum(raw, B_x)
    b = B_x if largest_entry is None else jnp.asarray(largest_entry)
    D = (kappa * b * B_x) ** 2 * C
    return 2 * B * dudley_chain(lambda epsilon: math.log(2 * d) + D / epsilon**2, m, b)


@closed_form
def trauger2023_alpha(
    ball: Ball, norm: Number, d: int, *, constants: Constants = "sharp"
) -> Float[Array, ""]:
    r"""Alpha of Corollaries 4.1.1, D.0.1 and D.0.2: kappa sqrt(C) / B_x.

    $$\alpha=B\sqrt{2\ln(2d^2+1)}\ \text{(4.1.1 printed)},\qquad2B\sqrt{\ln(2d^2+1)}\
    \text{(corrected)},\qquad2B\sqrt{d\ln(2d+1)},\qquad2B\sqrt{2\ln d}$$

    Args:
        ball: "1,1", "1,inf" or "2,1" for the three corollaries.
        norm: bound B on the norm of M.
        constants: "sharp" is half of "corrected".

    Source: Corollaries 4.1.1, D.0.1, D.0.2 of trauger2023sequence (found); 4.1.1 corrected.

    Examples:
        >>> for constants in ("printed", "corrected", "sharp"):
        ...     print(f"{trauger2023_alpha('1,1', 1.0, 8, constants=constants):.4f}")
        3.1176
        4.4090
        2.2045
    """
    if ball == "1,1" and constants == "printed":
        return jnp.asarray(norm) * math.sqrt(2 * math.log(2 * d**2 + 1))
    C = trauger2023_cover(ball, norm, 1.0, d, d, constants=constants)
    return trauger2023_softmax_lipschitz(constants) * jnp.sqrt(C)
