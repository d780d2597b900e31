"""A training in pieces makes each step once, however long its pieces are."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.checkpoint import Checkpoints
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
        return program({}, given, None, task, *moving, *fixed)

    def shapes(program, moving):
        return program({}, given, None, task, *moving)

    checkpoints = Checkpoints(Nothing(), 1e9 if not slow else 1e3)
    checkpoints.offer = lambda *_: None
    stage = checkpoints.stage(jnp.ones(2))
    path, last, *_ = train_in_pieces(stage, COMPILED, Applied(run, shapes, False), LENGTHS, False)
    assert sum(counts) == checkpoints.made == LENGTHS.sum()
    assert len(counts) == LENGTHS.sum() if slow else len(counts) < 14
    np.testing.assert_array_equal(path[:, 0], 0.5 ** (np.cumsum(LENGTHS) - 1.0))
    np.testing.assert_array_equal(last, path[-1])
