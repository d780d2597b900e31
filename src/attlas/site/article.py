"""The article on a paper: the file `article.md` beside the paper's claims.

It is a text of blocks, each of which is a template for the numbers of records (see
`attlas.site.grounds`); a block, or an item of a list, is left out if its evidence is missing or
contradicts it. What precedes the first section is for a reader of the file. Three kinds of blocks
are drawn:

    ![Caption.][direction: Direction against step]       a figure of an experiment
    ![][theorem: Direction theorem]                      a theorem with its verdict
    ![Caption.][live: growth]                            a figure that moves, see `live_figures`

and a block between lines of three backticks, the first of which says `model`, is the picture of a
model: in each line a formula and what it is.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from attlas.core.errors import refuse_misfits
from attlas.display.statements import prose
from attlas.site.blocks import blocks, rendered
from attlas.site.content import Atlas, ExperimentEntry, PaperEntry
from attlas.site.grounds import Grounds, folders_of
from attlas.site.links import Links
from attlas.site.live_figures import live_figure
from attlas.site.symbols import Hints, Symbol, read_symbols
from attlas.site.theorem_page import Addresses
from attlas.site.theorem_verdict import headline
from attlas.site.theorems import Theorem

FILE, SHARED = "article.md", "one_token.md"
_LEVEL = 3
"""The level of the headings of sections, below the paper's title."""


@dataclass(frozen=True)
class Article:
    """An article as markup, with the symbols that it uses."""

    text: Markup
    symbols: tuple[Symbol, ...]
    undefined: tuple[str, ...]


@refuse_misfits
def article_of(paper: PaperEntry, theorems: Mapping[str, Theorem], links: Links) -> Article | None:
    """The article on a paper, None without one.

    Args:
        theorems: the paper's theorems by name.
        links: from the page of the article.

    Examples:
        >>> article_of(PaperEntry("a", None, (), (), (), ()), {}, Links()) is None
        True
    """
    grounds = Grounds(paper.claims, paper.experiments, lambda entry: entry.slug)
    blocks = _Blocks(paper.experiments, theorems, Addresses(links, paper.key))
    return _article(folders_of(paper.claims), FILE, grounds, blocks, _LEVEL)


@refuse_misfits
def shared_article(atlas: Atlas, links: Links) -> Article | None:
    """The article on what the papers share, None without one: a file `one_token.md`.

    It names claims with their papers, and its symbols are those of the paper beside which it lies.

    Examples:
        >>> shared_article(Atlas(papers=()), Links()) is None
        True
    """
    grounds = Grounds(atlas.claims, atlas.experiments, lambda entry: entry.claim.name)
    blocks = _Blocks(atlas.experiments, {}, Addresses(links, ""))
    return _article(folders_of(atlas.claims), SHARED, grounds, blocks, _LEVEL - 1)


@refuse_misfits
def has_shared_article(atlas: Atlas) -> bool:
    """Whether the article on what the papers share is there.

    Examples:
        >>> has_shared_article(Atlas(papers=()))
        False
    """
    return any((folder / SHARED).is_file() for folder in folders_of(atlas.claims))


def _article(
    folders: Iterable[Path], name: str, grounds: Grounds, blocks: "_Blocks", level: int
) -> Article | None:
    places = [folder for folder in folders if (folder / name).is_file()]
    if not places:
        return None
    files = (folder / name for folder in places)
    templates = [block for file in files for block in sections(file.read_text(encoding="utf-8"))]
    texts = [text for template in templates if (text := _written(template, grounds))]
    hints = Hints(read_symbols(places))
    text = hints(rendered(texts, level - 1, blocks.addresses, blocks))
    return Article(text, hints.used, tuple(hints.undefined))


def _written(template: str, grounds: Grounds) -> str:
    """A block with its numbers; of a list the items whose evidence is there."""
    if not template.startswith("- "):
        return grounds.written(template)
    return "\n".join(filter(None, map(grounds.written, re.split(r"\n(?=- )", template))))


def sections(text: str) -> list[str]:
    r"""The blocks of an article, without what precedes its first section.

    Examples:
        >>> sections("# For readers of the file\n\n## One\n\nText.")
        ['## One', 'Text.']
    """
    start = f"\n{text}".find("\n## ")
    return blocks(text[start:]) if start >= 0 else []


@dataclass(frozen=True)
class _Blocks:
    """The parts of an article that the atlas draws."""

    experiments: Sequence[ExperimentEntry]
    theorems: Mapping[str, Theorem]
    addresses: Addresses

    def __call__(self, target: str, caption: str) -> Markup:
        kind, _, name = target.partition(": ")
        if kind == "live":
            return live_figure(name, caption)
        return self._theorem(name) if kind == "theorem" else self._figure(kind, name, caption)

    def _theorem(self, name: str) -> Markup:
        theorem = self.theorems.get(name)
        if theorem is None or theorem.text is None:
            return Markup()
        heading = Markup('<h{0}><a href="{1}">{2}</a></h{0}>').format(
            _LEVEL + 1, self.addresses(f"theorem:{name}"), f"{name}: {theorem.text.title}"
        )
        statement = rendered(theorem.text.texts, _LEVEL + 2, self.addresses, self)
        return Markup('<div class="card stated">{}{}<p class="fine">{}</p></div>').format(
            heading, statement, f"Verdict: {headline(theorem)}."
        )

    def _figure(self, experiment: str, title: str, caption: str) -> Markup:
        entry = next((e for e in self.experiments if e.experiment.name == experiment), None)
        if entry is None:
            return Markup()
        drawing = next((d for d in entry.drawings if d.title == title), None)
        address = self.addresses(f"experiment:{experiment}")
        link = Markup('<a href="{}">{}</a>').format(address, entry.experiment.title)
        if drawing is None or not self.addresses.links.pages:
            missing = "" if drawing else f" It needs records: attlas run {experiment}."
            return Markup('<p class="fine">Figure: {} {}{}</p>').format(
                prose(caption), link, missing
            )
        return Markup("<figure>{}<figcaption>{} {}</figcaption></figure>").format(
            drawing.picture, prose(caption), link
        )
