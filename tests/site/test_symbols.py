"""Symbols: what stands in a formula, and the definition that a page repeats on it."""

from markupsafe import Markup

from attlas.display.statements import prose
from attlas.site.symbols import Hints, Symbol, identifiers

W, MARGIN, INDEX = (
    Symbol("W", "weights of a < b"),
    Symbol("W_{mm}", "max-margin weights"),
    Symbol("i, t", "a sample, a token"),
)


def test_words_and_functions_are_no_symbols():
    formula = prose(r"$\log \max_i \mathrm{rank}(\Gamma) + \text{all of it}$")
    assert identifiers(formula) == ["i", "Γ"]


def test_an_accent_belongs_to_its_letter():
    assert identifiers(prose(r"$\bar W_{mm} + \hat L$")) == ["W_mm", "L"]


def test_a_symbol_with_its_own_indices_comes_before_the_letter():
    hints = Hints((W, MARGIN, INDEX))
    page = hints(prose("$W_{mm}$ and $W_{it}$"))
    assert hints.used == (W, MARGIN, INDEX)
    first, second = page.split(" and ")
    assert "max-margin weights" in first
    assert "weights of a" not in first
    assert "W: weights of a &lt; b; i, t: a sample, a token" in second


def test_a_letter_with_indices_only_is_defined_for_other_indices_too():
    hints = Hints((Symbol("X_i", "tokens"), INDEX))
    hints(prose("$X_{it}$"))
    assert not hints.undefined


def test_what_has_no_definition_is_named():
    hints = Hints((W,))
    assert "title" not in hints(prose("$x$"))
    assert list(hints.undefined) == ["x"]
    assert hints(Markup("<p>no formula</p>")) == "<p>no formula</p>"
