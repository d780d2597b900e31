"""Values of a configuration, checked."""

import pytest

from attlas.core.errors import UserError
from attlas.transformers.configuration import Configuration

VALUES = Configuration(
    {"n": 3, "x": 0.5, "on": False, "word": "relu", "part": {"y": 2}, "none": None, "nan": 1e400}
)


def test_values_and_defaults():
    assert (VALUES.count("n"), VALUES.count("absent", 4), VALUES.count("none", 5)) == (3, 4, 5)
    assert (VALUES.number("x"), VALUES.number("n"), VALUES.number("none", 2.0)) == (0.5, 3.0, 2.0)
    assert (VALUES.flag("on", True), VALUES.flag("none", True)) == (False, True)
    assert (VALUES.word("word"), VALUES.choice("word", ("relu",))) == ("relu", "relu")
    assert VALUES.section("part").count("y") == 2
    assert VALUES.section("none").values == {}
    assert (VALUES.has("n"), VALUES.has("none"), VALUES.has("absent")) == (True, False, False)
    assert VALUES.divides("n", 3, 12, "m") == 4


def test_supported_value_passes():
    assert VALUES.refuse_unless("on", False) is None
    assert VALUES.refuse_unless("absent", 1.0) is None


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda c: c.count("absent"), "the configuration has no 'absent'"),
        (lambda c: c.count("x"), "x = 0.5 in the configuration is not a whole number from 1 on"),
        (lambda c: c.count("on"), "on = False"),
        (lambda c: c.count("n", least=4), "n = 3 in the configuration is not a whole number from"),
        (lambda c: c.number("nan"), "nan = inf in the configuration is not a finite number"),
        (lambda c: c.number("word"), "word = 'relu'"),
        (lambda c: c.flag("n", True), "n = 3 in the configuration is not true or false"),
        (lambda c: c.word("n"), "n = 3 in the configuration is not a string"),
        (lambda c: c.choice("word", ("a", "b")), "not supported: attlas reads a, b"),
        (lambda c: c.section("n"), "n = 3 in the configuration is not a table of values"),
        (lambda c: c.refuse_unless("n", 1), "attlas reads models with n = 1"),
        (lambda c: c.divides("n", 3, 10, "m"), "n = 3 in the configuration does not divide m = 10"),
    ],
)
def test_wrong_values_are_one_line(ask, text):
    with pytest.raises(UserError) as refused:
        ask(VALUES)
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)
