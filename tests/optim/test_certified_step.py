"""Each limit of the certified step in turn, the descent, and refusals."""

import jax.numpy as jnp
import optax
import pytest

from attlas.core.errors import UserError
from attlas.optim.certified_step import certified_descent, certified_step

EASY = {"rho": 0.5, "distance": 10.0, "target_risk": 0.001, "start_risk": 0.7, "steps": 10}


@pytest.mark.parametrize(
    ("change", "active", "value"),
    [
        ({}, "one", 1.0),
        ({"rho": 8.0}, "smoothness", 1 / 8),
        ({"target_risk": 40.0}, "target_risk", 1 / 4),
        ({"start_risk": 400.0}, "start_risk", 1 / 4),
    ],
)
def test_the_smallest_limit_is_named(change, active, value):
    step = certified_step(**EASY | change)
    assert (step.active, step.value) == (active, value)
    assert step.value == min(step.limits.values())


def test_a_risk_of_zero_sets_no_limit():
    step = certified_step(**EASY | {"target_risk": 0.0, "start_risk": 0.0})
    assert step.limits["target_risk"] == step.limits["start_risk"] == float("inf")


def test_descent_moves_against_the_gradient():
    descent = certified_descent(certified_step(**EASY | {"rho": 8.0}))
    w = jnp.array([1.0, 2.0])
    change, _ = descent.update(8 * w, descent.init(w), w)
    assert optax.apply_updates(w, change).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "change",
    [
        {"rho": 0.0},
        {"distance": 0.0},
        {"target_risk": -1.0},
        {"start_risk": float("nan")},
        {"steps": 0},
    ],
)
def test_bad_numbers_are_refused(change):
    with pytest.raises(UserError, match=f"{next(iter(change))} = "):
        certified_step(**EASY | change)
