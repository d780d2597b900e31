"""Arguments in braces and brackets, whatever lies in them."""

import pytest

from attlas.projects.latex.arguments import group, option, settings


@pytest.mark.parametrize(
    ("text", "argument"),
    [("{a}", "a"), (" \n {a{b}c}", "a{b}c"), (r"{\{}", r"\{"), ("{a", None), ("\n\n{a}", None)],
)
def test_braces(text, argument):
    assert group(text, 0)[0] == argument


@pytest.mark.parametrize(
    ("text", "argument"),
    [("[a]", "a"), ("[{]}]", "{]}"), ("[[1]]", "[1]"), ("[a\n\nb]", None), ("[}]", None)],
)
def test_brackets(text, argument):
    assert option(text, 0)[0] == argument


def test_a_setting_may_hold_commas_in_braces():
    assert settings("a={1,2}, b,c = 3") == {"a": "1,2", "b": "", "c": "3"}
