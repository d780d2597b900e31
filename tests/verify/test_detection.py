"""What a check would notice, and components that no control violates."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, Sides
from attlas.claims.statement import identity, inequality
from attlas.verify.check import check


def numbers(rng, count):
    """Numbers from 1 to 2."""
    return {"t": rng.uniform(1, 2, size=count)}


@inequality(sample=numbers, controls=[Control("first", first=0.1)])
def stacked(t, *, first=1.0):
    r"""$$t \le 2, \; t \le 4$$"""
    return jnp.stack([t, t]), jnp.stack([2.0 * first, jnp.asarray(4.0)])


def test_the_limit_of_a_bound_is_one_less_its_tightness_by_component():
    report = check(stacked, challenge=0)
    best = report.verdict.witness["t"]
    np.testing.assert_allclose(report.detection, [1 - best / 2, 1 - best / 4], rtol=1e-9)


def test_a_component_without_a_control_is_a_defect_unless_alike():
    (defect,) = check(stacked, challenge=0).defects
    assert "no control violates 1 of its 2 components (1)" in defect


def test_a_control_of_another_shape_is_named():
    @inequality(sample=numbers, alike=True, controls=[Control("two places", places=2)])
    def places(t, *, places=3):
        r"""$$t \le 2$$"""
        return jnp.stack([t] * places), jnp.full(places, 2.0 if places == 3 else -1.0)

    (defect,) = check(places, challenge=0).defects
    assert defect.startswith("control 'two places' returns shape (2,), the claim (3,): ")


def alike(t, *, first=1.0, second=1.0):
    """Three places of t <= 2 whose last has a right side of its own."""
    return jnp.stack([t, t, t]), jnp.stack([2.0 * first, 2.0 * first, 2.0 * second])


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"first": 0.1}, ""), ({"second": 0.1}, "2 of its 3"), ({"first": 0.1, "second": 0.1}, "")],
)
def test_of_alike_components_controls_violate_more_than_half(changes, named):
    claim = inequality(sample=numbers, alike=True, controls=[Control("tenth", **changes)])(alike)
    assert len(check(claim, challenge=0).detection) == 1
    assert all(named in text for text in check(claim, challenge=0).defects)
    assert bool(check(claim, challenge=0).defects) is bool(named)


@pytest.mark.parametrize(("slack", "passes"), [(1.9, True), (2.1, False)])
def test_an_alike_component_without_a_control_is_not_slacker_by_far(slack, passes):
    @inequality(sample=numbers, alike=True, controls=[Control("tenth", factor=0.1)])
    def places(t, *, factor=1.0):
        r"""$$t \le 2, \; t \le 2, \; t \le 2s$$"""
        return jnp.stack([t, t, t]), jnp.stack([2.0 * factor, 2.0 * factor, 2.0 * slack])

    assert (check(places, challenge=0).defects == ()) is passes


def test_an_alike_identity_notices_a_change_of_a_thousandth_at_each_place():
    @identity(sample=numbers, alike=True, controls=[Control("three times", factor=3.0)])
    def same(t, *, factor=1.0):
        r"""$$t = t$$"""
        both = jnp.stack([t, t])
        return Sides(both, factor * both, error=jnp.array([0.0, 0.5]))

    assert "a relative error of 0.25" in check(same, challenge=0).defects[0]


def test_an_entry_that_is_always_zero_needs_no_control():
    @inequality(sample=numbers, controls=[Control("third", factor=1 / 3)])
    def padded(t, *, factor=1.0):
        r"""$$t \le 2$$"""
        return jnp.stack([t, 0.0 * t]), factor * jnp.stack([2.0, 0.0])

    report = check(padded, challenge=0)
    assert report.defects == ()
    assert report.detection[1] is None


@pytest.mark.parametrize(("error", "passes"), [(0.0, True), (1e-4, True), (0.5, False)])
def test_an_identity_notices_a_change_of_a_thousandth(error, passes):
    @identity(sample=numbers, controls=[Control("three times", factor=3.0)])
    def same(t, *, factor=1.0):
        r"""$$t = t$$"""
        return Sides(t, factor * t, error=error)

    report = check(same, challenge=0)
    assert (report.defects == ()) is passes
    np.testing.assert_allclose(report.detection[0], error / 2, rtol=0.1, atol=1e-13)


def test_where_both_sides_vanish_the_control_gives_the_size():
    @identity(sample=numbers, controls=[Control("something", more=1.0)])
    def nothing(t, *, more=0.0):
        r"""$$t - t = 0$$"""
        return Sides(t - t + more, 0.0 * t, magnitude=t)

    report = check(nothing, challenge=0)
    assert report.defects == ()
    assert 0 < report.detection[0] < 1e-12


@pytest.mark.thorough
def test_a_sign_states_no_constant_and_has_no_level():
    @inequality(sample=numbers, controls=[Control("shifted", shift=1.5)])
    def positive(t, *, shift=0.0):
        r"""$$0 \le t$$"""
        return 0 * t, t - shift

    report = check(positive, challenge=0)
    assert (report.detection, report.ratio, report.strength) == ((None,), None, None)
    assert report.nearest is None


def test_of_many_components_the_worst_that_has_a_size_is_listed():
    @identity(sample=numbers, controls=[Control("shifted", shift=1.0)])
    def many(t, *, shift=0.0):
        r"""$$t = t, \; 0 = 0, \; \dots$$"""
        side = t * jnp.asarray([0.0, *[1.0] * 80])
        return side + jnp.asarray([0.0, *[shift] * 80]), side

    (limit,) = check(many, challenge=0).detection
    assert limit is not None
    assert 0 < limit < 1e-12
