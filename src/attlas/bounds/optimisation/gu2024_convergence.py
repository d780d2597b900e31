r"""Theorem 4.2 of gu2024exploring: width, step and iterations, and the quantities of its proof.

Widths are given by their logarithm to base 10: e^{18B} leaves float32 at B = 5. The C of
Definition 4.1, "sufficiently large" and above 10, is an argument. B as printed has no m,
although it must bound |<w_r, x_i>| for all m units; "corrected" is the union bound over the m / 2
distinct units. As m contains e^{18B}, the corrected width solves an equation, in closed form here.

There are n samples, d outputs and m units; lambda, `smallest`, is the least eigenvalue of the
kernel, B that of `gu2024_radius`, sigma the standard deviation of the first layer and delta the
probability of failure.
"""

import math
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import require_constants
from attlas.bounds.optimisation.gu2024_perturbation import Number
from attlas.core.errors import UserError
from attlas.models.networks.softmax_network import Activation

WIDTH_EXPONENT = 18
STEP_EXPONENT = 16
KERNEL_EXPONENT = 10


@closed_form
def gu2024_radius(
    n: Number,
    d: Number,
    delta: Number,
    sigma: Number,
    *,
    m: Number | None = None,
    C: Number = 10.0,
    constants: Literal["printed", "corrected"] = "corrected",
) -> Float[Array, ""]:
    r"""B, which is to bound |<w_r, x_i>| for all units and samples of norm at most 1.

    $$B=\max\{C\sigma\sqrt{\log(nd/\delta)},1\}\ \text{(printed)},\qquad
    \max\{\sigma\sqrt{2\log(nm/(2\delta))},1\}\ \text{(corrected)}$$

    The second holds with probability 1 - delta at the symmetric initialisation, where m / 2 units
    are distinct.

    Args:
        d: outputs; not used by the corrected B.
        m: width, which the corrected B needs.
        C: constant of Definition 4.1, for the printed B.

    Raises:
        UserError: if the constants are unknown, or m is missing for the corrected B.

    Source: Definition 4.1 of gu2024exploring (recalled); corrected (derived).

    Examples:
        >>> print(f"{float(gu2024_radius(5, 3, 0.1, 1.0, m=1000)):.2f}")
        4.50
        >>> print(f"{float(gu2024_radius(5, 3, 0.1, 1.0, constants='printed')):.2f}")
        22.38
    """
    require_constants(constants, "printed", "corrected")
    if constants == "printed":
        size = C * sigma * jnp.sqrt(jnp.log(jnp.asarray(n * d / delta)))
    elif m is None:
        raise UserError("the corrected B has no width: give m=, or constants='printed'")
    else:
        size = sigma * jnp.sqrt(2 * jnp.log(jnp.asarray(n * m / (2 * delta))))
    return jnp.maximum(size, 1)


@closed_form
def gu2024_width_at_radius_log10(
    n: Number, d: Number, smallest: Number, B: Number, delta: Number, power: int = 2
) -> Float[Array, ""]:
    r"""log10 of the width of Theorem 4.2 where B is known, its hidden constant set to 1.

    $$m=\lambda^{-2}(nd)^2e^{18B}\log^2(nd/\delta)$$

    Args:
        d: outputs; 1 gives Corollary 4.3.
        power: exponent of n d; 3 in Theorem 6.6.

    Source: Theorem 4.2 of gu2024exploring (recalled, consistent).

    Examples:
        >>> import math
        >>> print(f"{float(gu2024_width_at_radius_log10(1, 1, 0.1, 0.0, math.exp(-1))):.3f}")
        2.000
    """
    logs = 2 * jnp.log10(jnp.log(jnp.asarray(n * d / delta)))
    return _polynomial(n, d, smallest, power) + _power_of_e(WIDTH_EXPONENT, B) + logs


@closed_form
def gu2024_width_log10(
    n: Number,
    d: Number,
    smallest: Number,
    delta: Number,
    sigma: Number,
    *,
    C: Number = 10.0,
    power: int = 2,
    constants: Literal["printed", "corrected"] = "corrected",
) -> Float[Array, ""]:
    r"""log10 of the width of Theorem 4.2, with the printed or the corrected B.

    The corrected B depends on the width. With u = (log m + c)^{1/2}, c = log(n / (2 delta)), b =
    18 sqrt(2) sigma and K the logarithm of the other factors, log m = K + 18 B reads u^2 - b u -
    (K + c) = 0.

    Args:
        d: outputs; 1 gives Corollary 4.3.
        C: constant of Definition 4.1, for the printed B.
        power: exponent of n d; 3 in Theorem 6.6.

    Returns:
        log10 m; if corrected, for B >= 1, as it is for all but the smallest sigma.

    Source: Theorem 4.2 and Definition 4.1 of gu2024exploring (recalled); corrected (derived).

    Examples:
        >>> print(f"{float(gu2024_width_log10(5, 3, 0.1, 0.1, 1.0)):.0f}")
        294
        >>> print(f"{float(gu2024_width_log10(5, 3, 0.1, 0.1, 1.0, C=1, constants='printed')):.1f}")
        23.3
    """
    require_constants(constants, "printed", "corrected")
    if constants == "printed":
        B = gu2024_radius(n, d, delta, sigma, C=C, constants="printed")
        return gu2024_width_at_radius_log10(n, d, smallest, B, delta, power)
    others = math.log(10) * gu2024_width_at_radius_log10(n, d, smallest, 0.0, delta, power)
    c = jnp.log(jnp.asarray(n / (2 * delta)))
    b = WIDTH_EXPONENT * math.sqrt(2) * sigma
    u = (b + jnp.sqrt(b**2 + 4 * (others + c))) / 2
    by_units = u**2 - c
    by_one = others + WIDTH_EXPONENT
    return jnp.maximum(by_units, by_one) / math.log(10)


@closed_form
def gu2024_step_log10(
    n: Number, d: Number, smallest: Number, B: Number, width_log10: Number
) -> Float[Array, ""]:
    r"""log10 of the step size of Theorem 4.2.

    $$\eta=\frac{0.1\lambda}{m\,n^2d^2e^{16B}}$$

    Here log10 m is `width_log10`.

    Source: Theorem 4.2 of gu2024exploring (recalled, consistent).

    Examples:
        >>> float(gu2024_step_log10(1, 1, 1.0, 0.0, 3.0))
        -4.0
    """
    scale = jnp.log10(jnp.asarray(0.1 * smallest)) - 2 * jnp.log10(jnp.asarray(1.0 * n * d))
    return scale - _power_of_e(STEP_EXPONENT, B) - width_log10


@closed_form
def gu2024_steps_log10(
    n: Number, d: Number, smallest: Number, B: Number, epsilon: Number
) -> Float[Array, ""]:
    r"""log10 of the iterations after which ||F - Y||_F^2 <= epsilon < n d, at the printed step.

    $$\hat T=20\,\lambda^{-2}n^2d^2e^{16B}\log(nd/\epsilon)\ge
    \frac{\log(nd/\epsilon)}{-\log(1-m\eta\lambda/2)}$$

    Source: Theorem 4.2 of gu2024exploring (recalled; constant 20 derived).

    Examples:
        >>> import math
        >>> print(f"{10 ** float(gu2024_steps_log10(1, 1, 1.0, 0.0, math.exp(-1))):.1f}")
        20.0
    """
    logs = jnp.log10(20 * jnp.log(jnp.asarray(n * d / epsilon)))
    return _polynomial(n, d, smallest, 2) + _power_of_e(STEP_EXPONENT, B) + logs


@closed_form
def gu2024_steps(
    n: Number, d: Number, rate: Number, epsilon: Number, start: Number | None = None
) -> Float[Array, ""]:
    r"""The least T with (1 - rate)^T ||F(0) - Y||^2 <= epsilon.

    Args:
        rate: m eta lambda / 2 in the theorem, below 1.
        start: ||F(0) - Y||_F^2; the printed n d when None.

    Source: proof of Theorem 4.2 of gu2024exploring (derived).

    Examples:
        >>> float(gu2024_steps(2, 2, 0.5, 1.0))
        2.0
    """
    first = jnp.asarray(n * d if start is None else start)
    return jnp.ceil(jnp.maximum(jnp.log(first / epsilon), 0) / -jnp.log1p(-jnp.asarray(rate)))


@closed_form
def gu2024_table_1_log10(
    activation: Activation, n: Number, smallest: Number, epsilon: Number, extra: Number = 0.0
) -> dict[str, Float[Array, ""]]:
    r"""Table 1: width and steps for each activation, one output, hidden constants set to 1.

    ReLU: m = lambda^{-2} n^2 log n, T = lambda^{-2} n^2 log(n / epsilon). Exponential and
    softmax: m = lambda^{-2} n^{2+o(1)} log^2 n, T = lambda^{-2} n^{2+o(1)} log(n^2 / epsilon).

    Args:
        n: samples, above 1.
        smallest: lambda of the kernel of that activation.
        epsilon: squared error wanted.
        extra: value of o(1); 18 B / log n in the proof, where n^{o(1)} is e^{18B}.

    Source: Table 1 of gu2024exploring (recalled).

    Examples:
        >>> import math
        >>> row = gu2024_table_1_log10(Activation.RELU, math.e, 1.0, 1.0)
        >>> [round(float(value), 4) for value in row.values()]
        [0.8686, 0.8686]
    """
    n, relu = jnp.asarray(1.0 * n), activation is Activation.RELU
    power = (2 if relu else 2 + extra) * jnp.log10(n) - 2 * jnp.log10(jnp.asarray(smallest))
    inside = n / epsilon if relu else n**2 / epsilon
    return {
        "width": power + (1 if relu else 2) * jnp.log10(jnp.log(n)),
        "steps": power + jnp.log10(jnp.log(inside)),
    }


@closed_form
def gu2024_movement_radius(n: Number, d: Number, smallest: Number, B: Number) -> Float[Array, ""]:
    r"""R of the induction: within it Lemma 5.1 as printed keeps half of lambda (Claim E.5).

    $$R=\frac\lambda{2nd\,e^{10B}}$$

    Source: Definition A.2 of gu2024exploring (recalled).

    Examples:
        >>> float(gu2024_movement_radius(2, 2, 1.0, 0.0))
        0.125
    """
    return smallest / (2 * n * d) * jnp.exp(-KERNEL_EXPONENT * jnp.asarray(B))


@closed_form
def gu2024_movement(
    n: Number, d: Number, m: Number, smallest: Number, B: Number, start: Number
) -> Float[Array, ""]:
    r"""D, the bound on ||w_r(tau) - w_r(0)|| along the training; the induction needs D < R.

    $$D=\frac{8e^{3B}\sqrt{nd}\,\|F(0)-Y\|_F}{m\lambda}$$

    Args:
        start: ||F(0) - Y||_F.

    Source: Lemma C.2 of gu2024exploring (constants derived).

    Examples:
        >>> float(gu2024_movement(2, 2, 4, 1.0, 0.0, 1.0))
        4.0
    """
    return 8 * gu2024_gradient(n, d, B, start) / (m * smallest)


@closed_form
def gu2024_gradient(n: Number, d: Number, B: Number, residual: Number) -> Float[Array, ""]:
    r"""Lemma D.1: the bound on ||Delta w_r|| for every unit; times eta, Lemma D.2.

    $$\|\Delta w_r\|\le e^{3B}\sqrt{nd}\,\|F-Y\|_F$$

    The factor is 2 e^{2B + 2R} by Part 11 of Lemma B.1, below e^{3B} where B >= log 2 + 2 R.

    Source: Lemma D.1 of gu2024exploring (recalled).

    Examples:
        >>> float(gu2024_gradient(2, 2, 0.0, 3.0))
        6.0
    """
    return jnp.exp(3 * jnp.asarray(B)) * jnp.sqrt(jnp.asarray(1.0 * n * d)) * residual


@closed_form
def gu2024_start(
    n: Number, d: Number, constants: Literal["printed", "sharp"] = "sharp"
) -> Float[Array, ""]:
    r"""Lemma D.3: the bound on ||F(0) - Y||_F for targets of norm at most 1.

    $$\sqrt{nd}\ \text{(printed, up to a constant)},\qquad\sqrt n\ \text{(sharp: }F(0)=0)$$

    Source: Lemma D.3 of gu2024exploring (recalled); sharp (derived).

    Examples:
        >>> float(gu2024_start(4, 4)), float(gu2024_start(4, 4, "printed"))
        (2.0, 4.0)
    """
    require_constants(constants, "printed", "sharp")
    return jnp.sqrt(jnp.asarray(1.0 * n * (d if constants == "printed" else 1)))


def _polynomial(n: Number, d: Number, smallest: Number, power: int) -> Float[Array, ""]:
    return power * jnp.log10(jnp.asarray(1.0 * n * d)) - 2 * jnp.log10(jnp.asarray(smallest))


def _power_of_e(exponent: int, B: Number) -> Float[Array, ""]:
    return exponent * jnp.asarray(B) / math.log(10)
