"""A training in pieces makes each step once, however long its pieces are."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.checkpoint import Checkpoints
from attlas.core.solution import Result
from attlas.training.course import Task
from attlas.training.programs import COMPILED, Applied, train_in_pieces

LENGTHS = np.array([1, 1, 70, 0, 28], np.int32)


class Nothing:
    """Keeps no state."""

    def read(self, stage):
        return None

    def write(self, stage, arrays):
        raise AssertionError("not yet time")


def square(w, _):
    return jnp.sum(w**2) / 2


@pytest.mark.parametrize("slow", [False, True])
def test_pieces_grow_while_they_are_brief_and_their_steps_add_up(slow, monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr("time.monotonic", lambda: 1e3 * next(clock) if slow else 0.0)
    given = {"params": jnp.ones(2), "data": None, "batches": None, "optimizer": optax.sgd(0.5)}
    task, counts = Task(square, None, None, True), []

    def run(program, moving, *fixed):
        if program is COMPILED.advance:
            counts.append(int(fixed[0]))
            assert sum(counts) <= LENGTHS.sum()
        return program({}, given, None, task, *moving, *fixed)

    def shapes(program, moving):
        return program({}, given, None, task, *moving)

    checkpoints, pieces = Checkpoints(Nothing(), 1e9 if not slow else 1e3), iter(range(120))
    # It is offered once for each piece and each record: an endless loop ends here.
    checkpoints.offer = lambda *_: next(pieces)
    stage = checkpoints.stage(jnp.ones(2))
    path, last, *_ = train_in_pieces(stage, COMPILED, Applied(run, shapes, False), LENGTHS, False)
    assert sum(counts) == checkpoints.made == LENGTHS.sum()
    assert len(counts) == LENGTHS.sum() if slow else len(counts) < 14
    np.testing.assert_array_equal(path[:, 0], 0.5 ** (np.cumsum(LENGTHS) - 1.0))
    np.testing.assert_array_equal(last, path[-1])


def test_the_losses_of_batches_are_averaged_from_record_to_record():
    batches, lengths = jnp.array([4.0, -1.0, 3.0, 0.5, 2.0]), np.array([0, 2, 3], np.int32)
    given = {
        "params": jnp.array(8.0),
        "data": None,
        "batches": batches,
        "optimizer": optax.sgd(0.5),
    }
    task = Task(lambda w, _, b: (w - b) ** 2 / 2, None, None, True)

    def run(program, moving, *fixed):
        return program({}, given, None, task, *moving, *fixed)

    checkpoints, pieces = Checkpoints(Nothing(), 1e9), iter(range(9))
    checkpoints.offer = lambda *_: next(pieces)
    applied = Applied(run, lambda program, moving: run(program, moving), False)
    found = train_in_pieces(checkpoints.stage(batches), COMPILED, applied, lengths, True)
    path, losses = [8.0], []
    for b in batches.tolist():
        losses.append((path[-1] - b) ** 2 / 2)
        path.append(path[-1] + 0.5 * (b - path[-1]))
    assert found[0].tolist() == [path[0], path[2], path[5]]
    assert found[1] == path[5]
    np.testing.assert_allclose(found[2], [np.nan, np.mean(losses[:2]), np.mean(losses[2:])])
    assert int(found[-1]) == Result.MAX_STEPS
