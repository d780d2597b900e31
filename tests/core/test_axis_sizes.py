"""The line about axes that disagree is the one with which they are refused."""

import pytest

from attlas.core.axes import require_axes
from attlas.core.axis_sizes import contradicted_axes
from attlas.core.errors import UserError


@pytest.mark.parametrize(
    ("axes", "shapes"),
    [
        ("n d", {"X": (3,)}),
        ("n d", {"X": (3, 0)}),
        ("n n", {"X": (3, 2)}),
        ("*s d, *s", {"X": (3, 2, 4), "y": (3,)}),
        ("n 2", {"X": (3, 1)}),
    ],
)
def test_what_contradicts_is_what_is_refused(axes, shapes):
    line = contradicted_axes(axes, shapes)
    with pytest.raises(UserError) as refused:
        require_axes(axes, shapes)
    assert line == str(refused.value) != ""


def test_shapes_that_fit_give_no_line():
    assert contradicted_axes("*s d, *s", {"X": (3, 2, 4), "y": (3, 2)}) == ""
