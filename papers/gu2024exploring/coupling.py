r"""The coupling of network and kernel regression without lambda, and the total risk from it.

||u(t) - Y|| does not grow, since kernels are positive semidefinite: no power of 1 / lambda, which
is 10^7 on a handful of samples of a diffusion, is needed at finite times tau = m t. Proofs:
papers/gu2024exploring/proofs/kernel_regression.md.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status, assume
from attlas.claims.statement import inequality
from gu2024exploring.claim_g_1 import distance
from gu2024exploring.library.bounds.gu2024_regression import gu2024_coupling
from gu2024exploring.library.kernels.regression_flow import regression_flow
from gu2024exploring.score_runs import COUNT, SLOW, nearest, score_runs

_DOES_NOT_GROW = assume(
    "the loss never exceeds its start",
    lambda residual, Y: residual <= jnp.linalg.norm(Y) * (1 + 1e-12),
)
# Sums over 512 units and 16 outputs, a hundred steps of two operations each, a softmax.
on_score_runs = partial(
    inequality,
    status=Status.SHARPENED,
    sample=score_runs,
    assumptions=[_DOES_NOT_GROW],
    alike=True,
    count=COUNT,
    not_attacked=SLOW,
    roundings=1024,
)


def _coupling(Y, tau, row, kernel_change, test_change):
    return gu2024_coupling(tau, jnp.linalg.norm(Y), row, kernel_change, test_change)


@on_score_runs(
    r"Theorem F.2 without $\lambda$, gradient descent",
    controls=[
        Control("a hundredth of the time", share=0.01),
        Control("a fortieth of the time", share=1 / 40),
    ],
)
def coupling_without_lambda(F, kernel, Y, tau, row, kernel_change, test_change, m, *, share=1.0):
    r"""$$|F_{W(T)} - f_{K(T)}|(x_{te}) \le \|Y\| \Big( \tau \epsilon_{test} +
    \frac{\tau^2}{2} \|K_{te}(0)\| \epsilon_H \Big),\quad \tau = m \eta T$$

    Widths 128 to 512, 5 to 16 samples, two or four outputs, 100 steps, each of a size of $1 / (2 m
    \lambda_{\max})$; at 96 test points, for the output that is nearest to its bound. The changes
    are the largest along the descent of the kernels averaged over a step, for which the statement
    has no remainder. Kernels attain the bound (theorem-f-2-without-lambda).
    """
    bound = _coupling(Y, share * tau, row, kernel_change, test_change)
    return Sides(*nearest(jnp.abs(F - kernel), bound), magnitude=m)


_TIMES = np.array([1e-3, 1e-2, 0.1, 1.0, 10.0])
_STEPS = np.array([1.0, 2.0, 9.0])


def singular_pairs(rng, count):
    """Kernels of three samples and rank 1 to 3, and moved ones: flow at _TIMES, descent at _STEPS.

    In every second pair targets and changes lie along the null direction of H*, against the row:
    there the bound is attained as the time tends to 0.
    """
    Q = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    values = rng.uniform(0.1, 10, (count, 3)) * (np.arange(3) > rng.integers(0, 3, (count, 1)))
    H = (Q * values[:, None, :]) @ Q.swapaxes(1, 2)
    unit, y, row, change = rng.normal(size=(4, count, 3))
    for part in (unit, y, row):
        part[::2] = Q[::2, :, 0]
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    eps, size = 10 ** rng.uniform(-2, 0, (2, count, 1))
    change = size * np.where(np.arange(count)[:, None] % 2, change, -row)
    moved = H + eps[:, :, None] * unit[:, :, None] * unit[:, None, :]
    gaps, eta = [], 1 / (values.max(axis=1) + eps[:, 0])
    for K, K_moved, k, e, target, step in zip(H, moved, row, change, y, eta, strict=True):
        flows = [regression_flow((G + G.T) / 2, target[:, None]) for G in (K_moved, K)]
        rows, apart = (k + e, k), []
        for by in ((_TIMES, None), (_STEPS, step)):
            ends = [flow.test(g[None], *by) for flow, g in zip(flows, rows, strict=True)]
            apart.append(np.abs(ends[0] - ends[1])[:, 0, 0])
        gaps.append(np.concatenate(apart))
    time = np.concatenate((_TIMES + np.zeros((count, 1)), eta[:, None] * _STEPS), axis=1)
    lengths = {"start": y, "row": row, "test_change": change}
    named = {name: np.linalg.norm(part, axis=1) for name, part in lengths.items()}
    further = {"kernel_change": eps[:, 0], "most": values.max(axis=1)}
    return named | further | {"gap": np.stack(gaps), "time": time}


@inequality(
    r"Theorem F.2 without $\lambda$, for any two kernels",
    status=Status.SHARPENED,
    sample=singular_pairs,
    count=48,
    roundings=256,
    controls=[
        Control("a third of the square of the time", square=2 / 3),
        Control(r"0.9 of $\epsilon_{test}$", test=0.9),
    ],
    evaluations=192,
)
def theorem_f_2_without_lambda(
    gap, time, start, row, most, kernel_change, test_change, *, square=1.0, test=1.0
):
    r"""$$|\gamma_{nn} - \gamma_{ntk}|(t) \le \|Y\| \Big( \tau \epsilon_{test} +
    \frac{\tau^2}{2} \|K_{te}(0)\| \epsilon_H \Big),\quad H^*, H \succeq 0,\ \tau = m t$$

    Gradient flow, and descent at $\tau = m \eta T$ where $m \eta$ times the largest eigenvalue of
    either kernel is at most 1; three samples, $H^*$ of rank 1 to 3. Attained
    along a null direction of $H^*$ as $\tau \to 0$, both terms together: $\lambda = 0$ costs
    nothing at finite times.
    """
    bound = gu2024_coupling(time, start, row, square * kernel_change, test * test_change)
    return Sides(gap, bound, magnitude=start * (row + test_change) * time * (1 + most))


@on_score_runs(
    "Claim G.1 and Theorem 6.6, the total risk",
    controls=[Control("without the coupling", coupled=0.0)],
)
def total_risk(mass, F, kernel, truth, Y, tau, row, kernel_change, test_change, *, coupled=1.0):
    r"""$$\|F_{W(T)} - f_*\|^2 \le \big( \|f_{K(T)} - f_*\| + \beta \big)^2,\quad
    \beta^2 = E \|Y\|^2 \Big( \tau \epsilon_{test} + \frac{\tau^2}{2} \|K_{te}(0)\| \epsilon_H
    \Big)^2$$

    A bound on the risk of the network at a width that one can train, which some runs obey below the
    error of the zero function. What remains is the risk of kernel regression, which the other terms
    of Claim G.1 bound (claim-g-1-norms).
    """
    bound = _coupling(Y, tau, row, kernel_change, test_change)
    beta = jnp.sqrt(mass @ jnp.sum(bound**2, axis=1))
    return distance(mass, F, truth), (jnp.sqrt(distance(mass, kernel, truth)) + coupled * beta) ** 2
