r"""The results of a training: recorded steps, and the schedules that select them."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np

from attlas._jax.device_arrays import entry
from attlas.core.arrays import read_array
from attlas.core.errors import UserError, extra_needed
from attlas.display.tables import arrays_table


class Trajectory(eqx.Module):
    r"""Recorded steps of one training, or of an ensemble along leading axes.

    Observed quantities, and parameters in a mapping, are also attributes: `path.attention` is
    `path.observed["attention"]`, `path.W` is `path.params["W"]`.

    Attributes:
        steps: numbers of the s recorded steps, 0 before the first.
        params: the parameters, with a leading axis of records; None if not recorded.
        last: the parameters at the last record.
        loss: [*e, s], the objective at the record; with batches the mean over those since the
            previous record, each before its step, and NaN at step 0. None if not computed.
        gradient_norm: [*e, s], norm of the gradient there, Euclidean unless the trainer says
            otherwise; None with batches.
        observed: named quantities at the records.
        result: [*e], code of `attlas.core.solution.Result`: MAX_STEPS if all steps were made,
            NOT_FINITE if a record is not finite; a trainer with early stopping has others.
        stopped_at: [*e], the step at which such a trainer stopped, or `steps[-1]`.
        selected: the parameters at the record that a trainer selects on validation data.
        selected_at: [*e], number of that record.

    Examples:
        >>> path = Trajectory(np.arange(2), {"w": np.eye(2)}, {"w": np.eye(2)[1]},
        ...                   loss=np.ones(2), observed={"norm": np.array([1.0, 2.0])})
        >>> path.norm.tolist(), path.at(-1)["w"].tolist()
        ([1.0, 2.0], [0.0, 1.0])
    """

    steps: Any
    params: Any
    last: Any
    loss: Any = None
    gradient_norm: Any = None
    observed: dict[str, Any] = eqx.field(default_factory=dict)
    result: Any = None
    stopped_at: Any = None
    selected: Any = None
    selected_at: Any = None

    def __getattr__(self, name: str) -> Any:
        """An observed quantity, or an entry of the parameters if they are a mapping."""
        for field in ("observed", "params"):
            values = vars(self).get(field)
            if isinstance(values, Mapping) and name in values:
                return values[name]
        names = ", ".join(sorted(vars(self).get("observed") or {})) or "nothing"
        raise AttributeError(f"the trajectory has no '{name}'; observed: {names}")

    def _repr_html_(self) -> str:
        named = jax.tree_util.tree_leaves_with_path(vars(self))
        arrays = {
            jax.tree_util.keystr(path, simple=True, separator="."): leaf
            for path, leaf in named
            if eqx.is_array_like(leaf)
        }
        return arrays_table(arrays, f"A trajectory of {len(self.steps)} records")

    def at(self, record: int) -> Any:
        """The parameters at one record (-1 for the last) of a single training.

        Raises:
            UserError: if the parameters were not recorded.
        """
        if self.params is None:
            raise UserError("the parameters were not recorded: train with keep=True")
        return jax.tree.map(
            lambda a: entry(a, record) if eqx.is_inexact_array(a) else a, self.params
        )

    def member(self, which: int | slice) -> "Trajectory":
        """One training of an ensemble, or a slice of them.

        Examples:
            >>> path = Trajectory(np.arange(2), None, None, loss=np.array([[1.0, 0.5], [2.0, 1.0]]))
            >>> path.member(1).loss.tolist()
            [2.0, 1.0]
        """

        def member_of(a: Any) -> Any:
            return entry(a, which) if eqx.is_inexact_array(a) else a

        def part(tree: Any) -> Any:
            return jax.tree.map(lambda a: entry(a, which), tree)

        params, last, selected = jax.tree.map(member_of, (self.params, self.last, self.selected))
        return Trajectory(
            steps=self.steps,
            params=params,
            last=last,
            loss=part(self.loss),
            gradient_norm=part(self.gradient_norm),
            observed=part(self.observed),
            result=part(self.result),
            stopped_at=part(self.stopped_at),
            selected=selected,
            selected_at=part(self.selected_at),
        )

    def to_xarray(self) -> Any:
        """All recorded arrays as an `xarray.Dataset`.

        Returns:
            Data set with the dimension `step`, `member` for ensembles, and one dimension for each
            further axis; arrays of the parameters are named by their path in the tree.

        Examples:
            >>> path = Trajectory(np.arange(2), {"w": np.eye(2)}, {"w": np.eye(2)[1]})
            >>> dict(path.to_xarray().sizes)
            {'step': 2, 'w_0': 2}
        """
        with extra_needed("Trajectory.to_xarray", "experiments"):
            import xarray as xr  # takes a second to import

        steps = np.asarray(self.steps)
        steps = steps.reshape(-1, steps.shape[-1])[0]
        outer = ("member",) if self.result is not None and np.ndim(self.result) else ()
        arrays = {"loss": self.loss, "gradient_norm": self.gradient_norm, **self.observed}
        leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(self.params, eqx.is_inexact_array))
        arrays |= {jax.tree_util.keystr(path, simple=True, separator="."): a for path, a in leaves}
        variables = {}
        for name, array in arrays.items():
            if array is None:
                continue
            axes = [f"{name}_{i}" for i in range(np.ndim(array) - len(outer) - 1)]
            variables[name] = ((*outer, "step", *axes), np.asarray(array))
        return xr.Dataset(variables, {"step": steps})

    def to_pandas(self) -> Any:
        """All recorded scalars as a `pandas.DataFrame`, indexed by `member` (if any) and `step`.

        Examples:
            >>> path = Trajectory(np.arange(2), None, None, loss=np.array([1.0, 0.5]))
            >>> path.to_pandas().loss.to_dict()
            {0: 1.0, 1: 0.5}
        """
        table = self.to_xarray()
        scalars = [name for name, a in table.items() if set(a.dims) <= {"member", "step"}]
        return table[scalars].to_dataframe()


def log_spaced(steps: int, count: int = 33) -> tuple[int, ...]:
    """Step 0 and about `count` steps at equal ratios from 1 to `steps`.

    Raises:
        UserError: if one of them is below 1 or needs more than 64 bits.

    Examples:
        >>> log_spaced(1000, 4)
        (0, 1, 10, 100, 1000)
    """
    if min(steps, count) < 1 or max(steps, count) >= 2**63:
        raise UserError("steps and count must be at least 1 and below 2^63: change them")
    spaced = np.rint(np.geomspace(1, steps, count)).astype(int)
    return (0, *(int(k) for k in np.unique(spaced)))


def recording_schedule(steps: int | None, record_at: Any) -> np.ndarray:
    """The checked vector of steps to record; log-spaced ones if there are none.

    Args:
        steps: the last step; the last of `record_at` when None.
        record_at: increasing step numbers from 0 on, or None.

    Raises:
        UserError: if there is no step, or the numbers are not whole, do not increase or exceed
            `steps`.

    Examples:
        >>> recording_schedule(10, (0, 5)).tolist()
        [0, 5]
        >>> recording_schedule(10, (0, 20))
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: record_at asks for step 20 of 10: raise steps
    """
    if steps is None and record_at is None:
        raise UserError("neither steps nor record_at is given: give the number of steps")
    if steps is not None and steps < 1:
        raise UserError(f"steps = {steps} must be at least 1: raise it")
    schedule = _whole(log_spaced(steps or 1) if record_at is None else record_at)
    if (
        schedule.ndim != 1
        or schedule.size == 0
        or schedule[0] < 0
        or np.any(np.diff(schedule) <= 0)
    ):
        raise UserError("record_at must be increasing step numbers from 0 on: sort them")
    if steps is not None and schedule[-1] > steps:
        raise UserError(f"record_at asks for step {schedule[-1]} of {steps}: raise steps")
    return schedule


def _whole(numbers: Any) -> np.ndarray:
    """Numbers of steps as they are, or as whole numbers where they are given as floats."""
    array = read_array(numbers, "record_at")
    floats = array.astype(np.float64)
    if not np.all(np.isfinite(floats) & (np.rint(floats) == floats) & (abs(floats) < 2.0**63)):
        raise UserError("record_at holds numbers that are no steps: give whole ones")
    return array.astype(np.int64)
