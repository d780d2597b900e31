r"""Lemma 1 and Theorems 1, 2 and 6 with every constant, at the library's sample sizes.

The union bound of papers/liu2021analyzing/proofs/sample_size.md, written out again, at the sample
sizes of `liu2021analyzing.library.bounds.liu2021_sample_size`, uses between a half and all of
delta, and at least a quarter where the spread of the noise decides, $n = 2 \log(4/\delta)$.
"""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, ProofStep, Sides, Status
from attlas.claims.statement import inequality
from liu2021analyzing.library.bounds import liu2021_sample_size as sizes
from liu2021analyzing.library.bounds.liu2021_union_bound import Conditions


def conditions(rng, gamma, C_2):
    """What the theorems assume, with a residual below what the error allows."""
    smallest, noise = (float(v) for v in 10 ** rng.uniform(-2, 1, 2))
    residual = float(rng.uniform(0, 0.9)) * (gamma / C_2) ** 2
    return Conditions(smallest, residual, noise, float(rng.uniform(0.01, 0.5)))


def terms(B, C_2, d, blocks, gamma, assumed):
    """Logarithm of the cover, the exponent per draw, and what may fail.

    Blocks are pairs: how many parameters besides w, and their stretch.
    """
    M = max(2 * C_2 * B**2, assumed.noise * B)
    level = assumed.smallest * (gamma**2 - C_2**2 * assumed.residual)
    rho = min(1.0, math.sqrt(level) / ((4 + 12 * len(blocks)) * M))
    entropy = d * math.log(3 / rho)
    entropy += sum(count * math.log(3 * max(1.0, L) / rho) for count, L in blocks)
    return entropy, level / (128 * M**2), assumed.failure


def batch(draw, rng, count):
    """Rows (corrected size, printed size, terms) as arrays, and the least that may be left."""
    rows = []
    for _ in range(count):
        n, printed, bound = draw(rng)
        # Where the covers decide half of delta is left, where the noise's spread does a quarter.
        least = 0.5 if n > 2 * math.log(4 / bound[2]) * (1 + 1e-9) else 0.25
        rows.append((n, max(printed, 0.0), *bound, least))
    n, printed, entropy, exponent, failure, least = np.array(rows).T
    arrays = {"n": n, "printed": printed, "least": least}
    return arrays | {"entropy": entropy, "exponent": exponent, "failure": failure}


def fixed_weights(rng):
    """Constants of Theorem 1, the weights' norm from equal ones to none."""
    p, d = (int(k) for k in rng.integers(1, 30, 2))
    C_x, C_1, C_2, gamma, norm = (float(v) for v in 10 ** rng.uniform(-1, 1, 5))
    # So easy in every fourth that the spread of the noise decides.
    gamma *= rng.choice([1.0, 1.0, 1.0, 1e4])
    assumed = conditions(rng, gamma, C_2)
    setting = (p, d, gamma, (C_x, C_1, C_2))
    n = sizes.liu2021_attention(*setting, assumed, weight_norm=norm)
    printed = sizes.liu2021_attention(*setting, constants="printed")
    return n, printed, terms(C_1 * C_x * norm, C_2, d, [(p * d, 1.0)], gamma, assumed)


def mask(rng):
    """Constants of Lemma 1."""
    p, d = (int(k) for k in rng.integers(1, 30, 2))
    s0 = int(rng.integers(1, p + 1))
    C_x, C_1, C_2, gamma = (float(v) for v in 10 ** rng.uniform(-1, 1, 4))
    assumed = conditions(rng, gamma, C_2)
    setting = (p, d, s0, gamma, (C_x, C_1, C_2))
    n = sizes.liu2021_mask(*setting, assumed)
    printed = sizes.liu2021_mask(*setting, constants="printed")
    B, blocks = math.sqrt(s0) * C_1 * C_x, [(p * d, 1.0), (p, 1.0)]
    return n, printed, terms(B, C_2, d, blocks, gamma, assumed)


def self_attention(rng):
    """Constants of Theorem 2."""
    p, t, d, d_v, d_q = (int(k) for k in rng.integers(1, 9, 5))
    C_x, C_1, C_2, C_5, C_6, C_7, gamma = (float(v) for v in 10 ** rng.uniform(-1, 1, 7))
    assumed = conditions(rng, gamma, C_2)
    # For the print C_8 is as large as C_7, and one weight counts.
    setting = ((p, t, d, d_v, d_q), gamma, (C_x, C_1, C_2, C_5, C_6, C_7, C_7))
    n = sizes.liu2021_self_attention(*setting, assumed)
    printed = sizes.liu2021_self_attention(*setting, s0=1, constants="printed")
    L = C_5 * C_6 * t * C_x**2 / math.sqrt(d_q)
    blocks = [(p * d_v * d, 1.0), (d_v * t, 1.0), (t * d_q, L), (t * d_q, L)]
    B = C_1 * C_7 * C_x * math.sqrt(p * t)
    return n, printed, terms(B, C_2, d, blocks, gamma, assumed)


def recurrence(rng):
    """Constants of Theorem 6."""
    t, d, d_a, d_f = (int(k) for k in rng.integers(1, 30, 4))
    C_x, C_1, C_2, C_8, C_9, gamma = (float(v) for v in 10 ** rng.uniform(-1, 1, 6))
    assumed = conditions(rng, gamma, C_2)
    setting = ((t, d, d_a, d_f), gamma, (C_x, C_1, C_2), (C_8, C_9))
    n = sizes.liu2021_recurrent(*setting, assumed)
    printed = sizes.liu2021_recurrent(*setting, constants="printed")
    blocks = [(t * d, 1.0), (d_a, C_8), (d_f, C_9)]
    return n, printed, terms(C_1 * C_x * math.sqrt(t), C_2, d, blocks, gamma, assumed)


def what_fails(n, entropy, exponent, failure, least, constant):
    """What the union bound leaves, over what is allowed: at most one, and at least a part.

    With a constant, at the sample size that has it in place of the 4 in both logarithms.
    """
    if constant is not None:
        covered = (math.log(constant) + entropy - jnp.log(failure)) / exponent
        n = jnp.maximum(covered, 2 * jnp.log(constant / failure))
    # The network's deviation, the noise at the centres, the noise between them.
    deviation, noise = math.log(2) + entropy - n * exponent, 0.5 + entropy - 2 * n * exponent
    probabilities = jnp.exp(jnp.minimum(jnp.stack([deviation, noise, -n / 2]), 50.0))
    left = jnp.sum(probabilities) / failure
    # Exponents of the size of the entropy are rounded before they are raised.
    sides = jnp.stack([left, least]), jnp.stack([jnp.ones_like(left), left])
    return Sides(*sides, (left + 0.5) * (1 + entropy))


with_every_constant = partial(
    inequality,
    status=Status.CORRECTED,
    count=48,
    controls=[
        Control("the printed sample size with the constant one", as_printed=True),
        Control(r"$N / \delta$ in the logarithm in place of $4 N / \delta$", constant=1.0),
        Control(r"$16 N / \delta$ in the logarithm", constant=16.0),
    ],
)


@with_every_constant(
    "Theorem 1, with every constant",
    sample=partial(batch, fixed_weights),
    proof_step=ProofStep("liu2021analyzing/theorem-1", 5),
    evaluations=240,
)
def theorem_1_size(
    n, printed, entropy, exponent, failure, least, *, as_printed=False, constant=None
):
    r"""$$n = n(p, d, \gamma, \lambda, \delta),\ B = C_1 C_x \|f\|_2: \quad
    \frac\delta2 \le N \left( 2 e^{-a} + \sqrt{e} e^{-2a} \right) + e^{-n/2} \le \delta, \quad
    N = \left( \frac{3}{\rho} \right)^{pd+d}, \quad a = \frac{n s^2}{128 M^2}$$

    $s^2 = \lambda (\gamma^2 - C_2^2 \lambda_{\max} \mathrm{Var}(\Phi^*|\Phi))$ has the smallest
    eigenvalue of the features, which the print lacks. The mean of $u \Phi$ at the centres takes
    half of $\delta$, the noise and its spread vanish, so that $\log(4 N / \delta)$ might be
    $\log((2 + o(1)) N / \delta)$. Where $n = 2 \log(4/\delta)$ is larger, for the spread of the
    noise, a quarter of $\delta$ is left at least.
    """
    return what_fails(printed if as_printed else n, entropy, exponent, failure, least, constant)


@with_every_constant("Lemma 1, with every constant", sample=partial(batch, mask), evaluations=336)
def lemma_1(n, printed, entropy, exponent, failure, least, *, as_printed=False, constant=None):
    r"""$$n = n(s_0, p, d, \gamma, \lambda, \delta),\ B = \sqrt{s_0}\, C_1 C_x: \quad
    \frac\delta2 \le N \left( 2 e^{-a} + \sqrt{e} e^{-2a} \right) + e^{-n/2} \le \delta, \quad
    N = \left( \frac{3}{\rho} \right)^{pd+p+d}, \quad a = \frac{n s^2}{128 M^2}$$

    As theorem-1-size. Masks are not normalised, and $s_0^2$ is right here.
    """
    return what_fails(printed if as_printed else n, entropy, exponent, failure, least, constant)


@with_every_constant(
    "Theorem 2, with every constant", sample=partial(batch, self_attention), evaluations=288
)
def theorem_2_size(
    n, printed, entropy, exponent, failure, least, *, as_printed=False, constant=None
):
    r"""$$n = n(p, t, d, d_v, d_q, \gamma, \lambda, \delta),\ B = C_1 C_7 C_x \sqrt{pt}: \quad
    \frac\delta2 \le N \left( 2 e^{-a} + \sqrt{e} e^{-2a} \right) + e^{-n/2} \le \delta, \quad
    N = \left( \frac{3}{\rho} \right)^d \prod_{k} \left( \frac{3 L_k}{\rho} \right)^{P_k}$$

    As theorem-1-size, with the blocks $w^{(1)}$, $w_V$, $w_Q$ and $w_K$; the last two have the
    stretch $L = C_5 C_6 t C_x^2 / \sqrt{d_q}$ of theorem-2-moves, in the logarithm alone. $d_q$
    counts $2 t d_q$ parameters. No concentration of the weights changes $n$.
    """
    return what_fails(printed if as_printed else n, entropy, exponent, failure, least, constant)


@with_every_constant(
    "Theorem 6, with every constant", sample=partial(batch, recurrence), evaluations=288
)
def theorem_6_size(
    n, printed, entropy, exponent, failure, least, *, as_printed=False, constant=None
):
    r"""$$n = n(t, d, d_a, d_f, \gamma, \lambda, \delta),\ B = C_1 C_x \sqrt{t}: \quad
    \frac\delta2 \le N \left( 2 e^{-a} + \sqrt{e} e^{-2a} \right) + e^{-n/2} \le \delta, \quad
    N = \left( \frac{3}{\rho} \right)^d \prod_{k} \left( \frac{3 L_k}{\rho} \right)^{P_k}$$

    Blocks $w^{(1)}$, score and update. The stretches of the last two are given: how far a
    recurrence moves its weights depends on its score and grows with the number of steps, where the
    print has $C_8 C_9$.
    """
    return what_fails(printed if as_printed else n, entropy, exponent, failure, least, constant)
