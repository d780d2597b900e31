"""The page of one theorem, proposition or corollary."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from attlas.site.blocks import rendered
from attlas.site.content import ExperimentEntry, PaperEntry
from attlas.site.grounds import folders_of
from attlas.site.links import Links, anchor
from attlas.site.symbols import Hints, Symbol, read_symbols
from attlas.site.theorem_verdict import headline, provenance, room, sentences
from attlas.site.theorems import Theorem


@dataclass(frozen=True)
class TheoremPage:
    """The content of the page of one theorem, beside those of its neighbours in the paper.

    Attributes:
        statement: the theorem in words and formulas, with hints on its symbols; empty if unwritten.
        symbols: the symbols of the statement.
    """

    theorem: Theorem
    paper: PaperEntry
    statement: Markup
    symbols: tuple[Symbol, ...]
    before: Theorem | None = None
    after: Theorem | None = None

    @property
    def title(self) -> str:
        """Its name, with what it is about."""
        text = self.theorem.text
        return f"{self.theorem.name}: {text.title}" if text and text.title else self.theorem.name

    @property
    def provenance(self) -> str:
        """Where the statement is from."""
        return provenance(self.theorem, self.paper.unread)

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        return headline(self.theorem)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The verdict on each form of the theorem."""
        return sentences(self.theorem)

    @property
    def room(self) -> str:
        """How much smaller its bound can be."""
        return room(self.theorem)

    @property
    def experiments(self) -> tuple[ExperimentEntry, ...]:
        """The experiments about it."""
        names = self.theorem.text.experiments if self.theorem.text else ()
        return tuple(e for e in self.paper.experiments if e.experiment.name in names)


def theorem_pages(
    paper: PaperEntry, theorems: Sequence[Theorem], links: Callable[[Theorem], Links]
) -> tuple[TheoremPage, ...]:
    """The pages of a paper's theorems.

    Args:
        links: from the page of a theorem to the others.
    """
    symbols = read_symbols(folders_of(paper.claims))
    pages = []
    for place, theorem in enumerate(theorems):
        hints = Hints(symbols)
        texts = theorem.text.texts if theorem.text else ()
        address = Addresses(links(theorem), paper.key)
        statement = hints(rendered(texts, 3, address, no_picture))
        before = theorems[place - 1] if place else None
        after = theorems[place + 1] if place + 1 < len(theorems) else None
        pages.append(TheoremPage(theorem, paper, statement, hints.used, before, after))
    return tuple(pages)


def no_picture(target: str, caption: str) -> Markup:
    """No figure: a statement has none.

    Examples:
        >>> no_picture("path", "Divergence")
        Markup('')
    """
    return Markup()


@dataclass(frozen=True)
class Addresses:
    """The addresses of the targets that texts about a paper name.

    A target is `claim:lemma-1`, `experiment:path`, `theorem:Theorem 1`, `paper:KEY`,
    `page:explorer.html` or an address with https. A claim or theorem of another paper has its key
    before it, `claim:KEY/lemma-1`.

    Examples:
        >>> Addresses(Links(), "a2020b")("claim:lemma-1")
        '#claim-a2020b-lemma-1'
        >>> Addresses(Links(), "a2020b")("https://arxiv.org/abs/1")
        'https://arxiv.org/abs/1'
    """

    links: Links
    paper: str

    def __call__(self, target: str) -> str:
        """The address of a target; the front page where the atlas lacks it."""
        kind, _, name = target.partition(":")
        if kind == "https":
            return target
        if kind == "page":
            return self.links.page(name)
        if kind in ("claim", "theorem") and "/" not in name:
            name = f"{self.paper}/{name}"
        fragment = anchor(kind, name.replace("/Theorem ", "/") if kind == "theorem" else name)
        known = not self.links.pages or fragment in self.links.pages
        return self.links.to(fragment) if known else self.links.page("")
