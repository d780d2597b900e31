"""Findings and answers of the front page rest on named records, and their numbers are printed."""

import re
from pathlib import Path

import pytest
from concluding_sentences import concluding_words
from literal_results import literal_results

from attlas.claims.claim import Status
from attlas.site.findings import CARDS, FILE, QUESTIONS, read_findings
from attlas.site.theorems import theorem_names
from attlas.verify.registry import find_claims

PAPERS = Path(__file__).parents[2] / "papers"
ITEMS = [
    pytest.param(item, id=f"{file.parent.name}-{file.stem}-{place}-{count}")
    for file in sorted(
        file for name in (FILE, QUESTIONS, CARDS) for file in PAPERS.glob(f"*/{name}")
    )
    for place, items in enumerate(read_findings([file.parent], file.name).values())
    for count, item in enumerate(items)
]
VERDICT = re.compile(r"\b(?:holds|fails|refuted|broken_steps|printed)\(")
"""What an item calls that is omitted unless claims have the verdicts that it names."""
RECORD = re.compile(r"\b(?:holds|fails|refuted|broken_steps|printed|value|audited)\(")

INSTRUCTION = re.compile(r"(?:Install|Measure|Read|Run|Try)\b")
"""How an item begins that tells the reader what to do, and needs no record."""


def unsupported(item):
    """What an item concludes on no verdict and under no condition, and the numbers in it."""
    words = [] if VERDICT.search(item) else [word for word, _ in concluding_words(item)]
    rests = RECORD.search(item) or INSTRUCTION.match(item)
    return words + literal_results(item) + ([] if rests else ["no record"])


@pytest.mark.parametrize(
    ("item", "found"),
    [
        ("Norms certify nothing.", ["certify", "nothing", "no record"]),
        ('{{ holds("lemma-30") }} The norm grows like $\\log k$.', []),
        ('{{ fails("lemma-24-gap") }} A step of 0.001 breaks Lemma 24.', ["0.001"]),
        ('{{ holds("b") }} It needs $e^{630 \\sigma^2}$, or 4 samples.', ["4", "630"]),
        ('{% if value("heads", "hurts") %}The loss rises{% endif %}.', []),
        ("Try several rates.", []),
        ("Try several rates: the loss falls.", ["falls"]),
        ('The loss rises by {{ value("heads", "power") }}.', ["rises"]),
    ],
)
def test_what_a_finding_may_not_say(item, found):
    assert unsupported(item) == found


@pytest.mark.parametrize("item", ITEMS)
def test_a_finding_is_rendered_from_records(item):
    assert unsupported(item) == []


FALSE = {
    (claim.paper, theorem)
    for claim in find_claims([])
    if claim.status is Status.ERRATUM
    for theorem in theorem_names(claim.locator)
}
"""Theorems of which a claim refutes something as it is printed."""
PAGES = [page for name in (FILE, QUESTIONS, "README.md", "article.md")
         for page in sorted(PAPERS.glob(f"*/{name}"))]  # fmt: skip


def whole_and_printed(paper: str, text: str) -> list[str]:
    """Theorems that a sentence calls true as printed, although a part of them is false."""
    named = []
    for sentence in re.split(r"(?<=[.?!])\s+(?=\S)|\n(?=[-|#])", text):
        if "as printed" in sentence and not re.search(r"\b(?:false|fails)\b", sentence):
            mentions = re.findall(r"(\bpart of )?((?:Theorem|Corollary) [\w.]*\w)", sentence)
            named += [each for part, each in mentions if not part and (paper, each) in FALSE]
    return named


def test_which_sentences_call_a_false_theorem_true_as_printed():
    text = "Theorem 5 and Theorem 7 hold as printed. The eigenvalue part of Theorem 5, as printed."
    assert whole_and_printed("liu2021analyzing", text) == ["Theorem 5"]
    assert whole_and_printed("liu2021analyzing", "Theorem 4 is false as printed.") == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_no_page_calls_a_theorem_true_as_printed_of_which_a_part_is_false(page):
    assert whole_and_printed(page.parent.name, page.read_text(encoding="utf-8")) == []
