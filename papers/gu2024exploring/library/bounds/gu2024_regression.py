r"""Theorem F.2 of gu2024exploring: how far a network is from its kernel regression.

The printed second term has the unit of 1 / kernel; ||K_te(0)|| is missing in it. "sharp" restores
it, drops the logarithm and sqrt(d), holds at every time and is attained; `gu2024_coupling` needs
no lambda: papers/gu2024exploring/proofs/kernel_regression.md.
"""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import require_constants
from attlas.bounds.optimisation.gu2024_perturbation import Number
from attlas.core.errors import UserError


@closed_form
def gu2024_regression_gap(
    start: Number,
    test_kernel: Number,
    smallest: Number,
    kernel_change: Number,
    test_change: Number,
    *,
    contraction: Number | None = None,
    m: Number | None = None,
    C: Number = 1.0,
    constants: Literal["printed", "sharp"] = "sharp",
) -> Float[Array, ""]:
    r"""Theorem F.2 for flow: the gap between a network and its kernel regression at all times.

    Sharp, where $\lambda_{\min}(H(\tau))\ge\rho$, and printed, as it is recalled:

    $$|\gamma_{nn}-\gamma_{ntk}|\le\|Y\|\Big(\frac{\epsilon_{test}}\rho
    +\frac{\|K_{te}(0)\|\,\epsilon_H}{\lambda\rho}\Big),\qquad
    C\sqrt{nd}\Big(\frac{\epsilon_{test}}\lambda
    +\log^2\Big(\frac{nd}{\epsilon_Hm\lambda}\Big)\frac{\epsilon_H}{\lambda^2}\Big)$$

    At rho = lambda / 2 the first is 2 ||Y|| eps_test / lambda + 2 ||Y|| ||K_te(0)|| eps_H /
    lambda^2.

    Args:
        start: ||F(0) - Y||, which is ||Y|| at the symmetric initialisation; the printed bound has
            (n d)^(1/2) in its place, the printed `gu2024_start`.
        test_kernel: Euclidean norm of the kernel row between test and training points, which is
            missing in the printed bound.
        smallest: lambda, least eigenvalue of H*.
        kernel_change: eps_H in any operator norm's upper bound; printed: at most lambda / 2.
        test_change: eps_test, Euclidean, of one row.
        contraction: rho; lambda / 2 when None, and lambda - eps_H is always allowed.
        m: width, which the printed bound needs.
        C: hidden constant of the printed bound.
        constants: "printed" or "sharp".

    Raises:
        UserError: if the constants are unknown, or m is missing for the printed bound.

    Source: Theorem F.2 of gu2024exploring (recalled); sharp (derived).

    Examples:
        >>> float(gu2024_regression_gap(1.0, 2.0, 1.0, 0.25, 0.5))
        2.0
        >>> float(gu2024_regression_gap(1.0, 2.0, 0.5, 2.0, 0.25, m=1, constants="printed"))
        0.5
    """
    require_constants(constants, "printed", "sharp")
    start, smallest = jnp.asarray(start), jnp.asarray(smallest)
    if constants == "sharp":
        rho = smallest / 2 if contraction is None else contraction
        return start / rho * (test_change + test_kernel * kernel_change / smallest)
    if m is None:
        raise UserError("the printed bound has no width: give m=, or constants='sharp'")
    logs = jnp.log(start**2 / (kernel_change * m * smallest)) ** 2
    return C * start * (test_change / smallest + logs * kernel_change / smallest**2)


@closed_form
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
        smallest: lambda, the least eigenvalue of H.
        kernel_change: eps_H, the change of the training kernel.
        test_change: eps_test, the change of a row of the test kernel.

    Source: Theorem F.2 of gu2024exploring (sharpened, derived).

    Examples:
        >>> late = gu2024_regression_gap_in_time(jnp.array([0.0, 1e3]), 1.0, 2.0, 1.0, 0.25, 0.5)
        >>> late.tolist()
        [0.0, 2.0]
    """
    gone = -jnp.expm1(-smallest * time / 2)
    second = test_kernel * kernel_change / smallest * gone**2
    return 2 * start / smallest * (test_change * gone + second)


@closed_form
def gu2024_coupling(
    time: Number | Float[Array, "*s"],
    start: Number,
    test_kernel: Number | Float[Array, "*s"],
    kernel_change: Number,
    test_change: Number | Float[Array, "*s"],
    *,
    fixed: bool = False,
) -> Float[Array, "*s"]:
    r"""The gap of `gu2024_regression_gap_in_time` without lambda, for kernels of any rank.

    $$\|Y\|\Big(\tau\,\epsilon_{test}+\frac{\tau^2}2\|K_{te}(0)\|\,\epsilon_H\Big),\qquad\tau=mt$$

    For a flow whose kernel differs from the other one but does not change on the way,
    $\tau-(1-e^{-\epsilon_H\tau})/\epsilon_H$ stands in place of $\frac{\tau^2}2\epsilon_H$.

    Residuals do not grow, since kernels are positive semidefinite. It is the limit of the other
    as lambda tends to 0. For descent, tau is m eta times the steps and the changes are those of
    the kernels averaged over a step: papers/gu2024exploring/proofs/kernel_regression.md.

    Args:
        time: tau, m times the time of the flow.
        start: ||F(0) - Y||.
        test_kernel: Euclidean norm of the kernel row between test and training points.
        kernel_change: eps_H, the change of the training kernel.
        test_change: eps_test; for several outputs arrays like `test_kernel`, at one time.
        fixed: whether both kernels are the same at all times.

    Returns:
        The bound for each output, or for one at each time.

    Source: Theorem F.2 of gu2024exploring (sharpened, derived).

    Examples:
        >>> float(gu2024_coupling(2.0, 1.0, 3.0, 0.25, 0.5))
        2.5
        >>> print(f"{float(gu2024_coupling(2.0, 1.0, 3.0, 0.25, 0.5, fixed=True)):.4f}")
        2.2784
    """
    time = jnp.asarray(time)
    if fixed:
        return start * (time * test_change + test_kernel * time * _not_gone(kernel_change * time))
    return start * (time * test_change + time**2 / 2 * test_kernel * kernel_change)


def _not_gone(x: Array) -> Array:
    """1 - (1 - e^{-x}) / x, by its series where the difference would cancel."""
    safe = jnp.where(x > 1e-3, x, 1.0)
    series = x / 2 * (1 - x / 3 * (1 - x / 4 * (1 - x / 5)))  # but for x^4 / 360 of it
    return jnp.where(x > 1e-3, 1 + jnp.expm1(-safe) / safe, series)
