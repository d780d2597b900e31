"""Draws: equal arguments draw once, generators stand where they would, names decide the source."""

from functools import partial

import jax
import numpy as np

from attlas._jax.device_arrays import generator
from attlas.claims import sampling
from attlas.claims.sampling import draw, in_turn, shared


def test_equal_arguments_draw_once_and_others_again():
    seen = []

    def sample(rng, count, *, scale=1.0):
        seen.append(count)
        return {"x": scale * rng.normal(size=count)}

    first, again = draw(sample, 0, 3), draw(sample, 0, 3)
    assert first["x"] is again["x"]
    assert first["x"].dtype == "float64"
    # Options that are bound anew by two claims are the same sampler.
    for _ in range(2):
        draw(partial(sample, scale=2.0), 0, 3)
    draw(sample, 1, 3)
    draw(sample, 0, 4)
    assert seen == [3, 3, 3, 4]


def test_options_that_cannot_be_compared_are_drawn_each_time():
    def sample(rng, count, *, sizes):
        return {"x": rng.normal(size=(count, len(sizes)))}

    assert draw(partial(sample, sizes=[1, 2]), 0, 3)["x"].shape == (3, 2)


def test_the_first_parameter_names_the_source():
    by_rng = draw(lambda rng, count: {"x": rng.random(count)}, 5, 2)["x"]
    by_key = draw(lambda key, count: {"x": jax.random.uniform(key, (count,))}, 5, 2)["x"]
    np.testing.assert_array_equal(by_rng, generator(jax.random.key(5)).random(2))
    np.testing.assert_array_equal(by_key, jax.random.uniform(jax.random.key(5), (2,)))


def test_a_shared_computation_leaves_the_generator_where_it_would_stand():
    @shared
    def runs(rng, count, scale=1.0):
        return scale * rng.normal(size=count)

    ends = []
    for _ in range(2):
        rng = np.random.default_rng(7)
        runs(rng, 4)
        ends.append(rng.random())
    plain = np.random.default_rng(7)
    plain.normal(size=4)
    assert ends == [plain.random()] * 2
    assert (
        runs(np.random.default_rng(7), 4, scale=2.0)[0] == 2 * runs(np.random.default_rng(7), 4)[0]
    )


def test_old_draws_are_forgotten():
    def sample(rng, count):
        return {"x": rng.random(count)}

    for seed in range(3 * sampling._REMEMBERED):
        draw(sample, seed, 1)
    assert len(sampling._memory) == sampling._REMEMBERED


def test_batches_of_several_sizes_take_turns_and_are_padded_by_zeros():
    parts = [
        {"A": np.full((3, 1, 2), 1.0), "m": np.array([1, 1, 1]), "good": np.ones((3, 2), bool)},
        {"A": np.full((1, 2, 1), 2.0), "m": np.array([2]), "good": np.ones((1, 1), bool)},
    ]
    found = in_turn(parts)
    assert found["m"].tolist() == [1, 2, 1, 1]
    assert found["A"][:2].tolist() == [[[1.0, 1.0], [0.0, 0.0]], [[2.0, 0.0], [2.0, 0.0]]]
    assert found["good"].dtype == bool
    assert found["good"][1].tolist() == [True, False]
    assert in_turn(parts, 2)["m"].tolist() == [1, 2]
