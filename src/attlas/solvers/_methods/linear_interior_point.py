r"""Batched primal-dual interior point for min ||w||_inf subject to A w >= 1, a linear program.

Variables w and t with slacks a = t - w, c = t + w, s = A w - 1 and multipliers x, y, l; the
dual asks A'l = x - y and sum (x + y) = 1. Eliminating all but l leaves one m x m system, the
Gram matrix A H A' plus S/L plus a matrix of rank one.
"""

import numpy as np

from attlas.solvers._methods.central_path import factorise, longest_step
from attlas.solvers.constraints import ConstraintOperator

_BACKOFF = 0.995


class LinearInteriorPoint:
    """Iterates of a batch of problems with p = inf."""

    ready = True

    def __init__(self, rows: ConstraintOperator):
        """Start at the least-norm direction of l = 1.

        Args:
            rows: constraints, the longest row of each problem of length about one.
        """
        self.rows = rows
        b, m, size = rows.shape
        pull = rows.adjoint(np.ones((b, m)))
        power = np.maximum(np.einsum("bj,bj->b", pull, pull), 1e-300)
        self.w = pull * (m / power)[:, None]
        t = 2 * np.abs(self.w).max(axis=-1, keepdims=True)
        self.a, self.c = t - self.w, t + self.w
        slack = rows.apply(self.w) - 1
        self.s = np.maximum(slack, 0.1 + 0.5 * np.abs(slack))
        self.x = np.full((b, size), 0.5 / size)
        self.y = self.x.copy()
        self.l = np.repeat(t / m, m, axis=1)

    def keep(self, index: np.ndarray) -> None:
        """Drop all problems but some."""
        self.rows = self.rows.take(index)
        for name in ("w", "a", "c", "s", "x", "y", "l"):
            setattr(self, name, getattr(self, name)[index])

    def step(self) -> None:
        """One predictor-corrector step of every problem."""
        rows, l, s, a, c, x, y = self.rows, self.l, self.s, self.a, self.c, self.x, self.y
        m, size = l.shape[1], x.shape[1]
        left, right = x / a, y / c
        inverse, tilt = 1 / (left + right), left - right
        arrow = rows.apply(inverse * tilt)
        # sum(left + right - tilt^2 / (left + right)), without its cancellation
        pivot = (4 * left * right * inverse).sum(axis=-1)[:, None]
        matrix = rows.gram(inverse)
        matrix += arrow[:, :, None] * (arrow / pivot)[:, None, :]
        matrix[:, np.arange(m), np.arange(m)] += s / l
        solve = factorise(matrix)
        primal = 1 + s - rows.apply(self.w)
        dual = rows.adjoint(l) - x + y
        mass = 1 - (x + y).sum(axis=-1)[:, None]

        def direction(for_l, for_x, for_y):
            pull = dual - for_x / a + for_y / c
            load = (inverse * tilt * pull + for_x / a + for_y / c).sum(axis=-1)[:, None] - mass
            right_side = primal + for_l / l - rows.apply(inverse * pull) - arrow * (load / pivot)
            dl = solve(right_side)
            dt = ((arrow * dl).sum(axis=-1)[:, None] + load) / pivot
            dw = inverse * (rows.adjoint(dl) + pull + tilt * dt)
            da, dc, ds = dt - dw, dt + dw, (for_l - s * dl) / l
            return dl, ds, dw, da, dc, (for_x - x * da) / a, (for_y - y * dc) / c

        def product(l, s, x, a, y, c):
            total = (l * s).sum(axis=-1) + (x * a).sum(axis=-1) + (y * c).sum(axis=-1)
            return total[:, None] / (m + 2 * size)

        mu = product(l, s, x, a, y, c)
        dl, ds, dw, da, dc, dx, dy = direction(-l * s, -x * a, -y * c)
        k = longest_step((l, dl), (s, ds), (x, dx), (a, da), (y, dy), (c, dc))[:, None]
        ahead = product(l + k * dl, s + k * ds, x + k * dx, a + k * da, y + k * dy, c + k * dc)
        centre = np.clip(ahead / mu, 0, 1) ** 3 * mu
        dl, ds, dw, da, dc, dx, dy = direction(
            centre - l * s - dl * ds, centre - x * a - dx * da, centre - y * c - dy * dc
        )
        up = np.minimum(1, _BACKOFF * longest_step((s, ds), (a, da), (c, dc)))[:, None]
        down = np.minimum(1, _BACKOFF * longest_step((l, dl), (x, dx), (y, dy)))[:, None]
        self.w, self.s, self.a, self.c = self.w + up * dw, s + up * ds, a + up * da, c + up * dc
        self.l, self.x, self.y = l + down * dl, x + down * dx, y + down * dy
