"""The glossary has one text, and a page marks the first use of a term."""

from pathlib import Path

from markupsafe import Markup

from attlas.display.statements import prose
from attlas.site.glossary import Marker, glossary

DOCS = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_the_documentation_includes_the_same_file():
    assert DOCS.read_text().split() == [
        "```{include}", "../src/attlas/site/glossary.md", "```",
    ]  # fmt: skip


def test_every_term_has_a_definition_that_is_typeset():
    terms = {term.name: term for term in glossary()}
    assert {"tangent-kernel margin", "attention SVM", "vacuous", "sharpness"} <= terms.keys()
    assert len({term.anchor for term in terms.values()}) == len(terms)
    for term in terms.values():
        assert term.text
        assert "$" not in term.definition
        assert "*" not in term.definition.replace("<mo>*</mo>", "")


def test_the_longest_term_is_marked_and_each_once():
    marked = Marker()
    said = marked(prose("A tangent-kernel margin, Tangent kernels, and a tangent kernel."))
    assert said.count("<a ") == 2
    assert ">tangent-kernel margin</a>" in said
    assert ">Tangent kernel</a>s, and a tangent kernel." in said
    assert [term.name for term in marked.used] == ["tangent-kernel margin", "tangent kernel"]


def test_mathematics_code_links_and_parts_of_words_are_left_alone():
    for text in ("<math><mi>slack</mi></math>", "<code>slack</code>", '<a href="#x">slack</a>'):
        assert Marker()(Markup(text)) == text
    text = "slackened, non-slack and unclaimed <b>bold</b> &lt;slack&gt;"
    assert Marker()(Markup(text)).count("<a ") == 1
