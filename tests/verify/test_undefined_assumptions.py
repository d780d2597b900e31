"""Assumptions that are NaN on instances which they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring

from attlas.claims.claim import Control, assume
from attlas.claims.statement import inequality
from attlas.verify.check import check
from attlas.verify.undefined_assumptions import meets_nan


def drawn(rng, count):
    """One number of either sign."""
    return {"x": rng.normal(size=count)}


def _stated(condition):
    @inequality(
        sample=drawn,
        controls=[Control("negative", factor=-1.0)],
        assumptions=[assume("a condition", condition)],
    )
    def squared(x, *, factor=1.0):
        r"""$$0 \le x^2$$"""
        return 0.0, factor * x**2

    return squared


def _is_fault(condition):
    return any(
        "is NaN on an instance that it refuses" in f for f in check(_stated(condition)).faults
    )


NAN_INSIDE = [
    lambda x: jnp.sqrt(x) < 10,
    lambda x: jnp.log(x + 0 * x) < 10,
    lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0) > 0,  # NaN is computed and not taken
    lambda x: jnp.max(jnp.sqrt(jnp.stack([x, x + 1]))) < 10,
    lambda x: jax.lax.fori_loop(0, 3, lambda _, y: jnp.sqrt(y), x) < 10,
]


@pytest.mark.parametrize("condition", NAN_INSIDE)
def test_a_number_on_the_way_that_is_nan_is_a_fault(condition):
    assert _is_fault(condition)


@pytest.mark.parametrize(
    "condition",
    [
        lambda x: x > 0,
        lambda x: jnp.sqrt(jnp.abs(x)) < 0.5,
        lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0) > 0,
        lambda x: 1 / jnp.floor(jnp.abs(x)) < 1,  # infinity compares
    ],
)
def test_a_condition_that_refuses_by_its_value_is_none(condition):
    assert not _is_fault(condition)


def test_the_operations_of_a_condition_are_one_program():
    compiled = []
    monitoring.register_event_duration_secs_listener(
        lambda event, _, **__: compiled.append(event) if "backend_compile" in event else None
    )
    with jax.enable_x64(True):
        x = jnp.asarray(np.linspace(-1, 1, 37))
        before = len(compiled)
        assert meets_nan(jax.vmap(lambda x: jnp.exp(jnp.sqrt(x) * 3 - jnp.sin(x)) < 2), x)
    assert len(compiled) - before == 1
