r"""Constants of the cones in which mirror descent selects tokens (julistiono2024optimizing).

S_{p,mu}(W_mm) = {W : D_psi(W_mm/|W_mm|, W/|W|) <= mu} with mu at most mu_0, and the radius R_delta
beyond which the negative gradient points along W_mm. They are made of delta, a quarter of the
smallest attention gap below the support tokens (at most 1/4), and of
A = ||W_mm||_{p,p} max_it ||X_it z_i'||_{q,q}.

There are T tokens of dimension d, and 1 < p < inf.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import require_constants
from attlas.core.errors import UserError

Number = float | Float[Array, ""]


@closed_form
def julistiono2024_mu_0(
    delta: Number, A: Number, p: Number, d: int | Number | None = None, *, constants: str = "sharp"
) -> Float[Array, ""]:
    r"""The width of the cone within which no attention gap moves by more than delta / 2.

    Sharp, and free of the dimension:

    $$\mu_0=\tfrac{p-1}2\Big(\tfrac{\delta}{4A}\Big)^2\ (1<p\le2),\qquad
    \mu_0=\tfrac{p-1}{p(1+s)^{p-2}}\Big(\tfrac{\delta}{4A}\Big)^p\ (p>2),\quad
    s^{p-1}=(p-1)s+(p-2),\ s>1$$

    On the unit sphere D_psi is the Bregman divergence of (1/2)||.||_p^2, which is (p-1)-strongly
    convex for 1 < p <= 2. For p > 2 the scalar divergence D(x, y) / |x-y|^p is least at x = -s y,
    and summing over the entries gives the constant of ||V-W||_p^p. At p = 2 the two agree.

    Printed, equation (8), never larger:

    $$\mu_0=\tfrac1p\Big(\tfrac{\delta}{8A}\Big)^p\ (p\ge2),\qquad
    \mu_0=\tfrac1p\Big(\tfrac{\delta(p-1)}{4A\,d^{2/p-1}}\Big)^2\ (1<p<2)$$

    Args:
        d: embedding dimension, of the printed width alone.
        constants: "sharp" or "printed".

    Returns:
        mu_0, such that D_psi <= mu_0 implies ||W/|W| - W_mm/|W_mm|||_{p,p} <= delta / (4 A).

    Raises:
        UserError: if the constants are unknown, or printed and without the dimension.

    Source: equation (8) of julistiono2024optimizing (recalled), sharpened (derived).

    Examples:
        >>> print(f"{float(julistiono2024_mu_0(0.25, 1.0, 2.0)):.6f}")
        0.001953
        >>> print(f"{float(julistiono2024_mu_0(0.25, 1.0, 2.0, 10, constants='printed')):.6f}")
        0.000488

        At p = 4, s = 2 and the sharp constant is 1/12, where Lemma 13 has 1/64:

        >>> print(f"{1 / float(julistiono2024_mu_0(4.0, 1.0, 4.0)):.6f}")
        12.000000
    """
    p = jnp.asarray(p)
    require_constants(constants, "printed", "sharp")
    if constants == "sharp":
        high = _best_constant(p) * (delta / (4 * A)) ** p
        return jnp.where(p > 2, high, (p - 1) / 2 * (delta / (4 * A)) ** 2)
    if d is None:
        raise UserError("the printed width depends on the dimension: give d")
    high = (delta / (8 * A)) ** p / p
    low = (delta * (p - 1) / (4 * A * d ** (2 / p - 1))) ** 2 / p
    return jnp.where(p >= 2, high, low)


def _best_constant(p: Float[Array, ""]) -> Float[Array, ""]:
    """The least D(x, y) / |x-y|^p for p > 2, at x = -s y."""

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        below, above = ends
        s = (below + above) / 2
        short = s ** (p - 1) < (p - 1) * s + (p - 2)
        return jnp.where(short, s, below), jnp.where(short, above, s)

    # The root falls from 3.6 at p = 2 to 1; 52 halvings reach the rounding of double precision.
    ends = jnp.ones_like(p), jnp.full_like(p, 4)
    s, _ = jax.lax.fori_loop(0, 52, halve, ends)
    return (p - 1) / (p * (1 + s) ** (p - 2))


@closed_form
def julistiono2024_radius(
    norm: Number,
    delta: Number,
    A: Number,
    score_range: Number,
    score_gap: Number,
    T: int,
    constant: Number = 1.0,
) -> Float[Array, ""]:
    r"""The norm beyond which the gradient is positively correlated in the cone.

    $$R_\delta=\frac{\|W_{mm}\|_{p,p}}{\delta}\log\frac{c\,T^2\,\Gamma A}{\gamma_{gap}}$$

    Here ||W_mm||_{p,p} is `norm`.

    Args:
        score_range: Gamma = max |gamma_it - gamma_i tau|.
        score_gap: gamma_gap = min over support tokens of gamma_{i alpha_i} - gamma_it.
        constant: c, which the form found of the lemma leaves open; 1 is enough, proved for samples
            that have a support token each.

    Returns:
        R_delta; zero where the logarithm is negative.

    Source: Lemma 20 of julistiono2024optimizing (recalled form), with the constant proved in
    papers/julistiono2024optimizing/proofs/cone.md.

    Examples:
        >>> print(f"{float(julistiono2024_radius(1.0, 0.25, 1.0, 1.0, 1.0, 2)):.4f}")
        5.5452
    """
    inside = jnp.asarray(constant * T**2 * score_range * A / score_gap)
    return jnp.maximum(norm / delta * jnp.log(inside), 0)
