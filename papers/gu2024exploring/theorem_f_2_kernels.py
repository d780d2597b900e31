r"""Theorem F.2 for pairs of kernels, where the sharpened bound is attained.

u' = -m H (u - Y), gamma' = -m K_te (u - Y) with constant H = H* + E and K_te = K_te(0) + e, against
the same with H* and K_te(0): all that the proof uses of a network. eps_H = ||E||, eps_test = ||e||.
"""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status, assume
from attlas.claims.statement import inequality
from gu2024exploring.library.bounds.gu2024_regression import (
    gu2024_regression_gap,
    gu2024_regression_gap_in_time,
)
from gu2024exploring.library.kernels.regression_flow import regression_flow

_N = 3
_TIMES = np.array([0.1, 1.0, 10.0, 40.0])
"""Of m lambda t."""
_ROUNDINGS = 128
"""A backward stable eigendecomposition of 3 rows, an exponential, two products, a difference."""


def _units(rng, count):
    gauss = rng.normal(size=(count, _N))
    return gauss / np.linalg.norm(gauss, axis=1, keepdims=True)


def _gap(H, H_moved, row, row_moved, y, lam):
    """|gamma_nn - gamma_ntk| at the times, from two eigendecompositions."""
    start, end = (
        regression_flow(kernel, y[:, None]).test(test[None], _TIMES / lam)[:, 0, 0]
        for kernel, test in ((H, row), (H_moved, row_moved))
    )
    return np.abs(end - start)


def kernel_pairs(rng, count):
    """Random pairs; every second one acts along the slowest direction alone, half at lambda/2."""
    Q = np.linalg.qr(rng.normal(size=(count, _N, _N)))[0]
    lam = 10 ** rng.uniform(-1, 1, count)
    values = lam[:, None] * np.concatenate((np.ones((count, 1)), rng.uniform(1, 10, (count, 2))), 1)
    v, w, y, row, change = (_units(rng, count) for _ in range(5))
    for part in (v, w, y, row, change):
        part[::2] = Q[::2, :, 0]
    share = rng.uniform(0.01, 0.5, count)
    share[::4] = 0.5
    E = v[:, :, None] * w[:, None, :] + w[:, :, None] * v[:, None, :]
    E *= -(share * lam / np.linalg.norm(E, 2, axis=(1, 2)))[:, None, None]
    H = (Q * values[:, None, :]) @ Q.swapaxes(1, 2)
    H = (H + H.swapaxes(1, 2)) / 2
    sizes = 10 ** rng.uniform(-1, 1, (3, count, 1))
    row, change, y = sizes[0] * row, sizes[1] * change, sizes[2] * y
    pairs = zip(H, H + E, row, row + change, y, lam, strict=True)
    named = {"y": y, "row": row, "lam": lam, "most": values.max(axis=1)}
    further = {"eps": share * lam, "eps_test": np.linalg.norm(change, axis=1)}
    return named | further | {"gap": np.stack([_gap(*part) for part in pairs])}


@inequality(
    "Theorem F.2, sharpened, for any two kernels",
    status=Status.SHARPENED,
    sample=kernel_pairs,
    assumptions=[
        assume(r"$\epsilon_H \le \lambda / 2$", lambda eps, lam: eps <= lam / 2 * (1 + 1e-12))
    ],
    count=48,
    roundings=_ROUNDINGS,
    controls=[Control(r"1 in place of $\|K_{te}(0)\|$", known_row=False)],
    evaluations=288,
)
def theorem_f_2_kernels(gap, y, row, lam, most, eps, eps_test, *, known_row=True):
    r"""$$|\gamma_{nn}-\gamma_{ntk}|(t) \le \frac{\|Y\|}{\lambda-\epsilon_H} \Big(
    \epsilon_{test} + \frac{\|K_{te}(0)\|}{\lambda}\epsilon_H\Big),\quad \le \|Y\| \Big(
    \frac{2}{\lambda}(1-q)\epsilon_{test} + \frac{2\|K_{te}(0)\|}{\lambda^2}
    (1-q)^2 \epsilon_H\Big),\quad q = e^{-m\lambda t/2}$$

    Three samples, constant kernels. Both bounds are attained where everything points along the
    slowest direction: the first as $t$ grows, the second at all times with
    $\epsilon_H = \lambda / 2$. Networks (theorem-f-2-sharp) reach a fiftieth, because they do not.
    """
    start, length = jnp.linalg.norm(y), jnp.linalg.norm(row)
    taken = length if known_row else jnp.ones(())
    always = gu2024_regression_gap(start, taken, lam, eps, eps_test, contraction=lam - eps)
    times = jnp.asarray(_TIMES) / lam
    in_time = gu2024_regression_gap_in_time(times, start, taken, lam, eps, eps_test)
    magnitude = start * (length + eps_test) * most / lam**2
    # The first bound knows no time: it is about the largest gap.
    left = jnp.append(jnp.max(gap), gap)
    return Sides(left, jnp.append(always, in_time), magnitude=magnitude)
