import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.checkpoint import checkpointed
from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.training import epochs
from attlas.training.epochs import epoch_orders, fit_epochs


def test_members_and_epochs_differ_and_repeat_with_their_key():
    keys = jax.random.split(jax.random.key(3), 2)
    one, other = (epoch_orders(keys, 20, 4) for _ in range(2))
    first, second = next(one), next(one)
    assert np.array_equal(first, next(other))
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first, second)
    assert all(np.array_equal(np.sort(order.ravel()), np.arange(20)) for order in second)
    # A member trains as it would alone.
    assert np.array_equal(next(epoch_orders(keys[1:], 20, 4))[0], first[1])


def test_no_epoch_and_a_width_that_does_not_divide_are_refused():
    given = {"evaluate": lambda w, _: {"validation": w}, "batch": 1}
    for batches, width, message in (([], 2, "no epoch"), ([np.ones((2, 1))], 3, "width = 3")):
        with pytest.raises(UserError, match=message):
            fit_epochs(lambda w, _, x: (w * x, jnp.sum(x)), optax.sgd(1.0), jnp.zeros(2), None,
                       batches, width=width, **given)  # fmt: skip


@pytest.mark.parametrize("models", [jnp.zeros(2, int), jnp.array(1.0)])
def test_models_without_floating_arrays_of_members_are_refused(models):
    with pytest.raises(UserError, match="models needs floating arrays"):
        fit_epochs(lambda w, _, x: (w * x, jnp.sum(x)), optax.sgd(1.0), models, None,
                   [np.ones((2, 3))], batch=1, width=2, evaluate=lambda w, _: {})  # fmt: skip


def test_a_training_without_a_validation_that_is_a_number_selects_its_first_epoch():
    path = fit_epochs(lambda w, _, x: (w * x, jnp.sum(x > 0)), optax.sgd(1.0), jnp.zeros(2), None,
                      [np.full((2, 3), np.nan)] * 2, batch=1, width=2,
                      evaluate=lambda w, _: {"validation": w})  # fmt: skip
    assert path.selected_at.tolist() == [0, 0]
    assert path.result.tolist() == [Result.NOT_FINITE.value] * 2


class Kept(dict):
    """States by stage, as a keeper of checkpoints that stops the process at a write."""

    def __init__(self, last: int):
        super().__init__()
        self.writes, self.last = 0, last

    def read(self, stage):
        return self.get(stage)

    def write(self, stage, arrays):
        self[stage] = {name: np.array(array) for name, array in arrays.items()}
        self.writes += 1
        if self.writes == self.last:
            raise KeyboardInterrupt


MEMBERS, EPOCHS = 4, 3


def trained(stop: float | None = None):
    """Four members, one to a part; members 0 and 2 stop in the first epoch where they may."""
    batches = [np.arange(8.0).reshape(MEMBERS, 2) - k for k in range(EPOCHS)]
    return fit_epochs(
        lambda w, _, x: (jnp.sum(jnp.cos(w + x)), jnp.sum((x == 0) | (x == 4))), optax.adam(0.1),
        jnp.arange(1.0, MEMBERS + 1), None, batches, batch=1, width=1, stop_accuracy=stop,
        evaluate=lambda w, _: {"validation": jnp.sin(w)},
    )  # fmt: skip


@pytest.mark.parametrize("stop", [None, 0.5])
@pytest.mark.parametrize("last", [1, 3, 5, 9])
def test_a_training_stopped_within_an_epoch_makes_no_step_twice(last, stop):
    with jax.numpy_dtype_promotion("standard"):
        expected, kept = trained(stop), Kept(last)
        with pytest.raises(KeyboardInterrupt), checkpointed(kept, 0.0):
            trained(stop)
        with checkpointed(kept, 0.0) as second:
            found = trained(stop)
    # An epoch is kept after each of its two steps and after it is evaluated, and the end once.
    assert kept.writes == 3 * EPOCHS + 1
    made = 2 * (last // 3) + min(last % 3, 2)
    assert (second.resumed, second.made) == (made, 2 * EPOCHS - made)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


def adam_by_hand(w, batches, rate=0.1):
    """Weights after each epoch and its mean loss cos(w + x), one step per number x."""
    first = second = count = 0.0
    ends, losses = [], []
    for batch in batches:
        loss = 0.0
        for x in batch:
            gradient, count = -np.sin(w + x), count + 1
            loss += np.cos(w + x) / len(batch)
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            size = np.sqrt(second / (1 - 0.999**count)) + 1e-8
            w = w - rate * first / (1 - 0.9**count) / size
        ends.append(w)
        losses.append(loss)
    return np.array(ends), np.array(losses)


def test_the_trajectory_is_that_of_adam_by_hand():
    with jax.numpy_dtype_promotion("standard"):
        found = trained()
    assert found.steps.tolist() == [2, 4, 6]
    assert found.stopped_at.tolist() == [6] * MEMBERS
    for member in range(MEMBERS):
        batches = [2 * member + np.arange(2.0) - epoch for epoch in range(EPOCHS)]
        ends, losses = adam_by_hand(member + 1.0, batches)
        right = [np.mean([x in (0, 4) for x in batch]) for batch in batches]
        np.testing.assert_allclose(found.loss[member], losses, rtol=1e-12)
        np.testing.assert_allclose(found.last[member], ends[-1], rtol=1e-12)
        np.testing.assert_allclose(found.observed["train"][member], right, rtol=1e-12)
        np.testing.assert_allclose(found.observed["validation"][member], np.sin(ends), rtol=1e-12)
        assert found.selected_at[member] == np.argmax(np.sin(ends))
        best = ends[np.argmax(np.sin(ends))]
        np.testing.assert_allclose(found.selected[member], best, rtol=1e-12)


def test_the_first_of_equal_epochs_is_selected_and_an_accuracy_stops_where_it_is_reached():
    # Entries count as right where they are positive: 3, 1, 3 of 4 for one member, 2, 2, 2.
    rows = np.array([[[1, 1], [1, -1]], [[1, -1], [-1, 1]]], float)
    batches = [rows, np.array([[[1, -1], [-1, -1]], rows[1]]), rows]

    def run(stop):
        return fit_epochs(
            lambda w, _, x: (jnp.sum(w * x), jnp.sum(x > 0)), optax.sgd(1.0), jnp.zeros((2, 2)),
            None, batches, batch=2, width=2, stop_accuracy=stop,
            evaluate=lambda w, _: {"validation": jnp.float64(0.5)},
        )  # fmt: skip

    found = run(None)
    assert found.observed["train"].tolist() == [[0.75, 0.25, 0.75], [0.5] * 3]
    assert found.selected_at.tolist() == [0, 0]
    assert found.selected.tolist() == [[-2.0, 0.0], [0.0, 0.0]]
    assert found.last.tolist() == [[-4.0, 2.0], [0.0, 0.0]]
    found = run(0.75)
    assert found.stopped_at.tolist() == [2, 6]
    assert found.result.tolist() == [Result.CONVERGED.value, Result.MAX_STEPS.value]
    assert found.last.tolist() == [[-2.0, 0.0], [0.0, 0.0]]


def test_members_on_many_devices_run_alone():
    assert [epochs._shared_width(4, 4, devices) for devices in (1, 2, 8)] == [4, 2, 1]


def test_one_entry_that_is_no_number_is_a_divergence():
    found = fit_epochs(
        lambda w, _, x: (jnp.sum(w * x), jnp.sum(x > 0)), optax.sgd(1.0), jnp.zeros((3, 2)), None,
        [np.array([[[1.0, np.nan]], [[1.0, 2.0]], [[1.0, np.inf]]])], batch=1, width=3,
        evaluate=lambda w, _: {"validation": jnp.float64(0.5)},
    )  # fmt: skip
    bad = Result.NOT_FINITE.value
    assert found.result.tolist() == [bad, Result.MAX_STEPS.value, bad]


def test_groups_share_the_devices_where_no_power_of_two_divides_the_members():
    assert [epochs._shared_width(9, 9, devices) for devices in (1, 2, 4)] == [9, 3, 1]


@pytest.mark.parametrize("count", [3, 4])
def test_a_middle_group_has_its_own_batches_and_start(count):
    """Members w, batches x: one step of w x takes w to w - x."""
    w, x = np.arange(1.0, count + 1), 10.0 ** np.arange(count)
    found = fit_epochs(
        lambda w, _, x: (w * x, jnp.sum(x > 0)), optax.sgd(1.0), jnp.asarray(w), None,
        [x[:, None]], batch=1, width=1, evaluate=lambda w, _: {"validation": w},
    )  # fmt: skip
    assert found.last.tolist() == (w - x).tolist()
    assert found.loss[:, 0].tolist() == (w * x).tolist()


@pytest.mark.parametrize("width", [1, 2])
def test_an_axis_of_members_is_left_out_for_one_alone(width):
    found = fit_epochs(
        lambda w, _, x: (w * x, jnp.sum(x > 0)), optax.sgd(1.0), jnp.array([3.0, 5.0]), None,
        [np.array([[1.0, 2.0], [-4.0, 0.5]])], batch=1, width=width, squeeze=True,
        evaluate=lambda w, _: {"validation": w},
    )  # fmt: skip
    assert found.last.tolist() == [0.0, 8.5]
    assert found.loss.tolist() == [[(3 * 1 + 2 * 2) / 2], [(5 * -4 + 9 * 0.5) / 2]]


def test_a_member_stops_where_one_entry_of_one_parameter_is_no_number():
    x = np.array([[[1.0, np.nan, 2.0]], [[1.0, 3.0, np.nan]], [[1.0, 3.0, 2.0]]])
    found = fit_epochs(
        lambda w, _, x: (w["a"] @ x[:2] + w["b"] * x[2], jnp.sum(x > 5)), optax.sgd(0.5),
        {"a": jnp.zeros((3, 2)), "b": jnp.zeros(3)}, None, [x] * 4, batch=1, width=3,
        stop_accuracy=1.0, evaluate=lambda w, _: {"validation": jnp.float64(0.5)},
    )  # fmt: skip
    bad = Result.NOT_FINITE.value
    assert found.stopped_at.tolist() == [1, 1, 4]
    assert found.result.tolist() == [bad, bad, Result.MAX_STEPS.value]
    assert found.last["a"][2].tolist() == [-2.0, -6.0]
