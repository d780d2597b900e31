"""Environments of a paper, by what declares them."""

import pytest

from attlas.projects.latex.theorems import read_environments


@pytest.mark.parametrize(
    ("text", "printed", "numbers"),
    [
        (r"\newtheorem{a}{\textbf{Claim}}", "Claim", ["1", "2"]),
        (r"\newtheorem*{a}{Fact}", "Fact", None),
        (r"\declaretheorem[name=Step,numberwithin=section]{a}", "Step", ["0.1", "0.2"]),
        (r"\declaretheorem{a}[title={Big Step}, numbered=no]", "Big Step", None),
        (r"\newmdtheoremenv{a}{Box}", "Box", ["1", "2"]),
        (r"\newtheorem{a}{Claim}\renewcommand{\thea}{\Roman{a}}", "Claim", ["I", "II"]),
        (r"\newtheorem{a}{Claim}[section]\counterwithout{a}{section}", "Claim", ["1", "2"]),
        (r"\newtheorem{a}{Claim}[section]\renewcommand{\thea}{\thesection-\arabic{a}}", "Claim",
         ["0-1", "0-2"]),
    ],
)  # fmt: skip
def test_names_and_numbers(text, printed, numbers):
    made = read_environments(text)
    assert made.printed["a"] == printed
    if numbers is None:
        assert "a" not in made.counter
    else:
        assert [made.step(made.counter["a"]) for _ in numbers] == numbers


def test_letters_of_the_appendix_and_of_what_lies_below():
    made = read_environments(r"\newtheorem{a}{Claim}[subsection]")
    made.step("section")
    made.begin_appendix()
    made.step("section")
    made.step("subsection")
    assert made.step("a") == "A.1.1"
    made.step("subsection")
    assert made.step("a") == "A.2.1"
