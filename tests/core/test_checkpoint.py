"""Trainings that are stopped anywhere and go on: the same bits as in one piece."""

from dataclasses import dataclass, field
from itertools import islice

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.checkpoint import Named, checkpointed, named_leaves, tree_digest, with_leaves
from attlas.training.epochs import epoch_orders, fit_epochs
from attlas.training.fit import Ensemble, fit

DRAW = np.random.default_rng(0)
X = jnp.asarray(DRAW.standard_normal((12, 3)))
Y = jnp.asarray(DRAW.standard_normal(12))
STARTS = jnp.asarray(DRAW.standard_normal((5, 3)))
ROWS = jnp.asarray(DRAW.integers(0, 12, (40, 4)))
SCHEDULE = (0, 1, 7, 8, 25, 40)


class Stopped(Exception):
    """In place of a signal that kills."""


@dataclass
class Memory:
    """Keeps states, and stops the computation at one of them."""

    states: dict[int, Named] = field(default_factory=dict)
    written: int = 0
    stop_after: int = 10**9

    def read(self, stage: int) -> Named | None:
        return self.states.get(stage)

    def write(self, stage: int, arrays: Named) -> None:
        self.states[stage] = dict(arrays)
        self.written += 1
        if self.written == self.stop_after:
            raise Stopped


def risk(w, data):
    return jnp.mean(jnp.logaddexp(0, -data[1] * (data[0] @ w))) + 0.01 * jnp.sum(w**2)


def batch_risk(w, data, rows):
    return risk(w, jax.tree.map(lambda a: a[rows], data))


def norm(w, data):
    return {"norm": jnp.sqrt(jnp.sum(w**2))}


def whole():
    return fit(risk, optax.adam(0.1), STARTS[0], (X, Y), record_at=SCHEDULE, observe=norm)


def batched():
    return fit(batch_risk, optax.sgd(0.1, 0.9), STARTS[0], (X, Y), record_at=SCHEDULE,
               batches=ROWS, keep=False)  # fmt: skip


def ensemble():
    return fit(risk, optax.adam(0.1), STARTS, (X, Y), record_at=SCHEDULE, observe=norm,
               ensemble=Ensemble(params=True, chunk=2))  # fmt: skip


def two_trainings():
    first = batched()
    return first, fit(risk, optax.sgd(0.1), first.last, (X, Y), record_at=SCHEDULE)


def epochs():
    def loss(w, data, rows):
        value = batch_risk(w, data, rows)
        return value, jnp.sum(data[1][rows] * (data[0][rows] @ w) > 0)

    def evaluate(w, data):
        return {"validation": jnp.mean(data[1] * (data[0] @ w) > 0)}

    orders = islice(epoch_orders(jax.random.split(jax.random.key(1), 5), 12, 4), 6)
    return fit_epochs(loss, optax.sgd(0.1, 0.9), STARTS, (X, Y), orders, evaluate=evaluate, batch=4,
                      width=1, stop_accuracy=0.95)  # fmt: skip


TRAININGS = (whole, batched, ensemble, two_trainings, epochs)


def assert_same_bits(mine, theirs):
    assert jax.tree.structure(mine) == jax.tree.structure(theirs)
    for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.thorough
@pytest.mark.parametrize("train", TRAININGS)
def test_in_pieces_the_numbers_are_those_of_the_one_program(train):
    with checkpointed(Memory(), 0.0):
        pieces = train()
    assert_same_bits(train(), pieces)


@pytest.mark.thorough
@pytest.mark.parametrize("stop_after", [2, 5, 14])
@pytest.mark.parametrize("train", TRAININGS)
def test_a_stopped_training_goes_on_from_its_state_and_ends_with_the_same_bits(train, stop_after):
    with checkpointed(Memory(), 0.0) as uninterrupted:
        expected = train()
    killed = Memory(stop_after=min(stop_after, 4) if train is epochs else stop_after)
    with pytest.raises(Stopped), checkpointed(killed, 0.0):
        train()
    with checkpointed(Memory(killed.states), 0.0) as second:
        found = train()
    assert_same_bits(expected, found)
    assert uninterrupted.resumed == 0
    assert second.made + second.resumed == uninterrupted.made
    assert second.made < uninterrupted.made


@pytest.mark.thorough
def test_a_training_that_was_stopped_many_times_makes_every_step_once():
    states, made = {}, 0
    for _ in range(100):
        memory = Memory(states, stop_after=2)
        try:
            with checkpointed(memory, 0.0) as part:
                found = whole()
            break
        except Stopped:
            made += part.made
    assert made + part.made >= SCHEDULE[-1] + 1
    assert_same_bits(whole(), found)


def test_the_state_of_another_start_is_not_used():
    memory = Memory()
    with checkpointed(memory, 0.0):
        whole()
    with checkpointed(memory, 0.0) as other:
        found = fit(risk, optax.adam(0.1), STARTS[1], (X, Y), record_at=SCHEDULE, observe=norm)
    assert other.resumed == 0
    assert_same_bits(
        fit(risk, optax.adam(0.1), STARTS[1], (X, Y), record_at=SCHEDULE, observe=norm), found
    )


def test_nothing_is_kept_before_its_time_nor_under_transformations():
    memory, expected = Memory(), whole()
    with checkpointed(memory, 3600.0) as part:
        assert_same_bits(whole(), expected)
        jax.vmap(lambda w: fit(risk, optax.sgd(0.1), w, (X, Y), steps=3).last)(STARTS)
    assert memory.states == {}
    assert part.made == SCHEDULE[-1] + 1


def test_keys_and_small_numbers_survive_by_name():
    tree = {"key": jax.random.key(3), "n": jnp.int32(4), "rows": np.arange(3)}
    back = with_leaves("t", tree, named_leaves("t", tree))
    assert jax.random.key_data(back["key"]).tolist() == [0, 3]
    assert tree_digest(back) == tree_digest(tree)
    assert isinstance(back["rows"], np.ndarray)
    assert eqx.tree_equal(back, tree)
