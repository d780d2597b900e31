"""Instances of a claim as a strategy: inside the assumptions, by name, the same for equal seeds."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import attlas as at
from attlas.testing.strategies import given_instances, instances


def pairs(rng, count):
    return {"x": rng.normal(size=(count, 3)), "p": rng.choice([1.5, 3.0], size=count)}


@at.inequality(
    sample=pairs,
    assumptions=[at.assume("$p > 2$", lambda p: p > 2)],
    controls=[at.Control("a tenth", factor=0.1)],
)
def power_mean(x, p, *, factor=1.0):
    r"""$$\|x\|_p \le \|x\|_1$$"""
    return jnp.sum(jnp.abs(x) ** p) ** (1 / p), factor * jnp.sum(jnp.abs(x))


@pytest.mark.thorough
@settings(max_examples=20)
@given(instances(power_mean))
def test_values_are_instances_inside_the_assumptions(instance):
    assert sorted(instance) == ["p", "x"]
    assert instance["p"] == 3.0
    left, right = power_mean(instance["x"], instance["p"])
    assert left <= right


@pytest.mark.thorough
@given_instances(power_mean, assumed=False)
def test_parameters_name_the_arrays(p):
    assert p in (1.5, 3.0)


@pytest.mark.thorough
def test_a_failing_test_fails_with_an_instance_of_the_sampler():
    @given_instances(power_mean)
    def wrong(x):
        assert np.sum(x) > 0

    with pytest.raises(AssertionError):
        wrong()


DRAWN = []


def recorded(rng, count):
    DRAWN.append(pairs(rng, count))
    return DRAWN[-1]


@at.identity(sample=recorded, controls=[at.Control("another sign", sign=-1)])
def even(x, p, *, sign=1):
    r"""$$|-x|^p = |x|^p$$"""
    return jnp.sum(jnp.abs(-x) ** p), sign * jnp.sum(jnp.abs(x) ** p)


@settings(max_examples=5)
@given(instances(even))
def test_values_come_from_the_sampler_whole(instance):
    batches = [(x, p) for batch in DRAWN for x, p in zip(batch["x"], batch["p"], strict=True)]
    assert any((x == instance["x"]).all() and p == instance["p"] for x, p in batches)
