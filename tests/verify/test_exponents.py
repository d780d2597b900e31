"""The exponent that a check would notice, against statements with that exponent changed."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.claim import Control, Sides
from attlas.core.domains.vectors import Box
from attlas.core.errors import UserError
from attlas.core.statement import identity, inequality
from attlas.core.verdict import Outcome
from attlas.verify.check import check


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
    report = check(stated())
    limit = report.exponents
    assert limit["one"] is None
    # Corners are drawn: n = 100 and d = 0.01.
    np.testing.assert_allclose(limit["n"], np.log(1.1) / np.log(100), rtol=1e-6)
    np.testing.assert_allclose(limit["d"], np.log(1.1) / np.log(100), rtol=1e-6)
    for share, outcome in ((0.99, Outcome.SUPPORTED), (1.01, Outcome.VIOLATED)):
        assert check(stated(change_n=-share * limit["n"])).verdict.outcome is outcome
        assert check(stated(change_d=share * limit["d"])).verdict.outcome is outcome


def test_an_identity_notices_any_exponent_beyond_its_rounding():
    @identity(
        domains=[Box("n", 1.0, 100.0, shape=())],
        quantities=("n",),
        controls=[Control("other", power=0.49)],
    )
    def square(n, *, power=0.5):
        r"""$$\sqrt n = n^{1/2}$$"""
        return Sides(jnp.sqrt(n), n**power)

    assert check(square).exponents["n"] < 1e-10


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

    # Some corner has all ones or all but few: the limit is that of the best instance.
    best = check(total)
    np.testing.assert_allclose(
        best.exponents["n"], -np.log(best.verdict.tightness) / np.log(4), rtol=1e-6, atol=1e-12
    )
    with pytest.raises(UserError, match="neither a size nor an array"):
        check(stated().__class__(**{**vars(total), "quantities": {"m": "m"}}))
