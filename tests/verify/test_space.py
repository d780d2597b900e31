"""What a search moves: arrays in units of their size, or the draws of a sampler."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control
from attlas.claims.statement import inequality
from attlas.verify.space import Arrays, Draws, select_gained, space_of


def drawn(rng, count):
    """Numbers of each law."""
    return {
        "x": rng.normal(size=(count, 2)) * 100,
        "u": rng.uniform(size=count),
        "k": rng.integers(3, size=count),
    }


@inequality(sample=drawn, search_over="x", controls=[Control("half", factor=0.5)])
def stated(x, u, *, factor=1.0):
    r"""$$0 \le \|x\| u + 1$$"""
    return factor - 1 + 0 * u, jnp.linalg.norm(x) * u - 0.1 * (factor < 1)


def test_arrays_move_in_units_of_their_own_size_and_come_back():
    with jax.enable_x64(True):
        batch = stated.draw(0, 4)
        space = space_of(replace(stated, project=lambda x: {"x": jnp.minimum(x, 0)}), batch, 0)
        assert isinstance(space, Arrays)
        block = space.blocks["x"]
        np.testing.assert_allclose(np.sqrt(np.mean(block.values**2, axis=1)), 1)
        found = space.batch({"x": block.at(2 * block.values)})
        np.testing.assert_allclose(found["x"], np.minimum(2 * np.asarray(batch["x"]), 0))
        np.testing.assert_array_equal(found["u"], batch["u"])
        settled = space.settled({"x": block}, {k: np.asarray(v) for k, v in found.items()})
    assert (settled["x"].values <= 0).all()


def test_what_a_projection_makes_beside_the_searched_arrays_is_carried_along():
    """A projection that halves `u` at every move: the next move starts from the half."""
    with jax.enable_x64(True):
        batch = stated.draw(0, 4)
        space = space_of(replace(stated, project=lambda x, u: {"x": x, "u": u / 2}), batch, 0)
        blocks = space.blocks
        for done in (1, 2):
            moved = space.batch(blocks)
            np.testing.assert_allclose(moved["u"], np.asarray(batch["u"]) / 2**done)
            blocks = space.settled(blocks, {k: np.asarray(v) for k, v in moved.items()})


def test_draws_move_within_their_laws():
    with jax.enable_x64(True):
        claim = replace(stated, search_over=())
        batch = claim.draw(0, 4)
        space = space_of(claim, batch, 0)
        assert isinstance(space, Draws)
        assert sorted(block.law for block in space.blocks.values()) == [
            "normal",
            "steps",
            "uniform",
        ]
        same = space.batch(space.blocks)
        for name, value in batch.items():
            np.testing.assert_array_equal(same[name], value)
        moved = {k: b.at(b.values / 2) for k, b in space.blocks.items()}
        found = space.batch(moved)
        np.testing.assert_allclose(found["x"], np.asarray(batch["x"]) / 2)
        assert set(np.asarray(found["k"]).tolist()) <= {0, 1}
    kept = select_gained(space.blocks, moved, np.array([True, False, False, True]))
    for name, block in kept.items():
        np.testing.assert_array_equal(block.values[0], moved[name].values[0])
        np.testing.assert_array_equal(block.values[1], space.blocks[name].values[1])


def test_methods_of_one_search_draw_its_first_instances_once():
    calls = []

    def counted(rng, count):
        calls.append(count)
        return drawn(rng, count)

    claim = replace(stated, sample=counted, search_over=())
    with jax.enable_x64(True):
        first, again = (space_of(claim, stated.draw(0, 4), seed=0) for _ in range(2))
        assert calls == [4]
        space_of(claim, stated.draw(1, 4), seed=1)
        assert calls == [4, 4]
    for place, block in first.blocks.items():
        np.testing.assert_array_equal(block.values, again.blocks[place].values)


def test_instances_are_copied_also_where_a_sampler_draws_them_one_by_one():
    def one_by_one(rng, count):
        return {"x": np.stack([rng.normal(size=2) for _ in range(count)])}

    rows = np.array([2, 2, 0, 0])
    with jax.enable_x64(True):
        for claim in (stated, replace(stated, search_over=()),
                      replace(stated, search_over=(), sample=one_by_one),
                      replace(stated, search_over=(), sample=at_once)):  # fmt: skip
            batch = claim.draw(0, 4)
            space = space_of(claim, batch, 0)
            other = space.copied(rows)
            copies = other.batch(other.blocks)
            for name, value in space.batch(space.blocks).items():
                np.testing.assert_array_equal(copies[name], np.asarray(value)[rows])


def at_once(rng, count):
    x, y = rng.normal(size=(2, count, 3))
    return {"x": x, "u": y[:, 0]}


def test_arrays_that_are_drawn_at_once_are_moved_with_the_instance_in_the_second_axis():
    claim = replace(stated, search_over=(), sample=at_once)
    with jax.enable_x64(True):
        batch = claim.draw(0, 4)
        space = space_of(claim, batch, 0)
        (block,) = space.blocks.values()
        assert block.values.shape == (4, 2, 3)
        moved = block.values.copy()
        moved[1] += 1
        after = space.batch(dict.fromkeys(space.blocks, block.at(moved)))
    np.testing.assert_allclose(
        after["x"] - np.asarray(batch["x"]), np.eye(4)[1][:, None] + np.zeros(3)
    )
    np.testing.assert_allclose(after["u"] - np.asarray(batch["u"]), np.eye(4)[1])


def test_instances_whose_draws_differ_in_shape_are_not_copied():
    def ragged(rng, count):
        return {"x": np.stack([np.sum(rng.normal(size=1 + k % 2)) for k in range(count)])}

    with jax.enable_x64(True):
        claim = replace(stated, search_over=(), sample=ragged)
        space = space_of(claim, claim.draw(0, 4), 0)
        assert space.blocks
        assert space.copied(np.array([1, 1, 1, 1])) is None
