r"""Quantities of the tokenised mixture DM1 of deora2023optimization (section 5).

notation.md explains the letters: S, M, zeta, Z_mu, Z_nu, Z and P.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import Constants, require_constants
from attlas.bounds.optimisation.deora2023_loss import Number


@closed_form
def deora2023_token_radius(S: Number, Z: Number, Z_nu: Number, M: Number) -> Float[Array, ""]:
    r"""Bound on the norm of the tokens.

    $$R=\sqrt{S^2+Z^2+2Z_\nu/M}$$

    Args:
        Z: bound on the noise.
        Z_nu: M times the bound on |<z, nu>|.

    Source: Assumption 3 of deora2023optimization (found).

    Examples:
        >>> float(deora2023_token_radius(3.0, 2.0, 3.0, 2))
        4.0
    """
    return jnp.sqrt(S**2 + Z**2 + 2 * Z_nu / M)


@closed_form
def deora2023_first_step_slope(zeta: Number, constants: Constants = "sharp") -> Float[Array, ""]:
    r"""The factor of u_star in the decoders after the first step.

    $$U_h^{(1)}=\alpha_h1_T(\kappa u_\star+p)^\top,\quad
    \kappa=\tfrac\zeta2\ \text{(printed)},\quad\kappa=\tfrac\zeta4\ \text{(corrected)}$$

    The slope of the logistic loss at 0 is -1/2, and each pattern has half of the samples.

    Args:
        constants: "printed" for the value of Lemma 2, else the correct one, which (7) uses.

    Source: Lemma 2 of deora2023optimization (found, erratum).

    Examples:
        >>> float(deora2023_first_step_slope(0.5))
        0.125
    """
    require_constants(constants)
    return jnp.asarray(zeta / (2.0 if constants == "printed" else 4.0))


@closed_form
def deora2023_first_step_error(
    S: Number, Z: Number, d: Number, n: Number, delta: Number, C: Number = 1.0
) -> Float[Array, ""]:
    r"""The bound (6) on the error p of the first step.

    $$P=C(2S+Z)\Big(\sqrt{\frac d{n_1}}+\sqrt{\frac{\log(1/\delta)}{n_1}}\Big)$$

    Args:
        Z: bound on the noise.
        n: number n_1 of samples of the first phase.
        delta: probability of failure.
        C: the universal constant, which the paper leaves open.

    Source: Lemma 2, (6), of deora2023optimization (found).

    Examples:
        >>> float(deora2023_first_step_error(1.0, 2.0, 4, 16, 1.0))
        2.0
    """
    return C * (2 * S + Z) * (jnp.sqrt(d / n) + jnp.sqrt(jnp.log(1 / jnp.asarray(delta)) / n))


@closed_form
def deora2023_decoder_bound(
    T: Number, S: Number, P: Number, zeta: Number, constants: Constants = "sharp"
) -> Float[Array, ""]:
    r"""P1: the norm of a head after the first step.

    $$B_2=\sqrt T(S+P)\ \text{(printed)},\qquad
    \sqrt T\Big(\frac{\zeta S}{2\sqrt2}+P\Big)\ \text{(sharp)}$$

    Args:
        constants: the printed ones unless "sharp".

    Returns:
        B_2, before Definition 1 raises it to 1.

    Source: Proposition 2 of deora2023optimization (found); "sharp" derived.

    Examples:
        >>> float(deora2023_decoder_bound(4, 1.0, 0.5, 0.5, "printed"))
        3.0
    """
    require_constants(constants)
    signal = zeta * S / (2 * math.sqrt(2)) if constants == "sharp" else S
    return jnp.sqrt(T) * (signal + P)


@closed_form
def deora2023_output_bound(
    T: Number,
    R: Number,
    S: Number,
    P: Number,
    zeta: Number,
    n: Number,
    delta: Number,
    constants: Constants = "sharp",
) -> Float[Array, ""]:
    r"""P2: the outputs on n samples after the first step, with probability 1 - delta.

    $$B_\Phi=\sqrt TRB_2\sqrt{2\log(n/\delta)}\ \text{(printed)},\qquad
    \sqrt TRB_2\sqrt{2\log(2n/\delta)}\ \text{(corrected, sharp)}$$

    Hoeffding's inequality has two sides. "sharp" takes the sharp B_2 as well.

    Args:
        delta: probability of failure.
        constants: one of `Constants`.

    Returns:
        B_Phi, before Definition 1 raises it to 1.

    Source: Proposition 2 of deora2023optimization (found); the two others derived.

    Examples:
        >>> print(f"{float(deora2023_output_bound(4, 1.0, 1.0, 0.5, 0.5, 10, 0.1, 'printed')):.4f}")
        18.2091
    """
    size = deora2023_decoder_bound(T, S, P, zeta, constants)
    sides = 1 if constants == "printed" else 2
    tail = jnp.sqrt(2 * jnp.log(sides * n / jnp.asarray(delta)))
    return jnp.sqrt(T) * R * size * tail


@closed_form
def deora2023_gamma_star(
    T: Number,
    S: Number,
    zeta: Number,
    M: Number,
    Z_mu: Number = 0.0,
    Z_nu: Number = 0.0,
    Z: Number = 0.0,
    P: Number = 0.0,
    constants: Constants = "sharp",
) -> Float[Array, ""]:
    r"""The NTK margin after the first step, equation (7).

    $$\gamma_\star=\frac{T(1-\zeta)\zeta\big(\zeta S^4-7\bar ZS^2-12\bar Z^2-16\bar Z^3/S^2\big)}
    {4\sqrt{2(M+1)}}-E+\gamma_{lin},\quad
    E=PT^{5/2}(S+Z)^3\ \text{(printed)},\quad E=PTR^3\ \text{(sharp)}$$

    with bar Z the larger of Z_mu and Z_nu.

    Args:
        Z_mu: bound on |<z, mu>|.
        Z_nu: M times the bound on |<z, nu>|.
        Z: bound on the noise.
        constants: version of the constant E.

    Source: Proposition 2, (7), of deora2023optimization (found); "sharp" derived.

    Examples:
        Erratum 4: above the margin 8.94 of attention itself.

        >>> print(f"{float(deora2023_gamma_star(10, 4.0, 0.5, 1)):.2f}")
        44.47
    """
    bar = jnp.maximum(jnp.asarray(Z_mu), Z_nu)
    inside = zeta * S**4 - 7 * bar * S**2 - 12 * bar**2 - 16 * bar**3 / S**2
    softmax = T * (1 - zeta) * zeta * inside / (4 * jnp.sqrt(2 * (M + 1)))
    require_constants(constants)
    if constants == "sharp":
        error = P * T * deora2023_token_radius(S, Z, Z_nu, M) ** 3
    else:
        error = P * jnp.sqrt(T) ** 5 * (S + Z) ** 3
    return softmax - error + deora2023_gamma_linear(T, S, zeta, Z_mu)


@closed_form
def deora2023_gamma_linear(
    T: Number, S: Number, zeta: Number, Z_mu: Number = 0.0
) -> Float[Array, ""]:
    r"""The margin of the linear model 1 u_star' / (S sqrt(2 T)), of norm 1.

    $$\gamma_{lin}=\frac{S\sqrt T}{\sqrt2}\Big(\zeta-2(1-\zeta)\frac{Z_\mu}{S^2}\Big)$$

    Args:
        Z_mu: bound on |<z, mu>|.

    Source: Appendix F of deora2023optimization (derived).

    Examples:
        >>> float(deora2023_gamma_linear(8, 1.0, 0.5))
        1.0
    """
    return S * jnp.sqrt(T) / math.sqrt(2) * (zeta - 2 * (1 - zeta) * Z_mu / S**2)


@closed_form
def deora2023_gamma_attention(
    T: Number, S: Number, epsilon: Number = 0.0, Z_mu: Number = 0.0, constants: Constants = "sharp"
) -> Float[Array, ""]:
    r"""The margin of one head with weights U_opt and Gamma_eps W_opt, equation (11).

    $$\gamma_{attn}(\epsilon)=\frac{\sqrt T}{\sqrt2S}\big(S^2(1-\epsilon)-2\epsilon Z_\mu\big)$$

    Args:
        epsilon: attention left on irrelevant tokens; 0 for the saturated limit.
        Z_mu: bound on |<z, mu>|.
        constants: "printed" for Z_mu / S, as section 7 restates Z_mu / S^2 (erratum).

    Source: Proposition 3, (11), of deora2023optimization (found).

    Examples:
        >>> print(f"{float(deora2023_gamma_attention(10, 4.0)):.2f}")
        8.94
    """
    require_constants(constants)
    noise = Z_mu / S if constants == "printed" else Z_mu / S**2
    return S * jnp.sqrt(T) / math.sqrt(2) * (1 - epsilon - 2 * epsilon * noise)


@closed_form
def deora2023_saturation(
    S: Number,
    zeta: Number,
    M: Number,
    epsilon: Number,
    Z_mu: Number = 0.0,
    Z_nu: Number = 0.0,
    constants: Constants = "sharp",
) -> Float[Array, ""]:
    r"""The scale of W_opt that leaves at most epsilon of the attention on irrelevant tokens.

    $$\Gamma_\epsilon=\frac{8\sqrt{2(M+1)}}{3S^2}\log\frac{\zeta^{-1}-1}\epsilon
    \ \text{(printed)},\qquad
    \frac{S^2\sqrt{2(M+1)}}g\log\frac{(\zeta^{-1}-1)(1-\epsilon)}\epsilon\ \text{(sharp)}$$

    where g = S^4 - (Z_nu + 3 Z_mu) S^2 + 2 Z_mu Z_nu is the least gap of the logits of W_star.
    Without noise the sharp value is exact. The printed one requires Z_mu = Z_nu <= S^2 / 8.

    Args:
        epsilon: attention left, below 1 - zeta.
        Z_mu: bound on |<z, mu>|; read by the sharp ones only, as is Z_nu; at most S^2 / 8.
        Z_nu: M times the bound on |<z, nu>|; at most S^2 / 8.
        constants: one of `Constants`.

    Source: Proposition 3 of deora2023optimization (found); "sharp" derived.

    Examples:
        >>> print(f"{float(deora2023_saturation(1.0, 0.5, 1, 0.1, constants='printed')):.4f}")
        12.2805
        >>> print(f"{float(deora2023_saturation(1.0, 0.5, 1, 0.1)):.4f}")
        4.3944
    """
    require_constants(constants)
    norm = jnp.sqrt(2 * (M + 1))
    odds = (1 / zeta - 1) / jnp.asarray(epsilon)
    if constants != "sharp":
        return 8 * norm / (3 * S**2) * jnp.log(odds)
    gap = S**4 - (Z_nu + 3 * Z_mu) * S**2 + 2 * Z_mu * Z_nu
    return S**2 * norm / gap * jnp.log(odds * (1 - epsilon))


@closed_form
def deora2023_separability_heads(
    T: Number, R: Number, S: Number, P: Number, margin: Number, n: Number, delta: Number, C: Number
) -> Float[Array, ""]:
    r"""The number of heads that Proposition 2 requires for P3.

    $$H=\Big\lceil\Big(C\,\frac{R^4T(S+P)}{\gamma_\star}\sqrt{2\log(n/\delta)}\Big)^2\Big\rceil$$

    With alpha_h = +-1 the margin does not depend on the signs, as alpha_h sign(alpha_h) = 1 and
    the rest vanishes at W = 0: P3 then holds with gamma_star itself for every H (derived).

    Args:
        margin: gamma_star, the NTK margin.
        delta: probability of failure.
        C: the universal constant, which the paper leaves open.

    Returns:
        A whole number as a float.

    Source: Proposition 2 of deora2023optimization (found).

    Examples:
        >>> float(deora2023_separability_heads(2, 1.0, 1.0, 0.0, 1.0, 1, 1 / 2.718281828, 1.0))
        8.0
    """
    root = C * R**4 * T * (S + P) / margin * jnp.sqrt(2 * jnp.log(n / jnp.asarray(delta)))
    return jnp.maximum(jnp.ceil(root**2), 1)


@closed_form
def deora2023_margin_crossover(T: Number, zeta: Number, M: Number) -> Float[Array, ""]:
    r"""The signal strength above which gamma_star exceeds the limit of gamma_attn (no noise).

    $$S^3=\frac{4\sqrt{M+1}}{\sqrt T\zeta^2}$$

    Returns:
        S, beyond which "gamma_attn >= gamma_star" of section 5.3 is false.

    Source: erratum to section 5.3 of deora2023optimization (derived).

    Examples:
        >>> float(deora2023_margin_crossover(4, 0.5, 3))
        2.5198...
    """
    return jnp.cbrt(4 * jnp.sqrt(M + 1) / (jnp.sqrt(T) * zeta**2))
