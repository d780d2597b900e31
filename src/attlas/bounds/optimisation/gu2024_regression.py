r"""Theorem F.2 of gu2024exploring: how far a network is from its kernel regression.

The printed second term has the unit of 1 / kernel; ||K_te(0)|| is missing in it. "sharp" restores
it, drops the logarithm and sqrt(d), holds at every time and is attained:
docs/proofs/gu2024_kernel_regression.md.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.optimisation.gu2024_perturbation import Number


def gu2024_regression_gap_printed(
    n: Number,
    d: Number,
    m: Number,
    smallest: Number,
    kernel_change: Number,
    test_change: Number,
    C: Number = 1.0,
) -> Float[Array, ""]:
    r"""Theorem F.2 as recalled, with its hidden constant as an argument.

    $$C\Big(\frac{\sqrt{nd}}\lambda\epsilon_{test}+\frac{\sqrt{nd}}{\lambda^2}
    \log^2\Big(\frac{nd}{\epsilon_Hm\lambda}\Big)\epsilon_H\Big)$$

    Args:
        n: samples.
        d: outputs.
        m: width.
        smallest: lambda.
        kernel_change: eps_H, bound on ||H(tau) - H*||_F, at most lambda / 2 and above 0.
        test_change: eps_test, bound on the change of the kernel row of the test point.
        C: hidden constant.

    Returns:
        The bound on |gamma_nn - gamma_ntk| for one output.

    Source: Theorem F.2 of gu2024exploring (recalled).

    Examples:
        >>> float(gu2024_regression_gap_printed(1, 1, 1, 0.5, 2.0, 0.25))
        0.5
    """
    size = jnp.sqrt(jnp.asarray(1.0 * n * d))
    logs = jnp.log(jnp.asarray(n * d / (kernel_change * m * smallest))) ** 2
    return C * size * (test_change / smallest + logs * kernel_change / smallest**2)


def gu2024_regression_gap(
    start: Number,
    test_kernel: Number,
    smallest: Number,
    kernel_change: Number,
    test_change: Number,
    contraction: Number | None = None,
) -> Float[Array, ""]:
    r"""Theorem F.2 sharpened, for flow: the gap at all times.

    $$|\gamma_{nn}-\gamma_{ntk}|\le\|Y\|\Big(\frac{\epsilon_{test}}\rho
    +\frac{\|K_{te}(0)\|\,\epsilon_H}{\lambda\rho}\Big),\qquad\lambda_{\min}(H(\tau))\ge\rho$$

    At rho = lambda / 2 this is 2 ||Y|| eps_test / lambda + 2 ||Y|| ||K_te(0)|| eps_H / lambda^2.

    Args:
        start: ||F(0) - Y||, which is ||Y|| at the symmetric initialisation.
        test_kernel: Euclidean norm of the kernel row between test and training points.
        smallest: lambda, least eigenvalue of H*.
        kernel_change: eps_H in any operator norm's upper bound.
        test_change: eps_test, Euclidean.
        contraction: rho; lambda / 2 when None, and lambda - eps_H is always allowed.

    Returns:
        The bound for one output.

    Source: Theorem F.2 of gu2024exploring (sharpened, derived).

    Examples:
        >>> float(gu2024_regression_gap(1.0, 2.0, 1.0, 0.25, 0.5))
        2.0
    """
    smallest = jnp.asarray(smallest)
    rho = smallest / 2 if contraction is None else contraction
    return start / rho * (test_change + test_kernel * kernel_change / smallest)


def gu2024_regression_gap_in_time(
    time: Float[Array, "*t"],
    start: Number,
    test_kernel: Number,
    smallest: Number,
    kernel_change: Number,
    test_change: Number,
) -> Float[Array, "*t"]:
    r"""`gu2024_regression_gap` at finite times, with rho = lambda / 2.

    $$\|Y\|\Big(\frac2\lambda(1-q)\,\epsilon_{test}
    +\frac{2\|K_{te}(0)\|}{\lambda^2}(1-q)^2\epsilon_H\Big),\qquad q=e^{-m\lambda t/2}$$

    Args:
        time: m t, with t the time of the flow; eta times the steps in its place for descent.
        start: ||F(0) - Y||.
        test_kernel: Euclidean norm of the kernel row between test and training points.
        smallest: lambda.
        kernel_change: eps_H.
        test_change: eps_test.

    Returns:
        The bound at each time.

    Source: Theorem F.2 of gu2024exploring (sharpened, derived).

    Examples:
        >>> late = gu2024_regression_gap_in_time(jnp.array([0.0, 1e3]), 1.0, 2.0, 1.0, 0.25, 0.5)
        >>> late.tolist()
        [0.0, 2.0]
    """
    gone = -jnp.expm1(-smallest * time / 2)
    second = test_kernel * kernel_change / smallest * gone**2
    return 2 * start / smallest * (test_change * gone + second)
