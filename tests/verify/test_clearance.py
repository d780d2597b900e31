"""Controls and counts that lie near the limit of their verdict are named, others are not."""

import jax.numpy as jnp
import numpy as np
import pytest

import attlas as at
from attlas.verify.check import check


def ones(rng, count):
    return {"x": 1 + 1e-3 * rng.uniform(size=count)}


def one_of(decorator, share):
    """A claim on numbers near 1 whose control violates by the share."""

    @decorator(sample=ones, controls=[at.Control("larger", part=share)])
    def claim(x, *, part=0.0):
        "A number is at most itself."
        return x * (1 + part), x

    return claim


@pytest.mark.parametrize(("share", "near"), [(0.04, True), (0.06, False)])
def test_a_control_of_an_inequality_within_a_twentieth_is_near(share, near):
    report = check(one_of(at.inequality, share), challenge=0)
    assert report.defects == ()
    expected = ("control 'larger' is violated by less than 5 %",) if near else ()
    assert report.near == expected


@pytest.mark.parametrize(("errors", "near"), [(1.02, True), (1.2, False)])
def test_a_control_of_an_identity_is_measured_beside_what_is_allowed(errors, near):
    @at.identity(sample=ones, controls=[at.Control("shifted", part=errors)])
    def claim(x, *, part=0.0):
        "A number is itself."
        return at.Sides(x + part * 1e-6, x, error=1e-6)

    report = check(claim, challenge=0)
    assert (report.defects, bool(report.near)) == ((), near)


@pytest.mark.parametrize(("count", "near"), [(30, True), (31, True), (32, False)])
def test_a_count_just_above_what_support_needs_is_near(count, near):
    report = check(one_of(at.inequality, 0.5), count=count, challenge=0)
    expected = f"{count} distinct instances meet the assumptions, where support needs 30"
    assert report.near == ((expected,) if near else ())


@pytest.mark.parametrize(("share", "near"), [(0.89, True), (0.8, False)])
def test_a_control_of_a_probability_is_near_where_a_few_more_failures_decide(share, near):
    @at.probability(
        sample=lambda rng, count: {"x": rng.uniform(size=count)},
        count=20_000,
        independent="a number",
        controls=[at.Control("rarer", below=share)],
    )
    def claim(x, *, below=2.0):
        "A number between 0 and 1 is below 2."
        return x < below, 0.9

    report = check(claim, challenge=0)
    assert (report.defects, bool(report.near)) == ((), near)


SCALES = 10.0 ** np.arange(1, 6)


@pytest.mark.parametrize(("share", "near"), [(9.2, True), (30, False)])
def test_a_control_of_a_limit_is_near_where_its_plateau_barely_is_one(share, near):
    @at.limit(scales=SCALES, sample=ones, controls=[at.Control("plateau", rest=share * 1e-5)])
    def claim(x, *, rest=0.0):
        "A number over n tends to zero."
        return x / SCALES + rest, jnp.zeros(5)

    report = check(claim, challenge=0)
    assert (report.defects, bool(report.near)) == ((), near)


@pytest.mark.parametrize(("exponent", "near"), [(0.01, True), (0.03, False)])
def test_a_control_of_a_rate_is_near_where_its_exponent_barely_grows(exponent, near):
    @at.rate(scales=SCALES, sample=ones, controls=[at.Control("grows", more=exponent)])
    def claim(x, *, more=0.0):
        "A number stays bounded."
        return x * SCALES**more, jnp.ones(5)

    report = check(claim, challenge=0)
    assert (report.defects, bool(report.near)) == ((), near)


def test_components_that_are_barely_violated_are_near():
    controls = [at.Control("both", first=0.5, second=0.02)]

    @at.inequality(sample=ones, controls=controls)
    def claim(x, *, first=0.0, second=0.0):
        "Two numbers are at most themselves."
        return jnp.stack([x * (1 + first), x * (1 + second)]), jnp.stack([x, x])

    report = check(claim, challenge=0)
    assert report.defects == ()
    assert report.near == ("1 of its 2 components have no control violated by more than 5 %",)
