"""Prose without typesetting: what a terminal and an attribute show."""

import pytest

from attlas.display.prose import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain & simple", "plain & simple"),
        (r"$\left(x\right) \leq y$, then $\ge$", "left(xright) <= y, then >="),
        (r"for $\|W\|_{p,p}\,\mathrm{sharp}$", "for ||W||_{p,p} sharp"),
        ("a price of $5", "a price of $5"),
    ],
)
def test_mathematics_is_read_without_dollars_and_backslashes(text, shown):
    assert plain(text) == shown
