"""The sweep of wrong constants, against controls with those very constants."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.domains.vectors import Ball, Box
from attlas.claims.statement import existence, expectation, identity, inequality, probability, rate
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.verify.check import check
from attlas.verify.power import power


@inequality(
    domains=[Box("x", 0.0, 1.0, shape=2)],
    controls=[Control(f"by {c}", factor=1 / c) for c in (1.5, 4.0, 2e6)],
)
def two(x, *, factor=1.0):
    r"""$$x_1 \le 1, \; x_2 \le 10^6$$"""
    return x, factor * jnp.array([1.0, 1e6])


def test_each_component_has_its_own_power():
    found = power(two, evaluations=0)
    assert found.smallest == (1.01, None)
    assert found.attacked is None
    assert list(found.rows())[1] == ("1", "none", *["passes"] * 7)
    assert power(two, factors=(2e6,), evaluations=0).smallest == (2e6, 2e6)
    assert "detects from" in repr(found)


def test_what_the_sweep_notices_a_control_notices():
    @inequality(
        domains=[Ball("x", 1.0, shape=3)],
        controls=[Control(f"by {c}", factor=1 / c) for c in (1.01, 1.1, 2.0, 10.0)],
    )
    def product(x, *, factor=1.0):
        r"""$$x_1 x_2 x_3 \le 1/2$$"""
        return jnp.prod(x), factor * 0.5

    report = check(product, challenge=0)
    outcomes = [control.verdict.outcome is Outcome.VIOLATED for control in report.controls]
    found = power(product, factors=(1.01, 1.1, 2.0, 10.0))
    assert found.drawn.tolist() == [outcomes]
    # The largest product is 3^{-3/2}: 2.6 times below, which the attack approaches.
    assert found.attacked.tolist() == [[False, False, False, True]]
    assert power(product, factors=(2.5, 2.65)).attacked.tolist() == [[False, True]]


def test_other_kinds_have_a_power():
    def draws(rng, count):
        return {"u": rng.uniform(size=count), "n": 2.0 ** np.tile(np.arange(4), (count, 1))}

    @identity(sample=draws, controls=[Control("other", factor=1.1)])
    def same(u, *, factor=1.0):
        r"""$$u = u$$"""
        return u + 1, factor * (u + 1)

    @probability(
        sample=draws,
        independent="a uniform number",
        level=0.5,
        count=2000,
        controls=[Control("few", share=0.1)],
    )
    def often(u, *, share=0.75):
        r"""$$P(u < 3/4) \ge 1/2$$"""
        return u < share

    @expectation(
        sample=draws,
        independent="a uniform number",
        range=1.0,
        count=4000,
        controls=[Control("less", right=0.1)],
    )
    def mean(u, *, right=0.6):
        r"""$$E u \le 0.6$$"""
        return u, right

    @rate(sample=draws, scales="n", controls=[Control("faster", power=-2.0)])
    def decays(n, u, *, power=-1.0):
        r"""$$1/n = O(1/n)$$"""
        return (1 + u / 2) / n, n**power

    assert power(same).smallest == (1.01,)
    # 1/4 fail of the 1/2 that may: a constant 2 is at the border, 10 is not.
    assert power(often, factors=(1.5, 10.0)).smallest == (10.0,)
    assert power(mean, factors=(1.01, 2.0)).smallest == (2.0,)
    # Without noise, a rate notices an exponent that is wrong by log10 1.01.
    assert power(decays, factors=(1.01, 10.0)).smallest == (1.01,)


def test_an_existence_and_bad_factors():
    @existence(
        sample=lambda rng, count: {"x": rng.uniform(1, 2, size=count)},
        controls=[Control("none", factor=0.1)],
    )
    def found(x, *, factor=1.0):
        r"""$$x \ge 1/2$$"""
        return 0.5 - 0 * x, factor * x

    assert power(found, factors=(1.1, 10.0)).smallest == (10.0,)
    with pytest.raises(UserError, match="above 1"):
        power(found, factors=(0.5,))
