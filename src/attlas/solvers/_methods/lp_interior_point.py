r"""Batched primal-dual interior point for min (1/p) sum |w|^p subject to A w >= 1, 1 < p < inf.

The stationarity condition A'l = phi_p(w), phi_p(w) = sign(w) |w|^{p-1}, is linearised on the
side where it is smooth: for p <= 2 the point is w = phi_q(A'l) throughout, for p > 2 the pair
(w, l) is free and the curvature of a coordinate is taken at the larger of |w| and |phi_q(A'l)|,
which keeps it from vanishing before the coordinate does. Each step solves one m x m system
A H A' + S/L twice (Mehrotra's predictor and corrector).
"""

import numpy as np

from attlas.norms.entrywise import dual_exponent
from attlas.solvers._methods.central_path import factorise, longest_step
from attlas.solvers._methods.certificate import power_map
from attlas.solvers.constraints import ConstraintOperator

_BACKOFF = 0.995
# Above a dual exponent of 4 the exponent itself is raised from step to step.
_FIRST_EXPONENT, _EXPONENT_GROWTH = 4.0, 1.25


def on_ray(rows: ConstraintOperator, multipliers: np.ndarray, q: float) -> np.ndarray:
    """The multiple of the multipliers that maximises 1'l - (1/q) ||A'l||_q^q.

    Args:
        multipliers: l, [b, m].
        q: dual exponent, 1 < q < inf.

    Examples:
        >>> from attlas.solvers.constraints import VectorRows
        >>> on_ray(VectorRows(np.eye(2)[None]), np.full((1, 2), 4.0), 2.0).tolist()
        [[1.0, 1.0]]
    """
    power = np.sum(np.abs(rows.adjoint(multipliers)) ** q, axis=-1)
    # Rows that cancel have an infinite level, which is clipped.
    with np.errstate(over="ignore"):
        level = (multipliers.sum(axis=-1) / np.maximum(power, 1e-300)) ** (1 / (q - 1))
    return multipliers * np.clip(level, 1e-6, 1e6)[:, None]


def linearised(w: np.ndarray, pull: np.ndarray, p: float) -> tuple[np.ndarray, np.ndarray]:
    """H and the correction of w, such that w + dw = w + correction + H A'dl.

    Args:
        w: points, [b, D]; phi_q(A'l) where p <= 2.
        pull: A'l, [b, D].
        p: exponent, 1 < p < inf.

    Returns:
        The diagonal of H and the correction, [b, D] each.

    Examples:
        >>> linearised(np.array([[1.0]]), np.array([[3.0]]), 2.0)
        (array([[1.]]), array([[2.]]))
    """
    q = dual_exponent(p)
    if p == 2:
        return np.ones_like(pull), pull - w
    if p < 2:
        return (q - 1) * np.abs(pull) ** (q - 2), np.zeros_like(pull)
    size = np.maximum(np.abs(w), np.abs(pull) ** (q - 1))
    # The floor is the rounding of the Gram matrix against its largest weight.
    floor = 1e-7 * size.max(axis=-1, keepdims=True)
    inverse = np.maximum(size, floor) ** (2 - p) / (p - 1)
    return inverse, inverse * (pull - power_map(w, p - 1))


class LpInteriorPoint:
    """Iterates (w, l, s) of a batch of problems with 1 < p < inf."""

    def __init__(self, rows: ConstraintOperator, p: float, start: np.ndarray | None = None):
        """Start at the best multiple of l = 1 in the dual, or near given multipliers.

        Args:
            rows: constraints, the longest row of each problem of length about one.
            start: multipliers of a rough solution, [b, m].
        """
        self.rows, self.final, self.fresh = rows, p, True
        b, m, _ = rows.shape
        self.l = np.ones((b, m)) if start is None else start
        cold = max(p, _FIRST_EXPONENT / (_FIRST_EXPONENT - 1))
        self._set(cold if start is None else p)
        self.l = on_ray(rows, self.l, self.q)
        self.w = power_map(rows.adjoint(self.l), self.q - 1)
        slack = rows.apply(self.w) - 1
        if start is None:
            self.s = np.maximum(slack, 0.1 + 0.5 * np.abs(slack))
            return
        # Products l s no smaller than the mean complementarity that is left.
        total = self.l.sum(axis=-1, keepdims=True)
        short = np.maximum(-slack, 0).max(axis=-1, keepdims=True)
        mean = total / m * np.maximum(short, 1e-8)
        self.s = np.maximum(slack, np.sqrt(np.maximum(short, 1e-8)) * 0.1)
        self.l = np.maximum(self.l, mean / self.s)

    @property
    def ready(self) -> bool:
        """Whether the path has reached the exponent of the problem."""
        return self.p == self.final

    def _set(self, p: float) -> None:
        self.p, self.q = p, dual_exponent(p)

    def keep(self, index: np.ndarray) -> None:
        """Drop all problems but some."""
        self.rows = self.rows.take(index)
        self.l, self.w, self.s = self.l[index], self.w[index], self.s[index]

    def _raise_exponent(self) -> None:
        q = min(self.q * _EXPONENT_GROWTH, dual_exponent(self.final))
        self._set(self.final if q == dual_exponent(self.final) else q / (q - 1))
        self.l = on_ray(self.rows, self.l, self.q)
        self.w = power_map(self.rows.adjoint(self.l), self.q - 1)

    def step(self) -> None:
        """One predictor-corrector step of every problem."""
        if not self.ready and not self.fresh:
            self._raise_exponent()
        self.fresh = False
        rows, l, s = self.rows, self.l, self.s
        m = l.shape[1]
        inverse, correction = linearised(self.w, rows.adjoint(l), self.p)
        primal = s + 1 - rows.apply(self.w + correction)
        ratio = s / l
        matrix = rows.gram(inverse)
        matrix[:, np.arange(m), np.arange(m)] += ratio
        solve = factorise(matrix)

        def direction(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            dl = solve(target / l + primal)
            return dl, target / l - ratio * dl

        mu = np.einsum("bm,bm->b", l, s) / m
        dl, ds = direction(-l * s)
        length = longest_step((l, dl), (s, ds))[:, None]
        ahead = np.einsum("bm,bm->b", l + length * dl, s + length * ds) / m
        centre = np.clip(ahead / mu, 0, 1) ** 3 * mu
        dl, ds = direction(centre[:, None] - l * s - dl * ds)
        length = np.minimum(1.0, _BACKOFF * longest_step((l, dl), (s, ds)))[:, None]
        self.l, self.s = l + length * dl, s + length * ds
        if self.p <= 2:
            self.w = power_map(rows.adjoint(self.l), self.q - 1)
        else:
            self.w = self.w + length * (correction + inverse * rows.adjoint(dl))
