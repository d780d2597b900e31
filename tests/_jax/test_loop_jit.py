"""A program with a loop asks for its own level where the process has the least."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from attlas._jax.compilation import LOOP_COMPILATION, loop_options
from attlas._jax.loop_jit import loop_jit
from attlas._jax.processes import BRIEF_FLAGS


def squares(x, count):
    return jax.lax.fori_loop(0, count, lambda _, y: y * y, x)


@pytest.fixture
def brief(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", BRIEF_FLAGS)


def test_only_a_brief_process_gives_options(monkeypatch, brief):
    assert loop_options() == LOOP_COMPILATION
    monkeypatch.setenv("XLA_FLAGS", "")
    assert loop_options() is None


@pytest.mark.parametrize("jit", [jax.jit, eqx.filter_jit])
def test_the_same_numbers_alone_and_inside_other_programs(brief, jit):
    program = loop_jit(lambda x: squares(x, 3), jit=jit)
    assert float(program(2.0)) == 256.0
    assert float(jax.jit(program)(2.0)) == 256.0
    # An argument that is no tracer, inside a program: JAX refuses options there.
    assert float(jax.jit(lambda x: x + program(jnp.asarray(2.0)))(1.0)) == 257.0
    assert jax.vmap(program)(jnp.asarray([1.0, 2.0])).tolist() == [1.0, 256.0]


def test_settings_reach_the_compiler(brief):
    program = loop_jit(squares, static_argnames="count")
    assert float(program(2.0, count=2)) == 16.0
    decorated = loop_jit(static_argnums=1)(squares)
    assert float(decorated(2.0, 1)) == 4.0
