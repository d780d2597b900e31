"""Assumptions that are NaN on instances which they refuse."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import monitoring

from attlas.claims.claim import Control, assume
from attlas.claims.statement import inequality
from attlas.verify.check import check
from attlas.verify.undefined_assumptions import _KEEPS_NAN, _watched, meets_nan


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
        "is NaN on an instance that it refuses" in f
        for f in check(_stated(condition), challenge=0).faults
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


HIDING = [
    lambda y: jnp.where(y > 0, y, 0.0),
    lambda y: jnp.maximum(y, 0.0),
    lambda y: jnp.clip(y, 0.0, 1.0),
    lambda y: y**0,
    lambda y: y[1:],
    lambda y: jnp.argmax(y),
    lambda y: jnp.isfinite(y),
    lambda y: jnp.sign(y).astype(int),
    lambda y: jnp.sort(y)[:1],
    lambda y: y[:, None] * jnp.zeros((1, 0)),
    lambda y: jnp.zeros((0, 2)) @ y,
]


@pytest.mark.parametrize("hide", HIDING)
def test_nan_is_met_where_what_follows_hides_it(hide):
    x = jnp.array([-1.0, 4.0])
    assert meets_nan(lambda x: hide(2 * jnp.sqrt(x) + 1), x)
    assert not meets_nan(lambda x: hide(2 * jnp.sqrt(x) + 1), -4 * x.at[1].set(-1.0))


THROUGH = {
    "broadcast_in_dim": lambda x: jnp.broadcast_to(x, (3, 2)),
    "concatenate": lambda x: jnp.concatenate([jnp.ones(2), x]),
    "convert_element_type": lambda x: x.astype(jnp.float32),
    "copy": jnp.copy,
    "dot_general": lambda x: jnp.zeros((2, 2)) @ x,
    "reduce_sum": jnp.sum,
    "reshape": lambda x: jax.lax.reshape(x, (2, 1)),
    "squeeze": lambda x: jax.lax.squeeze(x[None], (0,)),
    "transpose": lambda x: jax.lax.transpose(x[None], (1, 0)),
    **{name: partial(getattr(jax.lax, name), jnp.zeros(2)) for name in ("add", "sub", "mul")},
    "div": lambda x: jax.lax.div(jnp.zeros(2), x),
}


@pytest.mark.parametrize("name", sorted(_KEEPS_NAN))
def test_an_operation_that_is_taken_to_keep_nan_does(name):
    function = THROUGH.get(name) or getattr(jax.lax, name)
    x = jnp.array([1.0, jnp.nan])
    assert name in {each.primitive.name for each in jax.make_jaxpr(function)(x).eqns}
    for compiled in (function, jax.jit(function)):
        assert jnp.isnan(compiled(x)).any()


def test_few_of_the_numbers_on_the_way_are_looked_at():
    program = jax.make_jaxpr(lambda x: jnp.sum(jnp.exp(2 * x + 1) / x) < 3)(jnp.ones(4))
    assert len(_watched(program.jaxpr)) == 1
