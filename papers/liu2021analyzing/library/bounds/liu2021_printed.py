r"""The sample sizes that liu2021analyzing prints, as formulas that JAX can trace.

The hidden constant is 1, and nothing is checked: `liu2021_sample_size` checks its arguments and
calls these with numbers, from which numbers follow. notation.md explains the letters.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Number = int | float | Float[Array, ""]


def printed_attention(
    p: Number, d: Number, gamma: Number, C_1: Number, C_2: Number, s0: Number, tau: Number
) -> Number:
    r"""Theorem 1 as printed.

    $$(\sqrt{s_0}+\tau\sqrt p)^4\frac{\eta^2}{\gamma^2}
    \log\frac{(\sqrt{s_0}+\tau\sqrt p)\eta}\gamma(pd+d),\qquad\eta=C_1^2C_2$$

    Examples:
        >>> printed_attention(4, 1, 1.0, 1.0, math.e / 2, 4, 0.0) == 5 * 4 * math.e**2
        True
    """
    spread, eta = _root(s0) + tau * _root(p), C_1**2 * C_2
    return spread**4 * (eta / gamma) ** 2 * _log(spread * eta / gamma) * (p * d + d)


def printed_baseline(p: Number, d: Number, gamma: Number, C_1: Number, C_2: Number) -> Number:
    r"""Corollary 1 as printed.

    $$p^2\frac{\eta^2}{\gamma^2}\log\frac{p\eta}\gamma(pd+d),\qquad\eta=C_1^2C_2$$

    Examples:
        >>> printed_baseline(2, 1, 1.0, 1.0, math.e / 2) == 3 * math.e**2
        True
    """
    eta = C_1**2 * C_2
    return (p * eta / gamma) ** 2 * _log(p * eta / gamma) * (p * d + d)


def printed_self_attention(
    sizes: tuple[Number, Number, Number, Number],
    gamma: Number,
    norms: tuple[Number, Number, Number, Number, Number],
    s0: Number,
    tau: Number,
) -> Number:
    r"""Theorem 2 as printed.

    $$k^2\,pd_vd\frac{\eta_a^2}{\gamma^2}\log\frac{k\,\eta_a\eta_b}\gamma,\qquad
    k=(\sqrt{s_0}+\tau\sqrt p)^2+\sqrt p\,t,\ \eta_a=C_1^2C_2C_8,\ \eta_b=C_5+C_6$$

    Args:
        sizes: p words, t entries of each, d hidden units, d_v of a value.
        norms: C_1, C_2, C_5, C_6, C_8.

    Examples:
        >>> printed_self_attention((1, 0, 2, 3), 1.0, (1.0, 1.0, 0.0, math.e, 1.0), 1, 0.0)
        6.0
    """
    (p, t, d, d_v), (C_1, C_2, C_5, C_6, C_8) = sizes, norms
    k = (_root(s0) + tau * _root(p)) ** 2 + _root(p) * t
    eta_a, eta_b = C_1**2 * C_2 * C_8, C_5 + C_6
    return (k * eta_a / gamma) ** 2 * p * d_v * d * _log(k * eta_a * eta_b / gamma)


def printed_deep(gamma: Number, c_k: Number, parameters: Number) -> Number:
    r"""Theorem 3 as printed.

    $$\log\Big(\frac{c_K}\gamma\Big)P$$

    Examples:
        >>> printed_deep(1.0, math.e, 7)
        7.0
    """
    return _log(c_k / gamma) * parameters


def printed_recurrent(
    sizes: tuple[Number, Number, Number, Number],
    gamma: Number,
    norms: tuple[Number, Number, Number],
    stretches: tuple[Number, Number],
) -> Number:
    r"""Theorem 6 as printed.

    $$\frac{C_1^2C_x^2\eta^2}{\gamma^2}\log\frac{\eta C_8C_9}\gamma(td+d+d_a+d_f),\qquad
    \eta=C_1C_2C_x$$

    Args:
        sizes: t entries per word, d hidden units, d_a and d_f parameters of score and update.
        norms: C_x, C_1, C_2.
        stretches: C_8, C_9.

    Examples:
        >>> printed_recurrent((2, 1, 1, 1), 1.0, (1.0, 1.0, 1.0), (math.e, 1.0))
        5.0
    """
    (t, d, d_a, d_f), (C_x, C_1, C_2), (C_8, C_9) = sizes, norms, stretches
    eta = C_1 * C_2 * C_x
    size = (C_1 * C_x * eta / gamma) ** 2
    return size * _log(eta * C_8 * C_9 / gamma) * (t * d + d + d_a + d_f)


def printed_mask(
    p: Number, d: Number, s0: Number, gamma: Number, norms: tuple[Number, Number, Number]
) -> Number:
    r"""Lemma 1 as printed.

    $$\frac{s_0^2C_1^2C_x^2\eta^2}{\gamma^2}\log\frac{s_0\eta}\gamma(pd+p+d),\qquad
    \eta=C_1C_2C_x$$

    Args:
        norms: C_x, C_1, C_2.

    Examples:
        >>> printed_mask(1, 1, 1, 1.0, (1.0, 1.0, math.e)) == 3 * math.e**2
        True
    """
    C_x, C_1, C_2 = norms
    eta = C_1 * C_2 * C_x
    return (s0 * C_1 * C_x * eta / gamma) ** 2 * _log(s0 * eta / gamma) * (p * d + p + d)


def gradient_error(gradient: Number, C_2: Number, smallest: Number, residual: Number) -> Number:
    r"""The error that a gradient leaves, corrected, of `liu2021_union_bound.liu2021_error`.

    $$\frac{\|E[u\Phi]\|^2}\lambda+C_2^2\,\lambda_{\max}(\mathrm{Var}(\Phi^*|\Phi))$$

    Args:
        smallest: lambda, the smallest positive eigenvalue of the features' covariance.
        residual: the largest eigenvalue of the features' residual covariance.

    Examples:
        >>> gradient_error(0.5, 1.0, 0.25, 0.1)
        1.1
    """
    return gradient**2 / smallest + C_2**2 * residual


def _log(number: Number) -> Number:
    return jnp.log(number) if isinstance(number, jax.Array) else math.log(number)


def _root(number: Number) -> Number:
    return jnp.sqrt(number) if isinstance(number, jax.Array) else math.sqrt(number)
