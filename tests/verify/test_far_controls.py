"""How far controls are beyond their bound."""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control
from attlas.claims.statement import existence, inequality
from attlas.verify.check import check


def numbers(rng, count):
    """Numbers from 1 to 2."""
    return {"t": rng.uniform(1, 2, size=count)}


def test_the_nearest_control_is_the_one_of_the_component_where_it_is_farthest():
    both = Control("both", first=0.01, second=0.5)
    controls = [Control("first", first=0.25), Control("second", second=0.125), both]

    @inequality(sample=numbers, controls=controls)
    def pair(t, *, first=1.0, second=1.0):
        r"""$$t \le 2, \; t \le 4$$"""
        return jnp.stack([t, t]), jnp.stack([2.0 * first, 4.0 * second])

    report = check(pair, challenge=0)
    # At the first component 4 and 100 times the ratio, at the second 8: 2 does not violate it.
    np.testing.assert_allclose(report.nearest, report.verdict.witness["t"] / 0.5, rtol=1e-9)
    assert not report.remote
    far = inequality(sample=numbers, controls=[both])(pair.function)
    np.testing.assert_allclose(
        check(far, challenge=0).nearest, report.verdict.witness["t"] / 0.02, rtol=1e-9
    )
    assert check(far, challenge=0).remote


def test_the_distance_of_negative_sides_is_the_inverse_ratio_and_signs_that_differ_are_infinite():
    @inequality(sample=numbers, controls=[Control("four times", factor=4.0)])
    def below(t, *, factor=1.0):
        r"""$$-t \le -1$$"""
        return -t, -factor * jnp.ones_like(t)

    least = check(below, challenge=0).verdict.witness["t"]
    np.testing.assert_allclose(check(below, challenge=0).nearest, 4 / least, rtol=0.1)

    @inequality(sample=numbers, controls=[Control("negative", factor=-1.0)])
    def positive(t, *, factor=1.0):
        r"""$$t \le 2$$"""
        return t, 2 * factor

    assert check(positive, challenge=0).nearest == np.inf


def test_a_constant_that_is_needlessly_far_is_named_and_a_term_that_is_left_out_is_not():
    controls = [
        Control("a hundredth", share=0.01),
        Control("a half", share=0.5),
        Control("without the square", square=0.0),
        Control("a hundredth of other numbers", share=0.01, sample=numbers),
    ]

    @inequality(sample=numbers, controls=controls)
    def bound(t, *, share=1.0, square=1.0):
        r"""$$t \le 10^{-3} + t^2$$"""
        return t, share * (1e-3 + square * t**2)

    assert check(bound, challenge=0).far == ("a hundredth",)


def test_the_control_of_an_existence_has_a_distance_too():
    @existence(witness=lambda: {"t": np.asarray(2.0)}, controls=[Control("thrice", factor=3.0)])
    def exists(t, *, factor=1.0):
        r"""$$1 \le t$$"""
        return jnp.asarray(factor), t

    np.testing.assert_allclose(check(exists, challenge=0).nearest, 1.5, rtol=1e-12)
