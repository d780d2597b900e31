"""Statements of a paper are read with the numbers, texts and assumptions that LaTeX prints."""

import time

import pytest
from projects.latex import sample_paper

from attlas.core.errors import UserError
from attlas.projects.latex.statements import read_paper


@pytest.fixture
def paper(tmp_path):
    return read_paper(sample_paper.write(tmp_path))


def document(tmp_path, text, head=r"\newtheorem{lemma}{Lemma}"):
    file = tmp_path / "main.tex"
    file.write_text(f"{head}\\begin{{document}}{text}\\end{{document}}")
    return read_paper(file)


def test_every_statement_has_the_number_that_is_printed(paper):
    assert [each.locator for each in paper.statements] == [
        *("Assumption 1", "Theorem 1.1", "Proposition 2.1", "Remark", "Lemma 2.2", "Lemma A.2"),
    ]
    assert paper.notes == ("Theorem A.1 (main.tex:27) is read as a restatement of Theorem 1.1",)
    assert paper.title == "On tokens and margins"


def test_labels_titles_sections_files_and_roles(paper):
    theorem, half = paper.statements[1], paper.statements[2]
    assert (theorem.label, theorem.title, theorem.section) == ("thm:descent", "Descent", "Results")
    assert (half.label, half.title, half.file, half.line) == (
        *("prop:half", "Halving", "sections/more.tex", 3),
    )
    assert [each.role for each in paper.statements] == [
        *("assumption", "statement", "statement", "context", "statement", "statement"),
    ]


def test_macros_are_replaced_and_assumptions_known_by_label_and_by_number(paper):
    theorem, last = paper.statements[1], paper.statements[-1]
    assert theorem.text == r"Under \cref{as:step}, $\mathbb{E}_{x} f(x_t)\le \operatorname{tr}A$."
    assert theorem.assumptions == last.assumptions == ("Assumption 1",)
    assert r"$\|x\|=1$" in last.text


def test_the_numbers_of_latex_itself_come_first(tmp_path):
    (tmp_path / "main.aux").write_text(r"\newlabel{lem:a}{{7}{3}{Title}{lemma.7}{}}")
    (lemma,) = document(tmp_path, r"\begin{lemma}\label{lem:a} $x$ \end{lemma}").statements
    assert lemma.locator == "Lemma 7"


@pytest.mark.parametrize(
    ("head", "text", "numbers"),
    [
        (r"\spnewtheorem{lemma}{Lemma}[section]{\bf}{\it}", r"\section{A}\L\L", ["1.1", "1.2"]),
        (r"\newtheorem{lemma}{Lemma}\numberwithin{lemma}{section}", r"\section{A}\L", ["1.1"]),
        (
            r"\newtheorem{lemma}{Lemma}\renewcommand{\thelemma}{\Alph{lemma}'}",
            r"\L\L",
            ["A'", "B'"],
        ),
        (
            r"\newtheorem{thm}{Theorem}\newaliascnt{lemma}{thm}\newtheorem{lemma}[lemma]{Lemma}",
            r"\begin{thm}t\end{thm}\L",
            ["1", "2"],
        ),
        (r"\newtheorem{lemma}{Lemma}", r"\setcounter{lemma}{4}\L", ["5"]),
        (r"\newtheorem{lemma}{Lemma}[section]", r"\section*{A}\section{B}\L", ["1.1"]),
        (r"\newtheorem{lemma}{Lemma}[chapter]", r"\chapter{A}\L\appendix\chapter{B}\L",
         ["1.1", "A.1"]),
        ("", r"\L\begin{lemma*}s\end{lemma*}\L", ["1", "", "2"]),
    ],
)  # fmt: skip
def test_counters(tmp_path, head, text, numbers):
    parts = text.split(r"\L")
    body = parts[0] + "".join(
        rf"\begin{{lemma}} number {place} \end{{lemma}}{part}"
        for place, part in enumerate(parts[1:])
    )
    assert [each.number for each in document(tmp_path, body, head).statements] == numbers


def test_an_environment_that_stands_for_another_one(tmp_path):
    head = r"\newtheorem{lemma}{Lemma}\newenvironment{lem}{\begin{lemma}}{\end{lemma}}"
    (first,) = document(tmp_path, r"\begin{lem} $x$ \end{lem}", head).statements
    assert first.locator == "Lemma 1"


def test_an_environment_with_a_title_stands_for_the_theorem_inside_it(tmp_path):
    head = r"\newtheorem{mine}{Lemma}[section]"
    head += r"\newenvironment{lemma}[1]{\bf\begin{mine} #1}{\end{mine}}"
    paper = document(tmp_path, r"\section{A}\begin{lemma}{Halving} $x$ \end{lemma}", head)
    assert [(each.locator, each.title, each.text) for each in paper.statements] == [
        ("Lemma 1.1", "Halving", "$x$")
    ]


def test_an_environment_that_prints_another_number_states_nothing_new(tmp_path):
    head = r"\newtheorem{lemma}{Lemma}\newenvironment{again}[1]"
    head += r"{\renewcommand\thelemma{\ref{#1}}\begin{lemma}}{\end{lemma}}"
    text = r"\begin{lemma}\label{a} $x$ \end{lemma}\begin{again}{a} $x$, again \end{again}"
    assert [each.text for each in document(tmp_path, text, head).statements] == ["$x$"]


def test_definitions_behind_the_beginning_of_the_document_state_nothing(tmp_path):
    text = r"\newenvironment{own}[1]{\begin{lemma}[#1]}{\end{lemma}}\begin{own}{A} $x$ \end{own}"
    (only,) = document(tmp_path, text).statements
    assert (only.title, only.text) == ("A", "$x$")


def test_usual_short_names_need_no_declaration(tmp_path):
    paper = document(tmp_path, r"\begin{thm} a \end{thm}\begin{cor} b \end{cor}", "")
    assert [each.locator for each in paper.statements] == ["Theorem 1", "Corollary 1"]


def test_what_is_broken_is_a_note_and_the_rest_is_read(tmp_path):
    text = "\\begin{lemma} $ broken\n\\begin{lemma} good \\end{lemma} \\input{gone} { $$"
    paper = document(tmp_path, text)
    assert [each.text for each in paper.statements] == ["good"]
    assert paper.notes == (
        "main.tex:2: gone.tex is missing",
        r"main.tex:1: \begin{lemma} has no end: left out",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [(r"\begin{lemma}" * 300, "no end"), (r"\begin{lemma}a\end{lemma}" * 6000, "more than 5000")],
)
def test_hostile_sources_are_refused(tmp_path, text, said):
    with pytest.raises(UserError, match=said):
        document(tmp_path, text)


@pytest.mark.parametrize("part", ["{", "\\newcommand{", "\\begin{verbatim}", "\\declaretheorem[a",
                                  "\\section{", "\\", "$", "\\title[", "\\iffalse ",
                                  "\\usepackage[", "\\usepackage{a}", "\\documentstyle[",
                                  "\\newenvironment{a}[1]{"])  # fmt: skip
def test_a_megabyte_of_one_command_is_read_at_once(tmp_path, part):
    file = tmp_path / "main.tex"
    file.write_text(part * (1_000_000 // len(part)))
    begin = time.process_time()
    assert read_paper(file).statements == ()
    # In linear time it is at most a second; in the square of the length it would be minutes.
    assert time.process_time() - begin < 15


def test_a_statement_is_a_restatement_by_its_text_and_never_by_its_title(tmp_path):
    text = r"""
\begin{lemma}[Bound]\label{a} For all $x$, \[ x^2 \ge 0. \] \end{lemma}
\begin{lemma}[Bound, restated]\label{b} For all $x$, \[ x^2 \ge 1. \] \end{lemma}
\begin{lemma}[Other]\label{c} $z \le z^2 + 1$ \end{lemma}
\begin{lemma}[Bound again] \emph{For all} $x$,
\begin{equation}\label{e} x^2 \,\ge 0 \end{equation}\end{lemma}
\begin{lemma}[Last, restate=last] $1 < 2$ \end{lemma}"""
    paper = document(tmp_path, text)
    assert [(each.locator, each.label, each.title) for each in paper.statements] == [
        ("Lemma 1", "a", "Bound"),
        ("Lemma 2", "b", "Bound, restated"),
        ("Lemma 3", "c", "Other"),
        ("Lemma 5", "", "Last"),
    ]
    assert paper.notes == ("Lemma 4 (main.tex:5) is read as a restatement of Lemma 1",)


def test_what_thmtools_prints_again_counts_once(tmp_path):
    text = r"""\begin{restatable}[Main]{lemma}{again}\label{a} $x$ \end{restatable} \again*
\begin{replemma}{a} $x$, in other words \end{replemma} \begin{lemma} $y$ \end{lemma}"""
    paper = document(tmp_path, text)
    assert [each.locator for each in paper.statements] == ["Lemma 1", "Lemma 2"]
    assert paper.notes == ("Lemma (main.tex:2) is read as a restatement of Lemma 1",)


@pytest.mark.parametrize(
    ("brackets", "title", "label"),
    [
        (r"Closed form, $m=2$, $d=1$", "Closed form, $m=2$, $d=1$", ""),
        (r"The case \(n=\kappa\)", r"The case $n=\kappa$", ""),
        (r"name={Rates, $t=1$}, label=a", "Rates, $t=1$", "a"),
        ("A = B", "A = B", ""),
        ("Main, label=a", "Main", "a"),
    ],
)
def test_a_title_may_hold_equations(tmp_path, brackets, title, label):
    (lemma,) = document(tmp_path, rf"\begin{{lemma}}[{brackets}] $x$ \end{{lemma}}").statements
    assert (lemma.title, lemma.label) == (title, label)
