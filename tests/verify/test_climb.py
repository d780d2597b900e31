"""The loop of a search: only gains are kept, assumptions hold, the budget is met."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, assume
from attlas.claims.statement import inequality
from attlas.verify.climb import climb, scores
from attlas.verify.evidence import compile_program
from attlas.verify.proposals import Moves


@inequality(
    sample=lambda rng, count: {"x": rng.uniform(size=(count, 2))},
    assumptions=[assume("$x_1 \\le 0.8$", lambda x: x[0] <= 0.8)],
    search_over="x",
    controls=[Control("half", factor=0.5)],
)
def first(x, *, factor=1.0):
    r"""$$x_1 \le 1$$"""
    return x[0], factor * 1.0


def test_scores_never_fall_and_what_an_assumption_refuses_is_not_kept():
    with jax.enable_x64(True):
        program = compile_program(first)
        batch = first.draw(0, 32)
        before = scores(first, *program(batch))
        found = climb(first, program, batch, Moves, seed=0, moves=12)
        after = scores(first, *program(found.batch))
    assert found.moves == 12
    assert (after >= before).all()
    inside = np.asarray(batch["x"])[:, 0] <= 0.8
    assert (np.asarray(found.batch["x"])[inside, 0] <= 0.8).all()
    assert (after[inside] > before[inside]).mean() > 0.9


def test_it_stops_when_told_and_where_nothing_moves():
    with jax.enable_x64(True):
        program = compile_program(first)
        batch = first.draw(0, 8)
        assert climb(first, program, batch, Moves, seed=0, moves=9, stop=lambda: True).moves == 1
        whole = replace(first, search_over=(), sample=lambda rng, count: {
            "x": rng.geometric(0.5, size=(count, 2)) - 1.0
        })  # fmt: skip
        assert climb(whole, program, whole.draw(0, 8), Moves, seed=0, moves=9).moves == 0


def test_a_component_is_raised_by_its_own_instances():
    @inequality(
        sample=lambda rng, count: {"x": rng.uniform(size=(count, 2))},
        controls=[Control("half", factor=0.5)],
    )
    def both(x, *, factor=1.0):
        r"""$$x_1 \le 1, \; x_2 \le 10$$"""
        return x, factor * jnp.array([1.0, 10.0])

    with jax.enable_x64(True):
        batch = {"x": jnp.asarray(np.tile([0.9, 0.9], (8, 1)))}
        score = scores(both, *compile_program(both)(batch))
    # The second component is ten times looser, and its instances say so.
    assert (score[0::2] > score[1::2]).all()
