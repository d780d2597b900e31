"""What a trajectory gives: names as attributes, members, records, tables."""

import copy

import jax
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.training.trajectory import Trajectory, log_spaced, recording_schedule

W = np.arange(24.0).reshape(2, 3, 4)
ENSEMBLE = Trajectory(
    np.array([0, 1, 5]),
    {"W": W},
    {"W": W[:, -1]},
    loss=np.ones((2, 3)),
    observed={"norm": np.linalg.norm(W, axis=2), "attention": np.ones((2, 3, 5, 6))},
    result=np.full(2, Result.MAX_STEPS.value),
)


def test_names_are_attributes():
    assert ENSEMBLE.W is W
    assert ENSEMBLE.norm is ENSEMBLE.observed["norm"]
    with pytest.raises(AttributeError, match="no 'margin'; observed: attention, norm"):
        _ = ENSEMBLE.margin


def test_it_is_a_pytree_that_can_be_copied():
    doubled = jax.tree.map(lambda a: 2 * a, copy.deepcopy(ENSEMBLE))
    assert np.array_equal(doubled.W, 2 * W)


def test_a_member_and_a_record():
    assert np.array_equal(ENSEMBLE.member(1).at(-1)["W"], W[1, 2])
    some = ENSEMBLE.member(slice(0, 1))
    assert some.W.shape == (1, 3, 4)
    assert some.steps is ENSEMBLE.steps
    bare = Trajectory(np.array([0]), None, None)
    with pytest.raises(UserError, match="were not recorded"):
        bare.at(0)


def test_arrays_and_tables_carry_steps_and_members():
    arrays = ENSEMBLE.to_xarray()
    assert arrays.W.dims == ("member", "step", "W_0")
    assert arrays.attention.sizes == {"member": 2, "step": 3, "attention_0": 5, "attention_1": 6}
    assert float(arrays.norm.sel(member=1, step=5)) == np.linalg.norm(W[1, 2])
    table = ENSEMBLE.to_pandas()
    assert list(table) == ["loss", "norm"]
    assert table.norm[1, 5] == np.linalg.norm(W[1, 2])


def test_steps_of_trainings_that_were_mapped_are_those_of_the_first():
    steps = np.array([[0, 2, 7], [0, 2, 7]])
    path = Trajectory(steps, None, None, loss=np.ones((2, 3)), result=np.zeros(2, int))
    assert path.to_xarray().step.values.tolist() == [0, 2, 7]
    assert path.to_pandas().shape == (6, 1)


def test_schedules():
    assert log_spaced(1) == (0, 1)
    for settings in ((0, 3), (3, 0), (2**63, 3)):
        with pytest.raises(UserError, match="at least 1 and below"):
            log_spaced(*settings)
    assert recording_schedule(None, [0, 3]).tolist() == [0, 3]
    assert recording_schedule(2, None).tolist() == [0, 1, 2]


@pytest.mark.parametrize("steps", [[0.5, 1.0], [0.0, np.nan], [1, 0], [[0, 1]], 3, [], ["a", "b"]])
def test_a_schedule_of_anything_but_increasing_steps_is_refused(steps):
    with pytest.raises(UserError, match="record_at"):
        recording_schedule(10, steps)
    assert recording_schedule(10, np.array([0.0, 5.0])).tolist() == [0, 5]
