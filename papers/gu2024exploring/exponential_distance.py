"""How far two flows of fixed kernels part: the distance of exponentials, and what it is worth.

Proof: papers/gu2024exploring/proofs/kernel_regression.md.
"""

import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import inequality
from gu2024exploring.library.bounds.gu2024_regression import gu2024_coupling
from gu2024exploring.library.kernels.regression_flow import regression_flow

_ANGLES = np.pi / 8 * np.array([0, -3, 3])
_STEEP = 40.0


def factors(rng, count):
    """Factors of three psd matrices of one to four dimensions; equality, and kernels in turn.

    Of four instances one has B = A + s in the null space of A, and one the matrices whose
    exponentials are nearly projections on three lines of a plane.
    """
    L, K, M = rng.normal(size=(3, count, 4, 4)) * 10 ** rng.uniform(-0.7, 0.5, (3, count, 1, 1))
    inside = np.arange(4) < rng.integers(1, 5, (count, 1))
    L, K, M = (kernel * inside[:, :, None] for kernel in (L, K, M))
    L[::4] = np.diag([0.0, 1.0, 0.5, 0.0]) * L[::4]
    K[::4] = np.diag([1.0, 0, 0, 0]) * rng.uniform(0.1, 2, (len(K[::4]), 1, 1)) + L[::4]
    for kernel, angle, steep in zip((L, K, M), _ANGLES, (1, 2, 2), strict=True):
        kernel[1::4] = 0.0
        kernel[1::4, 0, :2] = np.sqrt(steep * _STEEP) * np.array([-np.sin(angle), np.cos(angle)])
    return {"L": L, "K": K, "M": M}


def _norm(matrix):
    return jnp.linalg.norm(matrix, 2)


@inequality(
    "The distance of exponentials",
    sample=factors,
    search_over=("L", "K"),
    status=Status.NEW,
    count=96,
    roundings=1024,
    controls=[
        Control("nine tenths of the distance", factor=0.9),
        Control(r"two kernels in turn, $e^{-C/2}e^{-B/2}$", turns=True),
    ],
)
def exponential_distance(L, K, M, *, factor=1.0, turns=False):
    r"""$$\|e^{-A}-e^{-B}\|\le1-e^{-\|A-B\|},\quad A,B\succeq0$$

    Although $1-e^{-t}$ is not operator monotone. Attained where $A$ has a null vector along which
    $B$ is $\|A-B\|$. Only $A\succeq0$ is needed for the upper side. For kernels that change on the
    way it is false: three lines at angles of 67.5 degrees give a distance of
    $\frac12(1+\sqrt2)$.
    """
    A, B, C = L.T @ L, K.T @ K, M.T @ M
    distance, end = _norm(A - B), jax.scipy.linalg.expm(-B)
    if turns:
        distance = jnp.maximum(distance, _norm(A - C))
        end = jax.scipy.linalg.expm(-C / 2) @ jax.scipy.linalg.expm(-B / 2)
    apart = _norm(jax.scipy.linalg.expm(-A) - end)
    size = 1 + jnp.sum(L**2) + jnp.sum(K**2) + jnp.sum(M**2)
    return Sides(apart, -jnp.expm1(-factor * distance), magnitude=size)


_TIMES = np.array([1e-2, 0.1, 1.0, 10.0, 100.0])


def fixed_kernels(rng, count):
    """Kernels of one to four samples of any rank, moved ones, and their test rows.

    In every third pair the first sample is alone, its kernel is 0 and is moved.
    """
    gap, lengths = np.empty((count, len(_TIMES))), np.empty((count, 5))
    for e in range(count):
        n = int(rng.integers(1, 5))
        G, G_moved = (rng.normal(size=(n, int(rng.integers(1, n + 1)))) for _ in range(2))
        kernel, moved = (F @ F.T * 10 ** rng.uniform(-2, 0) for F in (G, G_moved))
        y, row, change = rng.normal(size=(3, n)) * np.array([1.0, 1.0, 0.1])[:, None]
        if e % 3 == 0:
            y[1:], row[1:], change[:] = 0.0, 0.0, -0.01 * row * rng.integers(0, 2)
            kernel[0], kernel[:, 0], moved[0, 1:], moved[1:, 0] = 0.0, 0.0, 0.0, 0.0
            moved[1:, 1:] = kernel[1:, 1:]
        flows = [regression_flow(K, y[:, None]) for K in (moved, kernel)]
        ends = [
            flow.test(test_row[None], _TIMES)[:, 0, 0]
            for flow, test_row in zip(flows, (row + change, row), strict=True)
        ]
        gap[e] = np.abs(ends[0] - ends[1])
        apart = np.linalg.norm(moved - kernel, 2)
        lengths[e] = (*map(np.linalg.norm, (y, row, change)), apart, np.linalg.norm(kernel, 2))
    names = ("start", "row", "test_change", "kernel_change", "most")
    return {"gap": gap} | dict(zip(names, lengths.T, strict=True))


@inequality(
    r"Theorem F.2 without $\lambda$, kernels that stay fixed",
    status=Status.NEW,
    sample=fixed_kernels,
    count=60,
    alike=True,
    roundings=1024,
    evaluations=192,
    controls=[
        Control("nine tenths of the change", kernel=0.9),
        Control("without the change of the row", test=0.0),
    ],
)
def coupling_of_fixed_kernels(
    gap, start, row, test_change, kernel_change, most, *, kernel=1.0, test=1.0
):
    r"""$$|\gamma_{nn}-\gamma_{ntk}|(t)\le\|Y\|\Big(\tau\,\epsilon_{test}+\|K_{te}(0)\|\Big(\tau-
    \frac{1-e^{-\epsilon_H\tau}}{\epsilon_H}\Big)\Big),\quad\tau=mt$$

    Gradient flow with $H^*$ and another fixed kernel $H$, which need not commute; $\tau$ from
    0.01 to 100. Attained at all times by one sample with $H^*=0$; for large $\tau$ the square of
    theorem-f-2-without-lambda has become $\tau$.
    """
    bound = gu2024_coupling(
        jnp.asarray(_TIMES), start, row, kernel * kernel_change, test * test_change, fixed=True
    )
    return Sides(gap, bound, magnitude=start * (row + test_change) * _TIMES * (1 + most * _TIMES))
