r"""Lemma E.2 (choice of the step and of the width) and Lemma C.4 (the gradient property).

The formulas of the lemma are lost; what its choices must give is in the text: (11) and (12), the
rate 1 - m eta lambda / 2 from the four parts of a step, and the width from D < R.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.gu2024_convergence import (
    gu2024_movement,
    gu2024_movement_radius,
    gu2024_start,
    gu2024_step_log10,
    gu2024_width_at_radius_log10,
)
from attlas.claims.claim import Control, Source, Status, assume
from attlas.claims.statement import inequality
from gu2024exploring.one_step import ROUNDINGS, points, take, within_unit_ball
from gu2024exploring.trajectories import COUNT, EVALUATIONS, curves


def numbers(rng, count):
    """Sizes of 3 to 1000 samples, the first where the width is least; e^{18 B} can be written.

    At the first, lambda = 1: there the width of the second part is most nearly needed.
    """
    drawn = {
        "lam": 10 ** rng.uniform(-3, 0, count),
        "delta": 10 ** rng.uniform(-3, np.log10(0.3), count),
        "n": np.floor(10 ** rng.uniform(0.5, 3, count)),
        "d": np.floor(rng.uniform(1, 9, count)),
        "m": np.floor(10 ** rng.uniform(1, 6, count)),
        "B": rng.uniform(1, 4, count),
    }
    for name, end in {"lam": 1, "n": 3, "d": 1, "delta": 0.3, "B": 1}.items():
        drawn[name][0] = end
    return drawn


claim_of_step = partial(
    inequality, source=Source.RECALLED, sample=numbers, count=48, roundings=512
)  # exponents of e^{18 B}, B up to 4


@claim_of_step(
    "Lemma E.2, choice of the step: (11) and (12)", controls=[Control(r"$2 \eta$", times=2.0)]
)
def lemma_e_2_step(n, d, m, lam, B, *, times=1.0):
    r"""$$\eta = \frac{0.1\lambda}{m n^2 d^2 e^{16B}} \;\Rightarrow\;
    \eta^2 m n^2 d^2 e^{16B} \le 0.1\, \eta \lambda,\
    \eta^2 m^2 n^2 d^2 e^{16B} \le 0.1\, m \eta \lambda,\quad
    -0.8 + 0.1 + 0.1 + 0.1 \le -0.5$$

    $C_1 \le -1.6\, m \eta u^\top H u \le -.8\, m \eta \lambda \|u\|^2$ (lemma-e-4) pays for $C_0$,
    $C_2$ and $C_3$ and leaves the rate $1 - m \eta \lambda / 2$, exactly: $C_3$ uses up its share.
    """
    eta = times * 10 ** gu2024_step_log10(n, d, lam, B, jnp.log10(m))
    growth = eta * n**2 * d**2 * jnp.exp(16 * B) / lam
    C_2, C_3 = growth, growth * m  # over m eta lambda
    return jnp.stack((m * C_2, C_3, 0.5 + 0.1 + C_2 + C_3)), jnp.asarray((0.1, 0.1, 0.8))


@claim_of_step(
    "Lemma E.2, choice of the width",
    controls=[
        Control("$e^{13B}$ in place of $e^{18B}$", less=5.0),
        Control("$e^{2B}$ in place of $e^{18B}$", less=16.0),
    ],
)
def lemma_e_2_width(n, d, lam, delta, B, *, less=0.0):
    r"""$$n \ge 3,\ \delta \le .3,\ m = \lambda^{-2} n^2 d^2 e^{18B} \log^2(nd/\delta)
    \;\Rightarrow\; D < R,\quad
    10.101\, P \sqrt{nd}\, \|F\|_F \le m \lambda$$

    $D = 8 e^{3B} \sqrt{nd} \|F(0) - Y\| / (m \lambda)$ against $R = \lambda / (2nd e^{10B})$, and
    what lemma-e-3-sharp needs for $|C_0| \le .1 m \eta \lambda \|u\|^2$, with $P \le e^{2B + 2R}$
    and $\|F\| \le 2 \sqrt n$. $16\, e^{13B}$ would be enough.
    """
    m = 10 ** gu2024_width_at_radius_log10(n, d, lam, B, delta) * jnp.exp(-less * B)
    D = gu2024_movement(n, d, m, lam, B, gu2024_start(n, d, "printed"))
    needed = 10.101 * jnp.exp(2 * B + 0.02) * jnp.sqrt(n * d) * 2 * jnp.sqrt(n)
    return jnp.stack((D, needed / (m * lam))), jnp.stack(
        (gu2024_movement_radius(n, d, lam, B), 1.0)
    )


@inequality(
    "Lemma C.4",
    sample=curves,
    evaluations=EVALUATIONS,
    assumptions=[assume("the loss is at most $n d$", lambda square, Y: jnp.max(square) <= Y.size)],
    count=COUNT,
    roundings=ROUNDINGS,
    controls=[Control(r"a step of $4 / (m \lambda_{\max})$", printed=False)],
)
def lemma_c_4(largest_step, Y, m, lam, most, B, eta, *, printed=True):
    r"""$$\eta \|\Delta w_r(i)\| \le 0.01 \;\forall i \le \tau \;\Rightarrow\;
    \eta \|\Delta w_r(\tau + 1)\| \le 0.01,\quad \eta = \frac{0.1\lambda}{m n^2 d^2 e^{16B}}$$

    At all records of trainings of width 256, whose gradients the reconstructed step multiplies.
    What loses is $e^{16B}$, at least 9e6: without it the largest left side would be 0.002 of the
    right one, as $m n^2 d^2 / \lambda$ loses too. lemma-c-4-sharp takes the largest step allowed.
    """
    n, k = Y.shape
    admissible = 0.1 * lam / (m * n**2 * k**2 * jnp.exp(16 * B)) if printed else 4 / (m * most)
    return admissible * jnp.max(largest_step) / eta, 0.01


@inequality(
    "Lemma C.4, sharpened",
    status=Status.SHARPENED,
    sample=points,
    search_over=("W", "X", "Y"),
    project=within_unit_ball,
    count=40,
    roundings=ROUNDINGS,
    controls=[Control("ten times the step", times=10.0)],
)
def lemma_c_4_sharp(W, a, X, Y, part, *, times=1.0):
    r"""$$\eta = \frac{0.01}{c P \sqrt{nd}\, \|F(\tau) - Y\|_F} \;\Rightarrow\;
    \eta \|\Delta w_r(\tau)\| \le 0.01$$

    Hence for all later steps while the loss does not grow. Equal inputs, with residuals along the
    signs of a unit that holds $P$ on all of them, reach it.
    """
    step = take(W, a, X, Y, part=part)
    longest = step.c * step.share * jnp.sqrt(step.size) * jnp.sqrt(jnp.sum(step.u**2))
    return times * 0.01 * step.gradient / longest, 0.01
