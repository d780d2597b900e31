"""Compiler flags go only to the XLA that knows them, and change no result."""

import importlib.metadata

import jax
import jax.numpy as jnp
import pytest

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas._jax.processes import (
    BRIEF_FLAGS,
    CHEAP_FLAGS,
    CHEAPER_FLAGS,
    SAMPLER_FLAGS,
    TESTED_SERIES,
    brief_flags,
    cheap_flags,
    checker_variables,
    compile_cache,
    sampler_flags,
    worker_variables,
)


@pytest.mark.parametrize(
    ("version", "cheap", "brief", "sampler"),
    [
        (f"{TESTED_SERIES}9", f"{CHEAP_FLAGS} {CHEAPER_FLAGS}", BRIEF_FLAGS, SAMPLER_FLAGS),
        ("99.0", CHEAP_FLAGS, "", CHEAP_FLAGS),
    ],
)
def test_an_untried_xla_gets_no_flag_that_would_end_it(monkeypatch, version, cheap, brief, sampler):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert cheap_flags() == cheap
    assert brief_flags() == brief
    assert worker_variables(2, brief=True).get("XLA_FLAGS", "") == brief
    assert sampler_flags() == sampler
    assert checker_variables(2)["XLA_FLAGS"] == sampler


def test_cheap_compilation_changes_no_result():
    x = jnp.linspace(-2.0, 2.0, 12).reshape(3, 4)

    def attention(x):
        return jax.nn.softmax(x @ x.T, axis=1) @ jnp.tanh(x)

    cheap = jax.jit(attention, compiler_options=CHEAP_COMPILATION)(x)
    assert jnp.allclose(cheap, jax.jit(attention)(x), rtol=1e-6)


def test_the_cache_is_where_the_user_wants_it(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTLAS_CACHE", str(tmp_path))
    assert compile_cache() == tmp_path / "compiled"
