"""The exponent that a check would notice, against statements with that exponent changed."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.claims.claim import Control, Sides
from attlas.claims.domains.vectors import Box
from attlas.claims.statement import identity, inequality
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.verify.challenge import replay
from attlas.verify.check import check
from attlas.verify.power import power


def shift(n, d):
    """Two quantities, above and below one."""
    return jnp.sqrt(n) * d


def stated(change_n=0.0, change_d=0.0, name="stated"):
    def sides(n, d, *, factor=1.0):
        r"""$$n^{1/2} d / 1.1 \le n^{1/2} d$$"""
        right = n ** (0.5 + change_n) * d ** (1 + change_d)
        return shift(n, d) / 1.1, factor * right

    sides.__name__ = name
    return inequality(
        domains=[Box("n", 1.0, 100.0, shape=()), Box("d", 0.01, 0.5, shape=())],
        quantities={"n": "n", "d": "d", "one": lambda n: n / n},
        controls=[Control("half", factor=0.5)],
    )(sides)


def test_the_limit_is_where_the_changed_statement_begins_to_be_violated():
    report = check(stated(), challenge=0)
    limit = report.exponents
    assert limit["one"] is None
    # Corners are drawn: n = 100 and d = 0.01.
    np.testing.assert_allclose(limit["n"], np.log(1.1) / np.log(100), rtol=1e-6)
    np.testing.assert_allclose(limit["d"], np.log(1.1) / np.log(100), rtol=1e-6)
    for share, outcome in ((0.99, Outcome.SUPPORTED), (1.01, Outcome.VIOLATED)):
        assert check(stated(change_n=-share * limit["n"]), challenge=0).verdict.outcome is outcome
        assert check(stated(change_d=share * limit["d"]), challenge=0).verdict.outcome is outcome


def test_an_identity_notices_any_exponent_beyond_its_rounding():
    @identity(
        domains=[Box("n", 1.0, 100.0, shape=())],
        quantities=("n",),
        controls=[Control("other", power=0.49)],
    )
    def square(n, *, power=0.5):
        r"""$$\sqrt n = n^{1/2}$$"""
        return Sides(jnp.sqrt(n), n**power)

    assert check(square, challenge=0).exponents["n"] < 1e-10


def ones_and_others(rng, count, n=4):
    """Entries up to one; every other instance has ones alone."""
    x = rng.uniform(size=(count, n))
    x[::2] = 1
    return {"x": x}


def sum_of_entries(exponent, constant=1.0):
    @inequality(
        sample=ones_and_others,
        sizes={"n": 4},
        quantities={"n": "n"},
        controls=[Control("half", factor=0.5)],
    )
    def total(x, *, factor=1.0):
        r"""$$\sum_i x_i \le c n^a$$"""
        return jnp.sum(x), factor * constant * len(x) ** exponent

    return total


def test_a_wrong_exponent_that_the_constant_hides_at_one_size_is_refuted_at_a_grown_one():
    # At n = 4 both sides are 4: only another size tells n^0.9 from n.
    hidden = sum_of_entries(0.9, 4**0.1)
    report = check(hidden, challenge=0)
    assert report.verdict.outcome is Outcome.VIOLATED
    assert report.verdict.reason.startswith("at n = 8: ")
    assert report.verdict.witness["x"].tolist() == [1.0] * 8
    assert replay(hidden, report.verdict.witness).outcome is Outcome.VIOLATED
    assert check(sum_of_entries(1.0), challenge=0).exponents["n"] < 1e-12


@pytest.mark.thorough
def test_grown_sizes_notice_smaller_changes_of_an_exponent():
    # Twice as large as needed: log 2 / log n, at the largest n of the schedule.
    limit = check(sum_of_entries(1.0, 2.0), challenge=0).exponents["n"]
    np.testing.assert_allclose(limit, np.log(2) / np.log(32), rtol=1e-6)
    np.testing.assert_allclose(power(sum_of_entries(1.0, 2.0)).exponents["n"], limit)
    assert (
        check(sum_of_entries(1 - 0.99 * limit, 2.0), challenge=0).verdict.outcome
        is Outcome.SUPPORTED
    )
    assert (
        check(sum_of_entries(1 - 1.01 * limit, 2.0), challenge=0).verdict.outcome
        is Outcome.VIOLATED
    )


def test_a_size_is_a_quantity_and_an_unknown_name_is_one_line():
    @inequality(
        domains=[Box("x", 0.0, 1.0, shape="n")],
        sizes={"n": 4},
        quantities="n",
        controls=[Control("half", factor=0.5)],
    )
    def total(x, *, factor=1.0):
        r"""$$\sum_i x_i \le n$$"""
        return jnp.sum(x), factor * len(x)

    # Some corner has all ones or all but few: the limit is that of the best instance, or smaller
    # at grown sizes.
    best = check(total, challenge=0)
    assert 0 <= best.exponents["n"] <= -np.log(best.verdict.tightness) / np.log(4) + 1e-12
    with pytest.raises(UserError, match="neither a size nor an array"):
        check(stated().__class__(**{**vars(total), "quantities": {"m": "m"}}), challenge=0)
