r"""How many samples make all stationary points good: the proof of liu2021analyzing, corrected.

With every constant: papers/liu2021analyzing/proofs/sample_size.md. Two things differ from the
print. The features are bounded through ||x o f||_2 <= C_x ||f||_2, so s0 and p appear only in the
number of parameters. And a small gradient implies a small error only through the smallest
positive eigenvalue of the features' covariance, which the print bounds from the wrong side.
`liu2021analyzing.library.bounds.liu2021_sample_size` has the theorems.
"""

import math
from typing import NamedTuple

from attlas.bounds.closed_form import closed_form
from attlas.core.errors import UserError
from attlas.core.ranges import require_at_least, require_positive
from liu2021analyzing.library.bounds.liu2021_printed import gradient_error


class Conditions(NamedTuple):
    """What the corrected theorems assume of all parameters in question.

    Attributes:
        smallest: lambda, the smallest positive eigenvalue of Cov(Phi).
        residual: largest eigenvalue of Var(Phi* | Phi), the left side of (A3).
        noise: C_3 of the sub-Gaussian noise.
        failure: probability with which the statement may fail.
    """

    smallest: float
    residual: float = 0.0
    noise: float = 0.0
    failure: float = 0.05


class Block(NamedTuple):
    """Parameters in a Euclidean ball, of which the features are a Lipschitz function.

    Attributes:
        parameters: their number.
        stretch: change of the features, relative to their bound, per change of the parameters
            relative to the ball's radius; what is below one counts as one.
    """

    parameters: int
    stretch: float = 1.0


@closed_form
def liu2021_error(gradient: float, C_2: float, conditions: Conditions) -> float:
    r"""Largest population error of a point whose population gradient in w2 is that small.

    $$E\,u^2\le\frac{\|E[u\Phi]\|^2}\lambda+C_2^2\,\lambda_{\max}(\mathrm{Var}(\Phi^*|\Phi))$$

    Args:
        C_2: norm of the teacher's second layer.
        conditions: lambda and the residual.

    Returns:
        Bound of E u^2, for centred u.

    Source: derived, in place of Lemma 1.1 of liu2021analyzing.

    Examples:
        >>> liu2021_error(0.5, 1.0, Conditions(smallest=0.25, residual=0.1))
        1.1
    """
    require_positive(smallest=conditions.smallest)
    require_at_least(0, gradient=gradient, C_2=C_2, residual=conditions.residual)
    return float(gradient_error(gradient, C_2, conditions.smallest, conditions.residual))


@closed_form
def liu2021_sample_size(
    features: float, C_2: float, d: int, blocks: list[Block], gamma: float, conditions: Conditions
) -> float:
    r"""Samples from which every stationary point has a population error of at most gamma^2.

    $$n\ge\frac{128M^2}{s^2}\Big(d\log\frac3\rho+\sum_kP_k\log\frac{3L_k}\rho
    +\log\frac4\delta\Big),\qquad n\ge2\log\frac4\delta$$
    $$M=\max(2C_2B^2,C_3B),\quad s^2=\lambda(\gamma^2-C_2^2\,\mathrm{residual}),\quad
    \rho=\min\Big(1,\frac s{4(1+3K)M}\Big)$$

    Args:
        features: B, bound of ||Phi||_2.
        C_2: norm of the second layer, the teacher's too.
        blocks: the other parameters, K blocks; L_k is their stretch.
        conditions: lambda, residual, C_3, delta.

    Returns:
        The sample size, not rounded; infinite where the residual alone exceeds the error.

    Source: derived, in place of Theorem 1 of liu2021analyzing.

    Examples:
        >>> few, many = (liu2021_sample_size(1.0, 1.0, 1, [Block(p)], 0.1, Conditions(1.0))
        ...              for p in (10, 1000))
        >>> print(f"{few:.3g} {many:.3g}")
        4.09e+06 3.52e+08
    """
    smallest, residual, noise, failure = conditions
    require_positive(smallest=smallest, gamma=gamma, features=features, C_2=C_2)
    require_at_least(0, residual=residual, noise=noise)
    require_at_least(1, d=d)
    for block in blocks:
        require_at_least(0, parameters=block.parameters, stretch=block.stretch)
    if not 0 < failure < 1:
        raise UserError(f"failure = {failure}: it must lie in (0, 1)")
    level = smallest * (gamma**2 - C_2**2 * residual)
    if level <= 0:
        return math.inf
    M = max(2 * C_2 * features**2, noise * features)
    rho = min(1.0, math.sqrt(level) / (4 * (1 + 3 * len(blocks)) * M))
    entropy = d * math.log(3 / rho) + math.log(4 / failure)
    for block in blocks:
        entropy += block.parameters * math.log(3 * max(1.0, block.stretch) / rho)
    return max(128 * M**2 / level * entropy, 2 * math.log(4 / failure))
