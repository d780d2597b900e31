"""Every model, optimiser, generator, solver: jit, vmap, grad, dtype, no second compilation."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import cases
from attlas.core.solution import Result

TYPES = (jnp.float32, jnp.float64)


def by_name(found):
    return pytest.mark.parametrize("case", found, ids=lambda case: case.name)


def floats(tree):
    return [a for a in jax.tree.leaves(tree) if jnp.issubdtype(a.dtype, jnp.floating)]


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", TYPES)
@by_name(cases.MODELS)
def test_model(case, dtype):
    model, example = case.make(jax.random.key(0), dtype)
    traces = []

    @jax.jit
    def forward(model, *example):
        traces.append(1)  # runs when the function is traced, not when the program is called
        return model(*example)

    def other(a):
        return 2 * a if jnp.issubdtype(a.dtype, jnp.floating) else a

    batch = jax.tree.map(lambda a: jnp.stack([a, other(a)]), example)

    @jax.jit
    def everything(model, example, batch):
        slope = jax.grad(lambda model: jnp.sum(forward(model, *example)))(model)
        many = jax.vmap(forward, in_axes=(None, *(0 for _ in example)))(model, *batch)
        return forward(model, *example), many, slope

    alone, together, slope = everything(model, example, batch)
    assert alone.dtype == together.dtype == dtype
    assert all(a.dtype == dtype and jnp.all(jnp.isfinite(a)) for a in jax.tree.leaves(slope))
    # One product of a few terms each way: a few units of rounding.
    size = 64 * jnp.finfo(dtype).eps * jnp.maximum(1, jnp.max(jnp.abs(alone)))
    assert jnp.allclose(together[0], alone, rtol=0, atol=size)
    compiled = len(traces)
    everything(model, example, batch)
    assert len(traces) == compiled


@pytest.mark.parametrize("dtype", TYPES)
@by_name(cases.OPTIMISERS)
def test_optimiser(case, dtype):
    optimiser = case.make()
    parameters = cases.PARAMETERS(jax.random.key(0), dtype)
    gradient = jax.tree.map(jnp.ones_like, parameters)

    traces = []

    @jax.jit
    def step(parameters, state, gradient):
        traces.append(1)
        change, state = optimiser.update(gradient, state, parameters)
        return optax.apply_updates(parameters, change), state

    start = optimiser.init(parameters)
    moved, state = step(parameters, start, gradient)
    step(moved, state, gradient)
    assert len(traces) == 1
    assert jax.tree.structure(state) == jax.tree.structure(start)
    assert all(a.dtype == dtype for a in jax.tree.leaves(moved) + floats(state))

    twice = jax.tree.map(lambda a: jnp.stack([a, a]), (parameters, gradient))
    many = jax.vmap(lambda w, g: step(w, optimiser.init(w), g)[0])(*twice)
    size = 64 * jnp.finfo(dtype).eps
    assert all(
        jnp.allclose(a[1], b, rtol=size, atol=size)
        for a, b in zip(jax.tree.leaves(many), jax.tree.leaves(moved), strict=True)
    )


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", TYPES)
@by_name(cases.GENERATORS)
def test_generator(case, dtype):
    traces = []

    @jax.jit
    def make(key):
        traces.append(1)
        return case.make(key, dtype=dtype)

    first, again, other = (make(jax.random.key(seed)) for seed in (0, 0, 1))
    assert len(traces) == 1
    assert all(a.dtype == dtype for a in floats(first))
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)
    assert any(
        not np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(other), strict=True)
    )
    many = jax.vmap(make)(jax.random.split(jax.random.key(0), 3))
    assert all(a.shape[0] == 3 and jnp.all(jnp.isfinite(a)) for a in floats(many))


@pytest.mark.parametrize("dtype", TYPES)
@by_name(cases.HOST_GENERATORS)
def test_host_generator(case, dtype):
    first, again, other = (
        jax.tree.leaves(case.make(jax.random.key(seed), dtype=dtype)) for seed in (0, 0, 1)
    )
    assert all(a.dtype == dtype and jnp.all(jnp.isfinite(a)) for a in floats(first))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))


TRACED = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: TRACED.append(event) if "trace" in event else None
)


@pytest.mark.parametrize("dtype", TYPES)
@by_name(cases.HOST_SOLVERS)
def test_host_solver(case, dtype):
    traced = len(TRACED)
    found = case.make(dtype)
    assert len(TRACED) == traced
    assert int(found.result) == Result.CONVERGED
    assert found.certificate["gap"] <= 1e-8
    assert isinstance(found.unwrap(), np.ndarray)
    assert found.unwrap().dtype == np.float64
    np.testing.assert_array_equal(found.unwrap(), case.make(dtype).unwrap())


@pytest.mark.parametrize("dtype", TYPES)
@by_name(cases.SOLVERS)
def test_solver(case, dtype):
    first = case.make(dtype)
    traced = len(TRACED)
    again = case.make(dtype)
    assert len(TRACED) == traced
    assert first.certificate
    assert np.all(np.asarray(first.result) == Result.CONVERGED.value)
    for a, b in zip(jax.tree.leaves(first.unwrap()), jax.tree.leaves(again.unwrap()), strict=True):
        np.testing.assert_array_equal(a, b)
    assert all(a.dtype == dtype for a in floats(first.value))


def test_a_second_compilation_would_be_seen():
    before = len(TRACED)
    jax.jit(lambda x: x + 1)(1.0)
    assert len(TRACED) > before
