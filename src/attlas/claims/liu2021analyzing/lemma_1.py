r"""Lemma 1: samples that suffice for a learned mask, with every constant.

The proof is that of docs/proofs/liu2021_sample_size.md with two blocks besides w: the first layer
and the mask.
"""

import math

import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.liu2021_corrected import Conditions, liu2021_learned_mask
from attlas.bounds.generalisation.liu2021_sample_size import liu2021_mask
from attlas.core.claim import Control, Sides, Status
from attlas.core.statement import inequality

_CONSTANTS = ("s0", "C_x", "C_1", "C_2", "gamma", "smallest", "residual", "noise", "failure")


def sizes(rng, count):
    """Constants of Lemma 1 with the sample sizes of the library."""
    rows = []
    for _ in range(count):
        p, d = (int(k) for k in rng.integers(1, 30, 2))
        s0 = int(rng.integers(1, p + 1))
        C_x, C_1, C_2, gamma = (float(v) for v in 10 ** rng.uniform(-1, 1, 4))
        smallest, noise = (float(v) for v in 10 ** rng.uniform(-2, 1, 2))
        failure = float(rng.uniform(0.01, 0.5))
        residual = float(rng.uniform(0, 0.9)) * (gamma / C_2) ** 2
        conditions = Conditions(smallest, residual, noise, failure)
        n = liu2021_learned_mask(p, d, s0, gamma, (C_x, C_1, C_2), conditions)
        printed = liu2021_mask(p, d, s0, gamma, (C_x, C_1, C_2))
        parameters = d + p * d + p
        rows.append([n, max(printed, 0.0), parameters, s0, C_x, C_1, C_2, gamma, *conditions])
    names = ("n", "printed", "parameters", *_CONSTANTS)
    return dict(zip(names, np.array(rows).T, strict=True))


@inequality(
    "Lemma 1, with every constant",
    sample=sizes,
    status=Status.CORRECTED,
    count=48,
    controls=[Control("the printed sample size with the constant one", as_printed=True)],
)
def lemma_1(
    n, printed, parameters, s0, C_x, C_1, C_2, gamma, smallest, residual, noise, failure,
    *, as_printed=False,
):  # fmt: skip
    r"""$$n \ge n(s_0, p, d, \gamma, \lambda, \delta): \quad
    \left( \frac{3}{\rho} \right)^{pd+p+d}
    \left( 2 e^{-a} + \sqrt{e} e^{-2a} \right) + e^{-n/2} \le \delta, \quad
    a = \frac{n s^2}{128 M^2}$$

    The left side is the failure probability of the corrected proof, of covers and three tail
    bounds; $s^2 = \lambda (\gamma^2 - C_2^2 \lambda_{\max} \mathrm{Var}(\Phi^*|\Phi))$ has the
    smallest eigenvalue of the features, which the print lacks. Masks are not normalised, and
    $s_0^2$ is right here. Half of $\delta$ is left: the 4 of $\log(4/\delta)$ might be little more
    than 2.
    """
    n = printed if as_printed else n
    B = jnp.sqrt(s0) * C_1 * C_x
    M = jnp.maximum(2 * C_2 * B**2, noise * B)
    level = smallest * (gamma**2 - C_2**2 * residual)
    rho = jnp.minimum(1.0, jnp.sqrt(level) / (28 * M))
    centres, tail = parameters * jnp.log(3 / rho), n * level / (128 * M**2)
    # The network's deviation, the noise at the centres, the noise between them.
    exponents = jnp.stack([math.log(2) + centres - tail, 0.5 + centres - 2 * tail, -n / 2])
    left = jnp.sum(jnp.exp(jnp.minimum(exponents, 50.0))) / failure
    # Exponents of size n level / M^2 are rounded before they are raised.
    return Sides(left, jnp.ones_like(left), 1 + jnp.abs(centres) * left)
