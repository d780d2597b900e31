"""A locator names a statement by its number, in full or short, and may name a part of it."""

import pytest

from attlas.projects.latex.locators import (
    ABBREVIATIONS,
    is_located,
    name_as_written,
    names_whole,
    nearest_statement,
)


@pytest.mark.parametrize("kind", ABBREVIATIONS)
def test_short_forms_of_a_kind(kind):
    for short in (kind, *ABBREVIATIONS[kind]):
        for locator in (f"{short} 2.1", f"{short}. 2.1 (iii)", f"{short}.~2.1"):
            assert is_located(locator, f"{kind} 2.1")
        assert not is_located(f"{short} 2.12", f"{kind} 2.1")
        assert not is_located(f"{short} 2.1.1", f"{kind} 2.1")
    assert name_as_written(f"{kind} 2.1, in part", f"{kind} 2.1") == f"{kind} 2.1"


def test_a_statement_without_a_number_is_named_by_its_kind():
    assert is_located("Main Theorem (b)", "Main Theorem")
    assert not is_located("Lemma", "Main Theorem")


@pytest.mark.parametrize(
    ("locators", "text", "whole"),
    [
        (["Lemma 1", "Lemma 1 (i)"], r"\item a \item b", True),
        (["Lemma 1 (i)", "Lemma 1 (ii)"], r"\item a \item b", True),
        (["Lemma 1 (i)", "Lemma 1 (i), again"], r"\item a \item b", False),
        (["Lem. 1, for plain accuracy"], "$a < b$", False),
        (["Lemma 1 (a)"], "(a) $x$ and (b) $f(c)$", False),
        (["Lemma 1 (a)", "Lemma 1, part b"], "(a) $x$ and (b) $f(c)$", True),
    ],
)
def test_parts_are_the_whole_where_each_has_a_claim(locators, text, whole):
    assert names_whole(locators, "Lemma 1", text) is whole


def test_the_nearest_statement():
    assert nearest_statement("Theorm 3", ["Lemma 3", "Theorem 3"]) == "Theorem 3"
    assert nearest_statement("Anything else", ["Lemma 3"]) == ""
