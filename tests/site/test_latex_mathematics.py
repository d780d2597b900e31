"""Statements as LaTeX: what compiles passes as it is, anything else becomes text."""

import pytest

from attlas.site.latex_mathematics import (
    Unsafe,
    checked,
    latex_mathematics,
    latex_prose,
    latex_text,
)
from attlas.verify.registry import find_claims


def test_every_statement_of_the_atlas_is_mathematics():
    texts = [c.name for c in find_claims() if not latex_mathematics(c.statement).startswith("$")]
    assert texts == []


@pytest.mark.parametrize(
    "latex",
    [
        r"\|W\|_{p,p} \le \tfrac12 \hat\theta^\top x'",
        r"\begin{pmatrix} a & b \\ c & d \end{pmatrix} = \left( x \right.",
        r"\sqrt[3]{x} \in \mathbb{R}^d, \quad \operatorname{tr} A = 1",
        r"\binom{n}{k} = \sum_{i=1}^n x_\mathrm{max}",
    ],
)
def test_mathematics_stays(latex):
    assert checked(latex) == latex


@pytest.mark.parametrize(
    "latex",
    [
        r"\input{/etc/passwd}", r"\immediate\write18{ls}", r"\def\x{y}", r"\newcommand{\x}{y}",
        r"\href{javascript:1}{x}", r"\R^d", "a % b", "a # b", "a & b", r"a \\ b", "$x$", "{x", "x}",
        r"\left( x", r"\left x \right y", r"\begin{tabular}{l} x \end{tabular}",
        r"\begin{cases} x \end{pmatrix}", r"\frac{a}", r"x^", "x_1_2", "x' '", "x^\\sum", "\\",
        r"\hat\mathring x", r"\binom\theta", r"\text{x", "é", r"\verb|x|",
    ],
)  # fmt: skip
def test_what_may_not_compile_is_refused_and_printed_as_text(latex):
    with pytest.raises(Unsafe):
        checked(latex)
    shown = latex_mathematics(latex)
    assert shown == rf"\texttt{{{latex_text(latex)}}}"


def test_text_inside_mathematics_is_escaped_once():
    assert checked(r"x \text{ for 5\% of a_b, $y_1$}") == r"x \text{ for 5\% of a\_b, $y_1$}"


def test_a_sentence_is_prose():
    assert latex_mathematics(r"\text{It holds for all $p > 1$ & more.}") == (
        r"It holds for all $p > 1$ \& more."
    )
    assert latex_prose("$5 & $6") == r"$5 \& $6".replace("$", r"\$")


def test_plain_text_has_no_bare_special_character():
    shown = latex_text("\\{}&%$#_~^<>|\n\x00\N{SNOWMAN}é–")
    assert shown == (
        r"\textbackslash{}\{\}\&\%\$\#\_\textasciitilde{}\textasciicircum{}\textless{}"
        r"\textgreater{}\textbar{} \texttt{U+0000}\texttt{U+2603}é–"
    )
