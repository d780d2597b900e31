r"""Kernel regression trained by gradient flow or descent, at all times from one decomposition.

With K = Q diag(lambda) Q' the residual of gradient flow is Q exp(-t lambda) Q' (u(0) - Y), that
of t steps of descent Q (1 - eta lambda)^t Q' (u(0) - Y). A million steps cost as much as one.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.core.arrays import ArrayInput, read_arrays, working_dtype
from attlas.core.errors import UserError


class RegressionFlow(NamedTuple):
    r"""Kernel regression u' = -K (u - Y), decomposed.

    Attributes:
        eigenvalues: lambda of K, ascending, rounding below zero cut off.
        vectors: Q, one eigenvector a column.
        start: Q' (Y - u(0)), a column for each output.
        targets: Y.
        cut: the most negative eigenvalue found, 0 if none: it measures how far rounding, or an
            indefinite kernel, is from a positive one.
    """

    eigenvalues: Float[np.ndarray, " n"]
    vectors: Float[np.ndarray, "n n"]
    start: Float[np.ndarray, "n k"]
    targets: Float[np.ndarray, "n k"]
    cut: float

    def train(
        self, times: Float[np.ndarray, " s"], step_size: float | None = None
    ) -> Float[np.ndarray, "s n k"]:
        """Values on the training samples.

        Args:
            times: times of the flow, or numbers of steps when a step size is given.
            step_size: eta of gradient descent, None for the flow.
        """
        left = _remaining(self.eigenvalues, times, step_size)
        away = np.einsum("ij,sj,jk->sik", self.vectors, left, self.start, optimize=True)
        return self.targets[None] - away

    def test(
        self,
        cross: Float[np.ndarray, "n2 n"],
        times: Float[np.ndarray, " s"],
        step_size: float | None = None,
        start: Float[np.ndarray, "n2 k"] | None = None,
    ) -> Float[np.ndarray, "s n2 k"]:
        r"""Values on further samples: u_te(0) + K_te Q diag((1 - left) / lambda) Q' (Y - u(0)).

        Directions of eigenvalue zero contribute their limit, t.

        Args:
            times: times of the flow, or numbers of steps when a step size is given.
            step_size: eta of gradient descent, None for the flow.
            start: values at time zero, zero when None.
        """
        filters = _accumulated(self.eigenvalues, times, step_size)
        moved = np.einsum("ij,sj,jk->sik", cross @ self.vectors, filters, self.start, optimize=True)
        return moved if start is None else moved + start[None]


def regression_flow(
    kernel: ArrayInput,
    targets: ArrayInput,
    start: ArrayInput | None = None,
) -> RegressionFlow:
    r"""Decompose a kernel once for its regression flow at any time.

    Args:
        kernel: symmetric, [n, n]; any number of outputs share it. A kernel that couples its
            outputs, of blocks n x n, takes targets stacked output by output in one column.
        targets: Y, [n, k]; lists, or arrays of NumPy, JAX or torch, as the others.
        start: u(0), [n, k], zero when None.

    Raises:
        UserError: if the kernel is not symmetric, or an array is not finite or does not fit.

    Examples:
        >>> flow = regression_flow(np.eye(1), np.ones((1, 1)))
        >>> print(f"{flow.train(np.array([np.log(2.0)])).item():.3f}")
        0.500
        >>> flow.train(np.array([1.0]), step_size=0.25).item()
        0.25
    """
    axes, arrays = "n n, n k", {"kernel": kernel, "targets": targets}
    if start is not None:
        axes, arrays = f"{axes}, n k", {**arrays, "start": start}
    checked = read_arrays(axes, **arrays)
    # Each in its own type, or the narrowest that LAPACK knows.
    kernel, targets, *begin = (
        a.astype(working_dtype("float32", a.dtype), copy=False) for a in checked
    )
    # Rounding of a Gram product of n terms moves an entry by n eps of the largest at most.
    slack = len(kernel) * np.finfo(kernel.dtype).eps * np.abs(kernel).max(initial=0.0)
    apart = np.abs(kernel - kernel.T).max(initial=0.0)
    if apart > slack:
        raise UserError(f"the kernel is not symmetric: entries differ by {apart:.1e}: check it")
    values, vectors = np.linalg.eigh(kernel)
    residual = targets - begin[0] if begin else targets
    cut = float(min(values.min(initial=0.0), 0.0))
    return RegressionFlow(np.maximum(values, 0), vectors, vectors.T @ residual, targets, cut)


def descent_loss(kernel: ArrayInput, y: ArrayInput, steps: ArrayInput) -> Float[np.ndarray, " s"]:
    r"""Squared loss of kernel regression over its start, by descent at step 1 / lambda_max.

    $\|(I-K/\lambda_{\max})^\tau y\|^2/\|y\|^2$.

    Args:
        kernel: symmetric, not zero, [n, n].
        y: targets of one output, not zero, [n].
        steps: numbers of steps, at least 0, [s].

    Raises:
        UserError: if an array is not finite, does not fit or is zero, or the kernel is negative.

    Examples:
        >>> descent_loss(np.diag([1.0, 0.5]), np.ones(2), np.array([0, 1])).tolist()
        [1.0, 0.125]
    """
    axes, arrays = "n n, n, s", {"kernel": kernel, "y": y, "steps": steps}
    kernel, y, steps = read_arrays(axes, np.float64, **arrays)
    if not (kernel.any() and y.any() and steps.min() >= 0):
        raise UserError("the kernel or y is zero, or a step is below 0: the loss has no start")
    flow = regression_flow(kernel, y[:, None])
    largest = float(flow.eigenvalues[-1])
    if not largest > 0:
        raise UserError("the kernel has no eigenvalue above 0: give one that is positive")
    left = flow.train(steps, 1 / largest) - y[:, None]
    return np.sum(left**2, axis=(1, 2)) / np.sum(y**2)


def _remaining(
    values: np.ndarray, times: np.ndarray, step_size: float | None
) -> Float[np.ndarray, "s n"]:
    """Share of a residual that is left: exp(-t lambda), or (1 - eta lambda)^t."""
    t = np.asarray(times, values.dtype)[:, None]
    if step_size is None:
        return np.exp(-t * values[None])
    return (1 - step_size * values)[None] ** t


def _accumulated(
    values: np.ndarray, times: np.ndarray, step_size: float | None
) -> Float[np.ndarray, "s n"]:
    """(1 - left) / lambda without cancellation, and t (or eta t) where lambda is zero."""
    t = np.asarray(times, values.dtype)[:, None]
    positive = values > 0
    safe = np.where(positive, values, 1)[None]
    if step_size is None:
        return np.where(positive[None], -np.expm1(-t * safe) / safe, t)
    contraction = step_size * safe
    # log1p keeps the digits of a slow direction; a fast one (eta lambda >= 1) alternates.
    slow = contraction < 1
    gone = -np.expm1(t * np.log1p(-np.where(slow, contraction, 0)))
    gone = np.where(slow, gone, 1 - (1 - contraction) ** t)
    return np.where(positive[None], gone / safe, step_size * t)
