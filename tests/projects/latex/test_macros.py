"""Macros are read and replaced, and never become programs."""

import itertools

import pytest

from attlas.projects.latex.macros import expanded, read_macros


@pytest.mark.parametrize(
    ("definitions", "text", "meant"),
    [
        (r"\newcommand{\R}{\mathbb{R}}", r"\R^d \Ra", r"\mathbb{R}^d \Ra"),
        (r"\newcommand\f[2][a]{#1+#2}", r"\f{x} \f[b]{y} \f z", "a+x b+y a+z"),
        (r"\def\g#1#2{#2#1}", r"\g{a}{b}\g cd", "badc"),
        (r"\DeclareMathOperator*{\am}{arg\,min}", r"\am_x", r"\operatorname*{arg\,min}_x"),
        (r"\DeclarePairedDelimiter{\abs}{|}{|}", r"\abs{x}", "| x |"),
        (r"\newcommand{\al}{\alpha}", r"$\al x$", r"$\alpha x$"),
        (r"\newcommand{\a}{1}\renewcommand{\a}{2}", r"\a", "2"),
        (r"\newcommand{\a}{\ifnum1=1 x\fi}", r"\a", r"\a"),
        (r"\newcommand{\a}{\b\b}\newcommand{\b}{\a\a}", r"\a", r"\a"),
        (r"\newcommand{\f}[1]{#1}", r"\f", r"\f"),
    ],
)
def test_what_a_text_means(definitions, text, meant):
    assert expanded(text, read_macros(definitions)) == meant


def test_a_bomb_of_macros_stays_as_it_is():
    names = "abcdefghij"
    bomb = "".join(
        rf"\newcommand{{\{first}}}{{" + rf"\{second}" * 9 + "}"
        for first, second in itertools.pairwise(names)
    )
    assert expanded(r"\a", read_macros(bomb + r"\newcommand{\j}{boom}")) == r"\a"
