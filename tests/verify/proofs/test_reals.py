"""Signs of expressions at an instance, where floats decide and where they do not."""

import pytest

from attlas.verify.proofs.elements import Atom, Field, NotProvedError
from attlas.verify.proofs.functions import Functions
from attlas.verify.proofs.nodes import Node
from attlas.verify.proofs.points import Point
from attlas.verify.proofs.reals import Reals

FIELD = Field(Point("reals"))
X, Y = (Node.of(FIELD.symbol(Atom(name, False))) for name in "xy")
EXP = Functions(FIELD).exp


def sign(a, x, y):
    return Reals(FIELD, {"x": x, "y": y}, {}).sign(a)


def test_signs_are_those_of_exact_numbers():
    assert sign(X - Y, 1.0, 0.5) == 1
    assert sign(X / Y, -1.0, 0.5) == -1
    # In floats the sum is 1e30, and the difference nothing.
    assert sign((X + 1) - X - Y, 1e30, 0.5) == 1
    assert sign((X + 1) - X - Y, 1e30, 1.5) == -1


def test_numbers_that_floats_do_not_hold_have_signs():
    assert sign(EXP(X) - EXP(Y), 900.0, 901.0) == -1
    assert sign(EXP(X) - EXP(Y), -900.0, -901.0) == 1
    assert sign(EXP(X) * EXP(Y) - 1, 900.0, -900.5) == -1


def test_differences_below_fifty_digits_have_signs():
    # A softmax of large logits differs from a corner by less than any rounding.
    assert sign((1 + EXP(X)) - 1 - EXP(Y), -900.0, -901.0) == 1
    assert sign((1 + EXP(X)) - 1 - EXP(Y), -9001.0, -9000.0) == -1
    with pytest.raises(NotProvedError, match="two cases meet"):
        sign((1 + EXP(X)) - 1, -90_000.0, 0.0)


def test_where_two_cases_meet_there_is_no_sign():
    with pytest.raises(NotProvedError, match="two cases meet"):
        sign(X - Y, 0.5, 0.5)
    with pytest.raises(NotProvedError, match="may be zero"):
        sign(1 / X + Y, 0.0, 1.0)
