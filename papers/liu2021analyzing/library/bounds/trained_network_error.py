r"""Error of a network that fits its sample at least as well as the true function does.

Theorem 3 of liu2021analyzing under conditions that can be checked on a trained network: bounded
weights, and a training risk not above that of the noise. They replace (A6), which requires
gradients as large as the error. Proof: papers/liu2021analyzing/proofs/trained_networks.md.
"""

import math
from collections.abc import Sequence

from attlas.bounds.closed_form import closed_form
from attlas.core.errors import UserError
from attlas.core.ranges import require_at_least, require_positive


@closed_form
def deep_attention_stretch(logit_bounds: Sequence[float]) -> float:
    r"""Largest change of the output of D self-attention layers, relative to its bound.

    $$s_k=s_{k-1}(1+2\Lambda_k)+3+2\Lambda_k,\quad s_0=0,\quad
    \Lambda_k=\|W_K^{(k)}\|_F\|W_Q^{(k)}\|_Fr_{k-1}^2/\sqrt{d_q}$$

    If each of the five matrices of every layer moves by at most rho times the radius of its ball,
    the output moves by at most s_D rho times its bound. r_k is the bound of a word after layer k.

    Args:
        logit_bounds: Lambda_k, bounds of the logits, first layer first.

    Raises:
        UserError: if there is no layer, or a bound is negative.

    Examples:
        >>> deep_attention_stretch([0.0])  # values and both layers of the perceptron
        3.0
        >>> deep_attention_stretch([0.5, 0.5])  # 4, then 4 * 2 + 4
        12.0
    """
    if not logit_bounds:
        raise UserError("logit_bounds is empty: give one bound for each layer")
    stretch = 0.0
    for bound in logit_bounds:
        require_at_least(0, logit_bound=bound)
        stretch = stretch * (1 + 2 * bound) + 3 + 2 * bound
    return stretch


@closed_form
def trained_network_error(
    n: int,
    parameters: int,
    output: float,
    noise: float,
    stretch: float = 1.0,
    delta: float = 0.05,
    excess: float = 0.0,
) -> float:
    r"""Bound of E(h - E(y|x))^2 for every network with at most the noise's training risk.

    With |h|, |E(y|x)| <= B, C_3 the sub-Gaussian size of the noise and excess tau:
    $$E\,u^2\le\Big(\max\big\{\sqrt2(a+r),\,4B\sqrt{2L/n}\big\}+r\Big)^2,\quad
    a=\tfrac12\big(b+\sqrt{b^2+4r(b+4C_3)+4\tau}\big),\quad b=2C_3\sqrt{2L/n},$$
    $$L=P\log\frac{3sB}r+\log\frac2\delta,\quad r=\frac{b_0^2}{4(b_0+4C_3)},\quad
    b_0=2C_3\sqrt{2/n}$$
    but for probability delta + e^{-n/2}: of order (C_3^2 + B^2) P log(n) / n.

    Args:
        parameters: P, all trained numbers.
        output: B, also of a network whose output is clipped to [-B, B].
        noise: C_3, positive.
        stretch: s, by which the output moves relative to B where each block of weights moves
            relative to the radius of its ball, see `deep_attention_stretch`.
        delta: probability of failure, in (0, 1).
        excess: tau, by which the training risk, a mean square, may exceed that of the noise.

    Returns:
        The bound on the mean square.

    Examples:
        >>> bound = trained_network_error(10**6, 100, 1.0, 0.5)
        >>> round(bound, 4)
        0.0523
        >>> trained_network_error(4 * 10**6, 100, 1.0, 0.5) < 0.3 * bound
        True
    """
    require_at_least(1, n=n, parameters=parameters, stretch=stretch)
    require_positive(output=output, noise=noise)
    require_at_least(0, excess=excess)
    if not 0 < delta < 1:
        raise UserError(f"delta = {delta}: it must lie in (0, 1)")
    unit = 2 * noise * math.sqrt(2 / n)
    radius = unit**2 / (4 * (unit + 4 * noise))
    # A radius beyond the class needs one centre alone.
    cover = max(parameters * math.log(3 * stretch * output / radius), 0.0)
    level = cover + math.log(2 / delta)
    return finite_class_error(n, level, 2 * output, noise, radius, excess)


@closed_form
def finite_class_error(
    n: int, level: float, spread: float, noise: float, radius: float = 0.0, excess: float = 0.0
) -> float:
    r"""`trained_network_error` for a class with N centres at sup distance r, L = log(2N/delta).

    Args:
        level: L = log(2N / delta).
        spread: M, bound of |h - E(y|x)|.
        noise: C_3, the sub-Gaussian size of the noise.
        radius: r; 0 for a finite class.

    Examples:
        >>> round(finite_class_error(100, 1.0, 1.0, 1.0), 12)  # 16 C_3^2 L / n
        0.16
    """
    b = 2 * noise * math.sqrt(2 * level / n)
    a = (b + math.sqrt(b**2 + 4 * radius * (b + 4 * noise) + 4 * excess)) / 2
    centre = max(math.sqrt(2) * (a + radius), spread * math.sqrt(8 * level / n))
    return (centre + radius) ** 2
