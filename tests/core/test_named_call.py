"""Functions get the arrays that their parameters name."""

from functools import partial

import pytest

from attlas.core.errors import UserError
from attlas.core.named_call import call_by_name, nearest, parameters


def test_roles_of_parameters():
    def sides(W, p, *, factor=1.0, **others):
        return W, p, factor, others

    assert parameters(sides) == (("W", "p"), ("factor",), True)
    assert parameters(partial(sides, factor=2.0)).options == ("factor",)
    found = call_by_name(sides, {"W": 1, "p": 2, "x": 3}, {"factor": 4, "unknown": 5})
    assert found == (1, 2, 4, {"x": 3})


def test_a_missing_array_is_named_with_the_nearest():
    def sides(weigth):
        return weigth

    with pytest.raises(UserError, match=r"'sides' reads 'weigth': did you mean weight\?"):
        call_by_name(sides, {"weight": 1})
    assert nearest("x", ()) == "There are none"
