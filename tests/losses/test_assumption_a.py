"""Assumption A: the library's losses meet it, and each kind of failure is named with its place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.losses.assumption_a import assumption_a
from attlas.losses.margin_loss import MarginLoss, margin_loss


@pytest.mark.parametrize("name", ["correlation", "exponential", "logistic"])
@pytest.mark.parametrize("high", [0.5, 20.0])
def test_losses_of_the_library_meet_it(name, high):
    report = assumption_a(name, -high, high)
    assert report.failures == ()
    ends = -np.asarray(margin_loss(name).derivative(jnp.array([-high, high])))
    assert np.isclose([report.least_slope, report.largest_slope], np.sort(ends), rtol=1e-12).all()


def test_constants_are_those_of_the_second_derivative():
    report = assumption_a("exponential", -1.0, 2.0)
    assert np.isclose(report.lipschitz, np.e, rtol=1e-3)


def test_sigmoid_loss_is_not_convex_and_meets_it():
    sigmoid = MarginLoss(
        lambda u: jax.nn.sigmoid(-u),
        lambda u: -jax.nn.sigmoid(u) * jax.nn.sigmoid(-u),
        lambda u: jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u),
    )
    report = assumption_a(sigmoid, -4.0, 4.0)
    assert report.failures == ()
    # The largest slope lies inside the interval, not at an end.
    assert np.isclose(report.largest_slope, 0.25)


def _changed(**parts):
    return margin_loss("logistic")._replace(**parts)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (_changed(derivative=jax.nn.sigmoid), "does not strictly decrease"),
        (_changed(derivative=lambda u: -jax.nn.sigmoid(u)), "changes by"),
        (_changed(log_slope=lambda u: -u), "log_slope is"),
        (_changed(value=lambda u: jnp.where(u > 1, jnp.nan, -u)), "the value is not finite"),
        (
            MarginLoss(
                lambda u: jnp.where(u < 0, -2 * u, -u),
                lambda u: jnp.where(u < 0, -2.0, -1.0),
                lambda u: jnp.where(u < 0, jnp.log(2.0), 0.0),
            ),
            "not Lipschitz near margin",
        ),
    ],
)
def test_what_fails_is_named(loss, words):
    failures = assumption_a(loss, -2.0, 2.0).failures
    assert any(words in failure for failure in failures)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, -2.0), (0.0, np.inf), (np.nan, 1.0)])
def test_an_interval_is_needed(low, high):
    with pytest.raises(UserError, match="no interval"):
        assumption_a("logistic", low, high)
