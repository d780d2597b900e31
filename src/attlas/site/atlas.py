"""The atlas: the contents of a results folder as HTML pages or as one file."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import attlas
from attlas.claims.claim import Claim, Erratum
from attlas.core.errors import UserError
from attlas.experiments.audits import stored_audits
from attlas.experiments.cell import Scale
from attlas.experiments.environment import (
    code_hash,
    summarise_environment,
)
from attlas.experiments.experiment import Experiment
from attlas.experiments.find import find_experiments
from attlas.experiments.published import not_run
from attlas.experiments.record import Record
from attlas.experiments.store import Store, published_store
from attlas.experiments.text_file import write_text_file
from attlas.projects.bibliography import all_references
from attlas.projects.installed import is_of_installed_paper
from attlas.projects.latex.stubs import STATEMENTS
from attlas.projects.project import project_here, project_of
from attlas.projects.references import Reference
from attlas.site.checked_claims import checked_claims, source_of
from attlas.site.claim_entry import ClaimEntry
from attlas.site.content import Atlas, ExperimentEntry, PaperEntry, paper_order
from attlas.site.coverage import coverage_of_project
from attlas.site.coverage_page import COVERAGE, render_coverage
from attlas.site.documentation import documentation_beside, sources_beside
from attlas.site.experiment_page_pool import ExperimentRecords, experiment_entries
from attlas.site.findings import answered_questions, findings_of, front_cards, with_pictures
from attlas.site.folder import write_pages
from attlas.site.ledger import slack_ledger
from attlas.site.links import Links
from attlas.site.monitors import monitor_drawings
from attlas.site.pages import render_pages, render_single
from attlas.site.selection import select
from attlas.site.stored_entries import StoredEntries
from attlas.verify.registry import find_claims, find_errata

_PACKAGE = Path(attlas.__path__[0])
FIRST = (
    "This is the first page of a run that has not ended. It shows the published records and the "
    "results that were there when it was written, without most figures and tables. The page of all "
    "results replaces it when the run ends."
)
"""The remark at the top of a page that is written before the results are there."""


def write_atlas(
    results: Store | Path | str,
    out: Path | str,
    names: Sequence[str] = (),
    *,
    single: bool = False,
    published: Store | Path | str | None = None,
    step: Callable[[int], None] = lambda total: None,
    first: bool = False,
    stored: StoredEntries | None = None,
) -> Path:
    """Write the atlas of a results folder: pages, or one file, that need no network.

    Claims and experiments without a record are listed as not run, damaged records are named.
    Equal records give equal pages, whenever they are written.

    Args:
        out: the front page; its folder is created if missing. The pages of papers and experiments
            go into a folder beside it that has its name without the suffix.
        names: the objects to show, see `attlas.site.selection.select`.
        single: whether to write everything to `out`.
        published: further records, usually the published ones; missing cells are
            listed with their estimated cost.
        step: called with the number of experiments whenever one more is drawn.
        first: whether to write at once, with figures for the cards alone, marked as such.
        stored: figures and tables of earlier reports, used again where nothing has changed.

    Returns:
        The path of the front page.

    Raises:
        UserError: if a file cannot be written, or `out` has no suffix or is not a plain file.
    """
    store = results if isinstance(results, Store) else Store(results)
    more = Store(published) if isinstance(published, Path | str) else published
    front = Path(out)
    if not single and (not front.suffix or (front.exists() and not front.is_file())):
        raise UserError(
            f"{front} leaves no name for the folder of the other pages: name a file .html, "
            "or add --single"
        )
    selection = select(names)
    objects = (selection.claims, selection.errata, selection.experiments)
    asked = {"published": more, "step": step, "first": first, "stored": stored}
    atlas = gather(store, *objects, excerpt=bool(names), **asked)
    atlas = replace(atlas, sources=sources_beside(front))
    if single:
        return write_text_file(front, render_single(atlas), "--out")
    if not atlas.title:
        atlas = replace(atlas, documentation=documentation_beside(front))
    folder = front.with_suffix("")
    pages: list[tuple[str, str]] = []
    try:
        links = Links(COVERAGE, {}, folder.name, front.name)
        pages += [] if names else _coverage_page(store, links)
    except UserError as error:
        atlas = replace(atlas, warnings=(*atlas.warnings, f"The coverage is not shown: {error}."))
    atlas = replace(atlas, coverage=COVERAGE if pages else "")
    write_pages(front, folder, [*pages, *render_pages(atlas, front.name, folder.name)])
    return front


def _coverage_page(store: Store, links: Links) -> Iterator[tuple[str, str]]:
    """The coverage of the paper of the working directory, if it was read from LaTeX."""
    project = project_here()
    if project is not None and (project.root / STATEMENTS).exists():
        result = coverage_of_project(project.root, store)
        yield COVERAGE, render_coverage(result, project.title or project.key, links)


def gather(
    store: Store,
    claims: Sequence[Claim] | None = None,
    errata: Sequence[Erratum] | None = None,
    experiments: Sequence[Experiment] | None = None,
    excerpt: bool = False,
    published: Store | None = None,
    step: Callable[[int], None] = lambda total: None,
    first: bool = False,
    stored: StoredEntries | None = None,
) -> Atlas:
    """Collect claims, errata and experiments with their results; papers as in the bibliography.

    Args:
        claims: all claims when None; likewise errata and experiments.
        excerpt: whether verdicts of other claims may exist in the store.
        published, step, first, stored: see `write_atlas`.
    """
    claims = find_claims() if claims is None else claims
    errata = find_errata() if errata is None else errata
    experiments = find_experiments() if experiments is None else experiments
    code = code_hash()
    checked = checked_claims(store, claims, errata, published)
    metadata_list, entries = list(checked.metadata), checked.entries
    stores = (store,) if published is None else (published, store)
    experiment_records = [
        ExperimentRecords(e, _records(stores, e), source_of(e.source)) for e in experiments
    ]
    metadata_list += [record.metadata for each in experiment_records for record in each.records]
    drawn_entries = experiment_entries(
        experiment_records, code, step, pictures=not first, stored=stored
    )
    drawn_entries = _with_missing(drawn_entries, published)
    monitors = monitor_drawings(store)
    warnings = [FIRST] if first else []
    warnings += [note for results in stores for note in _notes(results)]
    audits, unread = stored_audits(store.root)
    warnings += [*checked.changed, *unread]
    if checked.unknown and not excerpt:
        warnings.append(f"There are verdicts of unknown claims: {', '.join(checked.unknown)}.")
    papers = _papers(entries, errata, drawn_entries)
    cards = () if excerpt else front_cards(entries, drawn_entries, audits)
    places = [c.place[0] for c in claims] + [e.source[0] for e in experiments]
    is_user_project = bool(places) and not any(map(is_of_installed_paper, places))
    return Atlas(
        papers,
        summarise_environment(metadata_list),
        tuple(warnings),
        tuple(audits),
        monitors,
        () if excerpt else answered_questions(entries, drawn_entries),
        ", ".join(paper.heading for paper in papers) if is_user_project else "",
        cards=with_pictures(cards, experiment_records) if first else cards,
    )


def _records(stores: Sequence[Store], experiment: Experiment) -> tuple[Record, ...]:
    """The records of an experiment in all stores; for a cell in several, the last store's.

    The published records of attlas are of installed papers, also where a user's experiment has the
    same name.
    """
    published = published_store()
    if published is not None and not is_of_installed_paper(experiment.source[0]):
        stores = [store for store in stores if store.root != published.root]
    records = (record for store in stores for record in store.records(experiment.name))
    return tuple({record.key: record for record in records}.values())


def _notes(store: Store) -> list[str]:
    # The path of this machine's results folder is private.
    folder = f"{store.root}{os.sep}"
    return [note.replace(folder, "") for note in dict.fromkeys(store.notes)]


def _with_missing(
    entries: Sequence[ExperimentEntry], published: Store | None
) -> list[ExperimentEntry]:
    """The entries, with the estimated cost of their missing cells of paper scale."""
    costs = {} if published is None else not_run(published)
    return [
        entry
        if entry.scale == Scale.PAPER and entry.done == entry.total
        else replace(entry, missing=costs.get(entry.experiment.name, ""))
        for entry in entries
    ]


def references_of(places: Iterable[str]) -> tuple[dict[str, Reference], dict[str, str]]:
    """References by key, of installed papers and users' projects, and titles of the projects.

    Args:
        places: files in which claims and experiments are defined.

    Raises:
        UserError: if a project's references cannot be read.
    """
    references, titles = dict(all_references()), {}
    for project in filter(None, map(project_of, sorted({Path(place).parent for place in places}))):
        references |= project.bibliography()
        titles[project.key] = project.title
    return references, titles


def _papers(
    entries: Sequence[ClaimEntry],
    errata: Sequence[Erratum],
    experiment_entries: Sequence[ExperimentEntry],
) -> tuple[PaperEntry, ...]:
    """The papers that have a claim, an erratum or an experiment, in the bibliography's order."""
    references, titles = references_of(
        [
            *(entry.claim.place[0] for entry in entries),
            *(entry.experiment.source[0] for entry in experiment_entries),
        ]
    )
    used = {e.claim.paper for e in entries}
    used |= {e.paper for e in errata} | {e.experiment.paper for e in experiment_entries}
    papers = []
    for key in [*(k for k in references if k in used), *sorted(used - references.keys())]:
        claims = tuple(
            sorted(
                (e for e in entries if e.claim.paper == key),
                key=lambda e: paper_order(e.claim.locator),
            )
        )
        own_experiments = tuple(e for e in experiment_entries if e.experiment.paper == key)
        papers.append(
            PaperEntry(
                key=key,
                reference=references.get(key),
                title=titles.get(key, ""),
                claims=claims,
                errata=tuple(
                    sorted(
                        (e for e in errata if e.paper == key), key=lambda e: paper_order(e.locator)
                    )
                ),
                chains=slack_ledger(claims),
                experiments=own_experiments,
                findings=findings_of(claims, own_experiments),
            )
        )
    return tuple(papers)
