r"""Lemma 1: samples that suffice for a learned mask, with every constant.

The proof is that of docs/proofs/liu2021_sample_size.md with two blocks besides w: the first layer
and the mask.
"""

import math
from functools import partial

from attlas.bounds.generalisation.liu2021_sample_size import liu2021_mask
from attlas.bounds.generalisation.liu2021_union_bound import Conditions
from attlas.claims.liu2021analyzing.union_bound import batch, terms, what_fails
from attlas.core.claim import Control, Status
from attlas.core.statement import inequality


def mask(rng):
    """Constants of Lemma 1 with the sample sizes of the library."""
    p, d = (int(k) for k in rng.integers(1, 30, 2))
    s0 = int(rng.integers(1, p + 1))
    C_x, C_1, C_2, gamma = (float(v) for v in 10 ** rng.uniform(-1, 1, 4))
    smallest, noise = (float(v) for v in 10 ** rng.uniform(-2, 1, 2))
    failure = float(rng.uniform(0.01, 0.5))
    residual = float(rng.uniform(0, 0.9)) * (gamma / C_2) ** 2
    known = Conditions(smallest, residual, noise, failure)
    setting = (p, d, s0, gamma, (C_x, C_1, C_2))
    n = liu2021_mask(*setting, known)
    printed = liu2021_mask(*setting, constants="printed")
    B, blocks = math.sqrt(s0) * C_1 * C_x, [(p * d, 1.0), (p, 1.0)]
    return n, printed, terms(B, C_2, d, blocks, gamma, known)


@inequality(
    "Lemma 1, with every constant",
    sample=partial(batch, mask),
    status=Status.CORRECTED,
    count=48,
    controls=[Control("the printed sample size with the constant one", as_printed=True)],
)
def lemma_1(n, printed, entropy, exponent, failure, *, as_printed=False):
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
    return what_fails(printed if as_printed else n, entropy, exponent, failure)
