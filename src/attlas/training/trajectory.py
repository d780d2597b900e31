r"""What training returns: the recorded steps, and the schedules that choose them."""

from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from attlas.core.display.tables import arrays_table
from attlas.core.errors import UserError


class Trajectory(eqx.Module):
    r"""Recorded steps of one training, or of an ensemble along leading axes.

    Attributes:
        steps: numbers of the recorded steps, 0 before the first.
        W: key-query matrices.
        loss: empirical risk.
        gradient_norm: dual norm ||grad_W L||_q.
        attention: attention weights of each sample.
        result: code of `attlas.core.solution.Result`: MAX_STEPS means that all steps were
            made; GRADIENT_BELOW_ROUNDING that normalised steps stopped early and later
            records repeat the last point.
        stopped_at: the step at which it stopped, `steps[-1]` if it did not.
        v: value heads where they were trained, else None.
    """

    steps: Int[Array, " s"]
    W: Float[Array, "*e s d d"]
    loss: Float[Array, "*e s"]
    gradient_norm: Float[Array, "*e s"]
    attention: Float[Array, "*e s n T"]
    result: Int[Array, "*e"]
    stopped_at: Int[Array, "*e"]
    v: Float[Array, "*e s d"] | None = None

    def _repr_html_(self) -> str:
        arrays = {name: array for name, array in vars(self).items() if array is not None}
        return arrays_table(arrays, f"{self.steps.shape[-1]} recorded steps")


def log_spaced(steps: int, count: int = 33) -> tuple[int, ...]:
    """Step 0 and about `count` steps at equal ratios from 1 to the last one.

    Args:
        steps: the last step.
        count: how many, before equal ones are merged.

    Returns:
        Increasing step numbers.

    Examples:
        >>> log_spaced(1000, 4)
        (0, 1, 10, 100, 1000)
    """
    spaced = np.rint(np.geomspace(1, steps, count)).astype(int)
    return (0, *(int(k) for k in np.unique(spaced)))


def recording_schedule(steps: int, record_at: Sequence[int] | None) -> np.ndarray:
    """The steps to record, checked; log-spaced ones when none are named.

    Args:
        steps: the last step.
        record_at: increasing step numbers from 0 on, or None.

    Returns:
        Integer array.

    Raises:
        UserError: if there is no step, or the numbers do not increase or exceed `steps`.

    Examples:
        >>> recording_schedule(10, (0, 5)).tolist()
        [0, 5]
        >>> recording_schedule(10, (0, 20))
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: record_at asks for step 20 of 10: raise steps
    """
    if steps < 1:
        raise UserError(f"steps = {steps} trains nothing: choose at least 1")
    chosen = np.asarray(log_spaced(steps) if record_at is None else record_at, np.int64)
    if chosen.size == 0 or chosen[0] < 0 or np.any(np.diff(chosen) <= 0):
        raise UserError("record_at must be increasing step numbers from 0 on: sort them")
    if chosen[-1] > steps:
        raise UserError(f"record_at asks for step {chosen[-1]} of {steps}: raise steps")
    return chosen
