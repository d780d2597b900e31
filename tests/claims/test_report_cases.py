"""Reports as test cases: names that stay apart, witnesses that can be pasted."""

import numpy as np

from attlas.claims.report_cases import case_names, witness_text


def test_names_are_one_printable_line_and_different():
    names = case_names("lemma-1", (r"half $\eta$", "a\nb", "a b", "a b"))
    assert names == (
        "lemma-1",
        "lemma-1[half eta]",
        "lemma-1[a b]",
        "lemma-1[a b, 2]",
        "lemma-1[a b, 3]",
    )


def test_a_small_witness_is_exact_and_a_large_one_is_told():
    x = np.random.default_rng(0).normal(size=(3, 2))
    text = witness_text(
        {"x": x, "big": np.arange(100).reshape(4, 25), "names": np.array(["a"] * 70)}
    )
    lines = text.split("\nx = ")
    assert (np.array(eval(lines[1])) == x).all()  # noqa: S307 (what we wrote just now)
    assert lines[0].splitlines() == ["big = 4 × 25 entries between 0 and 99", "names = 70 entries"]
