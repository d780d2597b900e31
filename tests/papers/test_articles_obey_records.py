"""Articles conclude under conditions on records and verdicts, or in sentences that are listed.

A sentence with a concluding word outside a condition on a record stands in
`sentences_of_articles.json`: as a construction, a deduction from what is assumed, a quotation of
the paper, or as resting on the verdicts that its block requires.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from concluding_sentences import concluding_words

from attlas.claims.claim import Status
from attlas.site.article import FILE, SHARED, sections
from attlas.site.theorems import theorem_names
from attlas.verify.registry import find_claims

PAPERS = Path(__file__).parents[2] / "papers"
LISTED = json.loads(
    (Path(__file__).parent / "sentences_of_articles.json").read_text(encoding="utf-8")
)
ARTICLES = {
    f"{file.parent.name}/{file.name}": file.read_text(encoding="utf-8")
    for name in (FILE, SHARED)
    for file in sorted(PAPERS.glob(f"*/{name}"))
}
VERDICT = re.compile(r"\b(?:holds|fails|refuted|broken_steps|printed)\(")
"""What a block calls that is left out unless claims have the verdicts that it names."""
FALSE = "More heads always help, and every bound of the paper is attained."
RESTING = "verdict"
KINDS = {"construction", "deduction", "quotation", RESTING}


def concluding(article: str) -> Iterator[tuple[str, str]]:
    """The sentences that conclude outside conditions on records, each with its block."""
    for block in sections(article):
        for item in re.split(r"\n(?=- )", block):
            for sentence in dict.fromkeys(sentence for _, sentence in concluding_words(item)):
                yield sentence, item


def unlisted(name: str, article: str) -> list[str]:
    """The sentences that conclude and are not listed, or rest on verdicts without any."""
    kinds = {sentence: kind for kind, texts in LISTED.get(name, {}).items() for sentence in texts}
    return [
        sentence
        for sentence, block in concluding(article)
        if sentence not in kinds or (kinds[sentence] == RESTING and not VERDICT.search(block))
    ]


@pytest.mark.parametrize("name", ARTICLES)
def test_an_article_concludes_from_records(name):
    assert unlisted(name, ARTICLES[name]) == []


@pytest.mark.parametrize("name", ARTICLES)
def test_a_false_sentence_is_refused_after_every_block(name):
    for block in sections(ARTICLES[name]):
        if not block.startswith(("#", "```", "![")):
            for false in (f"{block} {FALSE}", f"{block}\n\n{FALSE}"):
                changed = ARTICLES[name].replace(block, false)
                assert FALSE in " ".join(unlisted(name, changed)), block


def test_a_sentence_that_rests_on_verdicts_needs_them():
    name = "liu2021analyzing/article.md"
    without = ARTICLES[name].replace('{{ fails("theorem-2-dominance") }}', "")
    assert "Going from all words" in " ".join(unlisted(name, without))


def test_each_listed_sentence_is_in_its_article():
    assert {kind for kinds in LISTED.values() for kind in kinds} == KINDS
    for name, kinds in LISTED.items():
        present = {sentence for sentence, _ in concluding(ARTICLES[name])}
        assert [text for texts in kinds.values() for text in texts if text not in present] == []


@pytest.mark.parametrize("name", ARTICLES)
def test_that_no_theorem_has_a_counterexample_requires_the_verdicts_of_all(name):
    stated = {
        claim.name.partition("/")[2]
        for claim in find_claims([])
        if claim.paper == name.partition("/")[0]
        and theorem_names(claim.locator)
        and claim.status is not Status.NEW
    }
    for block in sections(ARTICLES[name]):
        if "no counterexample to a theorem" in block:
            required = set(re.findall(r'"([^"]+)"', block))
            assert required == stated
