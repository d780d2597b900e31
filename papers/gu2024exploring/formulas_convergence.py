r"""Formulas of sections 4 and 5 and Table 1, each against a second transcription of the paper.

Symbols: n, d (outputs), lambda, delta, sigma, epsilon, m; hidden constants are 1. A formula that is
loose is not tested by the claim of its statement: a wrong factor is noticed here.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.gu2024_convergence import (
    gu2024_gradient,
    gu2024_movement,
    gu2024_movement_radius,
    gu2024_radius,
    gu2024_start,
    gu2024_step_log10,
    gu2024_steps,
    gu2024_steps_log10,
    gu2024_table_1_log10,
    gu2024_width_at_radius_log10,
    gu2024_width_log10,
)
from attlas.claims.claim import Control, Sides, Source
from attlas.claims.statement import identity, inequality
from attlas.models.networks.softmax_network import Activation


def numbers(rng, count):
    """Sizes of problems of 2 to 1000 samples; B and C small, so that e^{18 B} can be written."""
    small = {"lam": (-3, 0), "delta": (-3, -0.5), "sigma": (-1, 0.3), "epsilon": (-3, -0.5)}
    drawn = {name: 10 ** rng.uniform(*ends, count) for name, ends in small.items()}
    return drawn | {
        "n": np.floor(10 ** rng.uniform(0.5, 3, count)),
        "d": np.floor(rng.uniform(1, 9, count)),
        "m": np.floor(10 ** rng.uniform(1, 6, count)),
        "B": rng.uniform(1, 4, count),
        "C": rng.uniform(10, 40, count),
        "residual": 10 ** rng.uniform(-2, 1, count),
    }


_MORE = Control("each 1 % more", more=0.01)
"""Violates every component."""
transcribed = partial(
    identity, source=Source.RECALLED, sample=numbers, count=32, roundings=512, controls=[_MORE]
)


@transcribed("Definition 4.1")
def definition_4_1(n, d, delta, sigma, m, C, *, more=0.0):
    r"""$$B = \max\{C \sigma \sqrt{\log(nd/\delta)}, 1\},\quad
    B_{\text{corrected}} = \max\{\sigma \sqrt{2 \log(nm/(2\delta))}, 1\}$$
    """
    ours = gu2024_radius(n, d, delta, sigma, C=C, constants="printed")
    corrected = gu2024_radius(n, d, delta, sigma, m=m)
    printed = C * sigma * (jnp.log(n) + jnp.log(d) - jnp.log(delta)) ** 0.5
    union = sigma * (2 * jnp.log(n * m / delta) - 2 * jnp.log(2.0)) ** 0.5
    right = jnp.maximum(jnp.stack((printed, union)), 1)
    return jnp.stack((ours, corrected)), (1 + more) * right


@transcribed("Theorem 4.2, Corollary 4.3 and Theorem 6.6, width, step and iterations")
def theorem_4_2_formulas(n, d, lam, delta, epsilon, B, m, *, more=0.0):
    r"""$$m = \lambda^{-2} n^2 d^2 e^{18B} \log^2(nd/\delta),\
    m_{6.6} = \lambda^{-2} n^3 d^3 e^{18B} \log^2(nd/\delta),\
    \eta = \frac{0.1 \lambda}{m n^2 d^2 e^{16B}},\
    \hat T = 20 \lambda^{-2} n^2 d^2 e^{16B} \log(nd/\epsilon)$$

    Compared without logarithms. The 20 follows from the other two: at this $\eta$,
    $m \eta \lambda / 2 = \lambda^2 / (20 n^2 d^2 e^{16B})$.
    """
    ours = (
        gu2024_width_at_radius_log10(n, d, lam, B, delta),
        gu2024_width_at_radius_log10(n, d, lam, B, delta, 3),
        gu2024_step_log10(n, d, lam, B, jnp.log10(m)),
        gu2024_steps_log10(n, d, lam, B, epsilon),
    )
    logs = jnp.log(n * d / delta) ** 2
    right = (
        n**2 * d**2 * jnp.exp(18 * B) * logs / lam**2,
        n**3 * d**3 * jnp.exp(18 * B) * logs / lam**2,
        0.1 * lam / (m * n**2 * d**2 * jnp.exp(16 * B)),
        20 * n**2 * d**2 * jnp.exp(16 * B) * jnp.log(n * d / epsilon) / lam**2,
    )
    return jnp.stack(ours), jnp.log10((1 + more) * jnp.stack(right))


@transcribed("Theorem 4.2, the width with the recalled and with the corrected $B$")
def theorem_4_2_widths(n, d, lam, delta, sigma, *, more=0.0):
    r"""$$\log m = K + 18 B(m),\quad K = \log \frac{n^2 d^2 \log^2(nd/\delta)}{\lambda^2}$$

    With $C = 1$, and as the equation that $m$ solves when $B$ has $m$ in it.
    """
    K = 2 * jnp.log(n * d * jnp.log(n * d / delta) / lam)
    printed, own = (
        jnp.log(10.0) * gu2024_width_log10(n, d, lam, delta, sigma, C=1.0, constants=name)
        for name in ("printed", "corrected")
    )
    B = gu2024_radius(n, d, delta, sigma, C=1.0, constants="printed")
    union = jnp.maximum(sigma * jnp.sqrt(2 * (jnp.log(n / (2 * delta)) + own)), 1)
    return jnp.stack((printed, own)), (1 + more) * (K + 18 * jnp.stack((B, union)))


@inequality(
    "Proof of Theorem 4.2, the number of steps",
    sample=numbers,
    count=32,
    roundings=512,
    controls=[Control("one step fewer", away=-1.0), Control("one step more", away=1.0)],
)
def theorem_4_2_steps(n, d, lam, epsilon, *, away=0.0):
    r"""$$(1 - r)^T nd \le \epsilon < (1 - r)^{T-1} nd,\quad r = \lambda / 2$$

    $T$ is least: both ends are tested.
    """
    T, kept = gu2024_steps(n, d, lam / 2, epsilon) + away, 1 - lam / 2
    ends = n * d * kept**T, n * d * kept ** (T - 1)
    return jnp.stack((ends[0], epsilon)), jnp.stack((epsilon, ends[1]))


@transcribed("Table 1")
def table_1_formulas(n, lam, epsilon, B, *, more=0.0):
    r"""$$\text{ReLU: } m = \lambda^{-2} n^2 \log n,\ T = \lambda^{-2} n^2 \log(n/\epsilon);\quad
    \exp, \text{softmax: } m = \lambda^{-2} n^{2+o(1)} \log^2 n,\
    T = \lambda^{-2} n^{2+o(1)} \log(n^2/\epsilon)$$
    """
    o = B / 4
    rows = [
        gu2024_table_1_log10(activation, n, lam, epsilon, o)
        for activation in (Activation.RELU, Activation.EXPONENTIAL, Activation.SOFTMAX)
    ]
    ours = [row[name] for row in rows for name in ("width", "steps")]
    relu = n**2 / lam**2 * jnp.stack((jnp.log(n), jnp.log(n / epsilon)))
    others = n ** (2 + o) / lam**2 * jnp.stack((jnp.log(n) ** 2, jnp.log(n**2 / epsilon)))
    return jnp.stack(ours), jnp.log10((1 + more) * jnp.concatenate((relu, others, others)))


@transcribed("Definition A.2 and Lemmas C.2, D.1, D.3")
def induction_formulas(n, d, m, lam, B, residual, *, more=0.0):
    r"""$$R = \frac{\lambda}{2 n d e^{10B}},\quad D = \frac{8 e^{3B} \sqrt{nd}}{m \lambda}
    \|F(0) - Y\|_F,\quad \|\Delta w_r\| \le e^{3B} \sqrt{nd} \|F - Y\|_F,\quad
    \|F(0) - Y\|_F \le \sqrt{nd} \;(\text{sharp: } \sqrt n)$$
    """
    ours = (
        gu2024_movement_radius(n, d, lam, B),
        gu2024_movement(n, d, m, lam, B, residual),
        gu2024_gradient(n, d, B, residual),
        gu2024_start(n, d, "printed"),
        gu2024_start(n, d),
    )
    right = (
        lam / (2 * n * d * jnp.exp(10 * B)),
        8 * jnp.exp(3 * B) * jnp.sqrt(n * d) * residual / (m * lam),
        jnp.exp(3 * B) * jnp.sqrt(n * d) * residual,
        jnp.sqrt(n * d),
        jnp.sqrt(n),
    )
    left, right = jnp.stack(ours), jnp.stack(right)
    return Sides(left, (1 + more) * right, magnitude=right)
