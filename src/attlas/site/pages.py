"""The pages of the atlas: a front page with one page per paper and experiment, or one file."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

from markupsafe import Markup

from attlas.claims.claim import Erratum, ErratumClass, Kind
from attlas.claims.verdict import Outcome, Strength
from attlas.core.errors import refuse_misfits
from attlas.site.article import Article, article_of, has_shared_article, shared_article
from attlas.site.blocks import inline
from attlas.site.bundle import bundle, modules
from attlas.site.claim_entry import MARKS, ClaimEntry
from attlas.site.claim_folds import Fold, claim_folds
from attlas.site.content import Atlas, PaperEntry
from attlas.site.coverage_page import COVERAGE
from attlas.site.explorer.page import palette_style, render_explorer
from attlas.site.gallery import exhibits
from attlas.site.glossary import Marker, glossary
from attlas.site.links import Links
from attlas.site.page import packed_data, render_template, template_file
from attlas.site.search_index import NO_CONSTANT, search_index
from attlas.site.theorem_page import Addresses, TheoremPage, theorem_pages
from attlas.site.theorems import Theorem, theorems_of
from attlas.site.topics import topics_of

GLOSSARY, EXPLORER = "glossary.html", "explorer.html"
GALLERY, ONE_TOKEN = "gallery.html", "one-token.html"
_OWN = {GLOSSARY, EXPLORER, GALLERY, ONE_TOKEN, COVERAGE}
_NOTEBOOK = "Why attention picks one token"
"""The title of the tutorial that computes the figures of the shared article."""
_BROKEN = (ErratumClass.REFUTED, ErratumClass.INVALID_PROOF)
_ATTACKS = ("attack withstood", "counterexample found", "not attacked")
_WHATS = {
    "question": "questions", "theorem": "theorems", "claim": "claims", "experiment": "experiments",
    "finding": "findings", "erratum": "errata", "term": "terms", "paper": "papers",
    "topic": "topics", "page": "pages of the documentation", "function": "functions",
}  # fmt: skip


@refuse_misfits
def render_single(atlas: Atlas) -> str:
    """The atlas as one document; equal for equal atlases.

    Examples:
        >>> render_single(Atlas(papers=()))[:15]
        '<!doctype html>'
    """
    return _Book(atlas).front(Links())


@refuse_misfits
def article_page(atlas: Atlas, links: Links, article: Article) -> str:
    """The page of the article on what the papers share.

    Examples:
        >>> article_page(Atlas(papers=()), Links(), Article(Markup(), (), ()))[:15]
        '<!doctype html>'
    """
    return _Book(atlas).article(links, article)


def render_pages(atlas: Atlas, front: str, folder: str) -> Iterator[tuple[str, str]]:
    """The atlas as pages that link to each other.

    Args:
        front: the file name of the front page.
        folder: the name of the folder of the other pages beside it.

    Yields:
        File names with their documents; the front page, with the empty name, comes last.

    Examples:
        >>> [name for name, _ in render_pages(Atlas(papers=()), "atlas.html", "atlas")]
        ['explorer.html', 'glossary.html', '']
    """
    book, places = _Book(atlas), places_of(atlas)
    if not atlas.title:
        docs = atlas.documentation.index if atlas.documentation else ""
        links = Links(EXPLORER, places, folder, front)
        yield EXPLORER, render_explorer(links, docs, bool(atlas.experiments))
    links = Links(ONE_TOKEN, places, folder, front)
    article = shared_article(atlas, links)
    if article is not None:
        yield ONE_TOKEN, article_page(atlas, links, article)
    yield GLOSSARY, book.page("glossary.html.j2", Links(GLOSSARY, places, folder, front), True)
    for paper in atlas.papers:
        links = Links(places[paper.anchor], places, folder, front)
        yield links.file, book.page("paper_page.html.j2", links, paper=paper)
        for shown in book.theorem_pages(paper, places, folder, front):
            links = Links(places[shown.theorem.anchor], places, folder, front)
            yield links.file, book.page("theorem_page.html.j2", links, paper=paper, shown=shown)
        for entry in paper.experiments:
            links = Links(places[entry.anchor], places, folder, front)
            yield links.file, book.page("experiment_page.html.j2", links, paper=paper, entry=entry)
            yield from ((drawing.file, drawing.data) for drawing in entry.drawings if drawing.data)
    if atlas.experiments:
        links = Links(GALLERY, places, folder, front)
        yield GALLERY, book.page("gallery.html.j2", links, exhibits=exhibits(atlas))
    yield "", book.front(Links("", places, folder, front))


def places_of(atlas: Atlas) -> dict[str, str]:
    """The file name of each object's page, by anchor; two objects never share one by accident."""
    places: dict[str, str] = {}
    for paper in atlas.papers:
        for entry in paper.experiments:
            places[entry.anchor] = _unlike(f"experiment-{entry.experiment.name}", places)
            places |= {drawing.anchor: places[entry.anchor] for drawing in entry.drawings}
        page = _unlike("paper-" + re.sub(r"[^\w-]+", "-", paper.key), places)
        sections = ("findings", "theorems", "claims", "loose", "errata", "ledger", "experiments")
        places |= {f"{paper.anchor}-{part}": page for part in sections}
        places |= {f"{paper.anchor}-erratum-{k + 1}": page for k in range(len(paper.errata))}
        places |= {entry.anchor: page for entry in paper.claims}
        places[paper.anchor] = page
        for theorem in theorems_of(paper):
            places[theorem.anchor] = _unlike(theorem.anchor, places)
    places |= {question.anchor: "" for question in atlas.questions}  # on the front page
    defined = (*glossary(), *topics_of(atlas))
    return places | {each.anchor: GLOSSARY for each in defined}


def _unlike(stem: str, places: Mapping[str, str]) -> str:
    taken = {file.lower() for file in places.values()} | _OWN
    name, number = f"{stem}.html", 2
    while name.lower() in taken:
        name, number = f"{stem}-{number}.html", number + 1
    return name


@dataclass(frozen=True)
class _Book:
    """The common content of the pages of one atlas."""

    atlas: Atlas

    @cached_property
    def theorems(self) -> dict[str, tuple[Theorem, ...]]:
        return {paper.key: theorems_of(paper) for paper in self.atlas.papers}

    @cached_property
    def broken(self) -> dict[str, tuple[tuple[PaperEntry, ClaimEntry, Erratum], ...]]:
        """Refuted statements and proof steps whose claim is violated as expected."""
        return {kind.value: self._broken(kind) for kind in _BROKEN}

    def _broken(self, kind: ErratumClass) -> tuple[tuple[PaperEntry, ClaimEntry, Erratum], ...]:
        return tuple(
            (paper, entry, erratum)
            for paper in self.atlas.papers
            for erratum in paper.errata
            for entry in paper.claims
            if erratum.kind is kind and entry.claim.name == erratum.claim
            if entry.outcome is Outcome.VIOLATED and not entry.unexpected
        )

    def theorem_pages(
        self, paper: PaperEntry, places: Mapping[str, str], folder: str, front: str
    ) -> tuple[TheoremPage, ...]:
        def links(theorem: Theorem) -> Links:
            return Links(places[theorem.anchor], places, folder, front)

        return theorem_pages(paper, self.theorems[paper.key], links)

    def _article(self, links: Links, paper: PaperEntry) -> Article | None:
        theorems = {theorem.name: theorem for theorem in self.theorems[paper.key]}
        return article_of(paper, theorems, links)

    def _folds(self, paper: PaperEntry) -> tuple[Fold, ...]:
        """The claims of a paper in folds; none where there would be one."""
        folds = claim_folds(paper.claims, self.theorems[paper.key])
        return folds if len(folds) > 1 else ()

    @cached_property
    def has_shared(self) -> bool:
        """Whether there is an article on what the papers share."""
        return has_shared_article(self.atlas)

    def _shared(self, links: Links) -> dict[str, Any]:
        """What the templates of all pages use."""
        has_article = links.pages and self.has_shared
        return {
            "atlas": self.atlas,
            "links": links,
            "theorems": self.theorems,
            "stated": _stated(links),
            "article_of": partial(self._article, links),
            "folds_of": self._folds,
            "one_token": ONE_TOKEN if has_article else "",
            "glossed": Marker(),
        }

    def page(self, template: str, links: Links, all_terms: bool = False, **context: Any) -> str:
        return render_template(
            template,
            style=template_file("atlas.css"),
            script=_script("part"),
            **self._shared(links),
            all_terms=glossary() if all_terms else (),
            topics=topics_of(self.atlas) if all_terms else (),
            **context,
        )

    def article(self, links: Links, article: Article) -> str:
        """The page of the shared article, whose figures move."""
        sheets = ("atlas.css", "plane.css", "explorer.css", "live.css")
        return render_template(
            "article_page.html.j2",
            style=palette_style() + "".join(map(template_file, sheets)),
            script=_script("part", "live"),
            **self._shared(links),
            article=article,
            notebook=self._notebook,
        )

    @property
    def _notebook(self) -> str:
        """The address of the tutorial that computes the figures of the shared article."""
        pages = self.atlas.documentation.pages if self.atlas.documentation else ()
        return next((page.address for page in pages if page.title == _NOTEBOOK), "")

    def front(self, links: Links) -> str:
        index = search_index(self.atlas, links)
        return render_template(
            "front.html.j2",
            style=template_file("atlas.css") + ("" if self.atlas.title else _hero_style()),
            script=_script("front") if self.atlas.title else _script("front", "hero"),
            **self._shared(links),
            broken=self.broken,
            filters=self.filters,
            index=packed_data(index),
            all_terms=() if links.pages else glossary(),
            topics=() if links.pages else topics_of(self.atlas),
        )

    @property
    def filters(self) -> tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]:
        """Name, label, and values with their display texts."""
        marks = dict.fromkeys(mark.word for mark in MARKS.values())
        provenances = sorted({entry.provenance_text for entry in self.atlas.claims})
        return (
            ("what", "What", tuple(_WHATS.items())),
            ("paper", "Paper", tuple((paper.key, paper.short) for paper in self.atlas.papers)),
            ("kind", "Kind", _same(Kind)),
            ("status", "Provenance", _same(provenances)),
            ("verdict", "Verdict", _same(marks)),
            ("strength", "Strength", _same((*Strength, NO_CONSTANT))),
            ("attack", "Attack", _same(_ATTACKS)),
        )


def _stated(links: Links) -> Callable[[Theorem], Markup]:
    """Gives the sentence of a theorem, with links from one page."""

    def stated(theorem: Theorem) -> Markup:
        assert theorem.text is not None
        return inline(theorem.text.sentence, Addresses(links, theorem.paper))

    return stated


def _same(values) -> tuple[tuple[str, str], ...]:
    return tuple((str(value), str(value)) for value in values)


@cache
def _script(*entries: str) -> str:
    return bundle({**modules("explorer"), **modules("atlas_page")}, *entries)


def _hero_style() -> str:
    return palette_style() + template_file("plane.css") + template_file("hero.css")
