"""The sides of a claim in plain NumPy, in digits."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, Sides, assume
from attlas.claims.domains.vectors import Ball
from attlas.claims.statement import inequality
from attlas.verify.digits.host_claim import evaluated, shape_of_sides
from attlas.verify.digits.precision import Precision, Unconfirmed


@inequality(
    domains=[Ball("x", 1.0, shape="n")],
    sizes={"n": 2},
    assumptions=[assume("positive", lambda x: x[0] > 0)],
    controls=[Control("halved", factor=0.5)],
    backend="numpy",
)
def thirds(x, *, factor=1.0):
    r"""$$x_i / 3 \le 1$$"""
    return Sides(x / 3, factor * np.ones(2), error=1e-9)


def test_assumptions_and_sides_come_in_the_order_of_the_claim():
    x = np.array([0.5, -0.25])
    assert shape_of_sides(thirds, {"x": x}) == (2,)
    inside, positive, left, right, magnitude, error = evaluated(
        thirds, ["x"], Precision(60), [jnp.asarray(x)]
    )
    assert (bool(inside), positive) == (True, True)
    assert abs(left[0] * 6 - 1) < 1e-55
    assert right.tolist() == magnitude.tolist() == [1, 1]
    assert error.shape == (2,)


def test_an_instance_outside_a_domain_is_seen_in_digits():
    inside, positive, *_ = evaluated(thirds, ["x"], Precision(60), [np.array([-1.0, 1e-9])])
    assert (bool(inside), positive) == (False, False)


def test_what_numpy_refuses_is_the_reason():
    claim = inequality(
        sample=lambda rng, count: {"x": rng.normal(size=(count, 2))},
        controls=[Control("halved", factor=0.5)],
        backend="numpy",
    )(_interpolated)
    with pytest.raises(Unconfirmed, match="with objects"):
        evaluated(claim, ["x"], Precision(60), [np.ones(2)])


def _interpolated(x, *, factor=1.0):
    "A statement."
    return np.nextafter(x[0], 2.0), factor
