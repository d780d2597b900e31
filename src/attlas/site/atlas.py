"""The atlas: everything the results folder holds, as HTML pages or as one file."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import attlas
from attlas.claims.claim import Claim, Erratum
from attlas.claims.verdict import CheckReport
from attlas.core.errors import UserError
from attlas.experiments.audits import stored_audits
from attlas.experiments.cell import Scale
from attlas.experiments.environment import code_hash, summarise_environment
from attlas.experiments.experiment import Experiment
from attlas.experiments.find import find_experiments
from attlas.experiments.published import not_run
from attlas.experiments.record import Record
from attlas.experiments.store import Store
from attlas.experiments.text_file import write_text_file
from attlas.experiments.verdicts import is_current, read_reports
from attlas.projects.bibliography import all_references
from attlas.projects.installed import is_of_installed_paper
from attlas.projects.project import project_of
from attlas.projects.provenance import called, repository_of
from attlas.projects.references import Reference
from attlas.site.content import (
    Atlas,
    ClaimEntry,
    ExperimentEntry,
    PaperEntry,
    Source,
    paper_order,
)
from attlas.site.experiment_page_pool import Shown, exhibits
from attlas.site.findings import answered_questions, findings_of
from attlas.site.folder import write_pages
from attlas.site.ledger import slack_ledger
from attlas.site.monitors import monitor_drawings
from attlas.site.pages import render_pages, render_single
from attlas.site.selection import chosen
from attlas.verify.registry import find_claims, find_errata

_PACKAGE = Path(attlas.__path__[0])


def write_atlas(
    results: Store | Path | str,
    out: Path | str,
    names: Sequence[str] = (),
    *,
    single: bool = False,
    published: Store | Path | str | None = None,
) -> Path:
    """Write the atlas of a results folder: pages, or one file, that need no network.

    Claims and experiments without a record are listed as not run, damaged records are named.
    The pages do not depend on the moment at which they are written: the same records give the
    same pages.

    Args:
        results: the store, or the results folder.
        out: the front page; its folder is made if missing. The pages of papers and experiments
            are written to a folder beside it that has its name without the suffix.
        names: see `attlas.site.selection.chosen`; what to show.
        single: whether all is written to `out`.
        published: further records, those of paper scale that attlas publishes; what is not among
            them is listed with what it would cost.

    Returns:
        The path of the front page.

    Raises:
        UserError: if a file cannot be written, or `out` has no suffix or is no plain file.
    """
    store = results if isinstance(results, Store) else Store(results)
    more = Store(published) if isinstance(published, Path | str) else published
    front = Path(out)
    if not single and (not front.suffix or (front.exists() and not front.is_file())):
        raise UserError(f"no folder can stand beside {front}: name a file .html, or add --single")
    shown = chosen(names)
    own = (shown.claims, shown.errata, shown.experiments)
    found = gather(store, *own, excerpt=bool(names), published=more)
    if single:
        return write_text_file(front, render_single(found), "--out")
    folder = front.with_suffix("")
    write_pages(front, folder, render_pages(found, front.name, folder.name))
    return front


def gather(
    store: Store,
    claims: Sequence[Claim] | None = None,
    errata: Sequence[Erratum] | None = None,
    experiments: Sequence[Experiment] | None = None,
    excerpt: bool = False,
    published: Store | None = None,
) -> Atlas:
    """What a results folder shows of claims, errata and experiments.

    Args:
        store: the results folder.
        claims: all claims found by scanning when None.
        errata: likewise.
        experiments: likewise.
        excerpt: whether other claims than these may have verdicts there.
        published: further records, see `write_atlas`.

    Returns:
        The atlas, papers in the order of the bibliography.
    """
    claims = find_claims() if claims is None else claims
    errata = find_errata() if errata is None else errata
    experiments = find_experiments() if experiments is None else experiments
    code = code_hash()
    met: list[Mapping[str, Any]] = []
    reports = {report.claim: (report, metadata) for report, metadata in read_reports(store)}
    entries, changed = [], []
    for claim in claims:
        report, metadata = reports.get(claim.name, (None, {}))
        outdated = report is not None and not is_current(claim, report)
        if report is not None and not outdated:
            met.append(metadata)
            report, differences = _as_declared(claim, report)
            changed += differences
        entries.append(_claim_entry(claim, report, metadata, errata, code, outdated))
    stores = (store,) if published is None else (published, store)
    shown = [Shown(e, _records(stores, e.name), source_of(e.source)) for e in experiments]
    met += [record.metadata for one in shown for record in one.records]
    drawn = _with_missing(exhibits(shown, code), published)
    monitors = monitor_drawings(store)
    warnings = [note for each in stores for note in _notes(each)]
    unknown = sorted(reports.keys() - {claim.name for claim in claims})
    warnings += changed
    audits, unread = stored_audits(store.root)
    warnings += unread
    if unknown and not excerpt:
        warnings.append(f"Verdicts of claims that are not in the atlas: {', '.join(unknown)}.")
    papers = _papers(entries, errata, drawn)
    places = [c.place[0] for c in claims] + [e.source[0] for e in experiments]
    own = bool(places) and not any(map(is_of_installed_paper, places))
    return Atlas(
        papers,
        summarise_environment(met),
        tuple(warnings),
        tuple(audits),
        monitors,
        () if excerpt or own else answered_questions(entries, drawn),
        ", ".join(paper.heading for paper in papers) if own else "",
    )


def _records(stores: Sequence[Store], name: str) -> tuple[Record, ...]:
    """The records of an experiment in all stores; of one cell that of the last store."""
    by_key = {record.key: record for each in stores for record in each.records(name)}
    return tuple(by_key.values())


def _notes(store: Store) -> list[str]:
    # Where this machine keeps its results is private.
    folder = f"{store.root}{os.sep}"
    return [note.replace(folder, "") for note in dict.fromkeys(store.notes)]


def _with_missing(
    entries: Sequence[ExperimentEntry], published: Store | None
) -> list[ExperimentEntry]:
    """The entries, with what their paper scale would cost where it was not run."""
    told = {} if published is None else not_run(published)
    return [
        entry
        if entry.scale == Scale.PAPER and entry.done == entry.total
        else replace(entry, missing=told.get(entry.experiment.name, ""))
        for entry in entries
    ]


def source_of(place: tuple[str, int]) -> Source:
    """Where an object is defined, without saying where this machine keeps it.

    Args:
        place: file and line.

    Returns:
        The file as its repository or project calls it, its name alone outside any; and for a
        file in the checkout that attlas runs from a link relative to its root, in which
        `make atlas` writes the page.

    Examples:
        >>> source_of(("/somewhere/notebook.py", 3))
        Source(path='notebook.py', line=3, link='')
    """
    name, line = called(place[0]), place[1]
    root = repository_of(Path(place[0]).parent)
    is_here = root is not None and root == repository_of(_PACKAGE)
    return Source(name, line, f"{name}#L{line}" if is_here else "")


def _claim_entry(
    claim: Claim,
    report: CheckReport | None,
    metadata: Mapping[str, Any],
    errata: Sequence[Erratum],
    code: str,
    outdated: bool,
) -> ClaimEntry:
    """A claim with its report; a report of other sources than those of now is left out."""
    own = metadata.get("source") or {"commit": metadata.get("commit"), "modified": False}
    return ClaimEntry(
        claim=claim,
        report=None if outdated else report,
        errata=tuple(e for e in errata if e.claim == claim.name),
        source=source_of(claim.place),
        other_code=report is not None and metadata.get("code", code) != code,
        commit=str(own["commit"] or "")[:12],
        modified=bool(own["modified"]),
        outdated=str(metadata.get("finished", ""))[:10] if outdated else "",
    )


def _as_declared(claim: Claim, report: CheckReport) -> tuple[CheckReport, list[str]]:
    """The report judged by what the claim expects now, and in what that differs from then."""
    declared = {control.description: control.expect for control in claim.controls}
    controls = tuple(
        replace(control, expect=declared.get(control.description, control.expect))
        for control in report.controls
    )
    again = f"check `{claim.name}` again"
    differences = []
    if report.expect is not claim.expect.outcome:
        differences.append(
            f"A verdict expected {report.expect} where its claim expects {claim.expect.outcome}: "
            f"{again}."
        )
    if controls != report.controls:
        differences.append(f"A verdict expected something else of its controls: {again}.")
    missing = declared.keys() - {control.description for control in report.controls}
    if missing:
        differences.append(
            f"A verdict has no control '{min(missing)}', which its claim declares: {again}."
        )
    return replace(report, expect=claim.expect.outcome, controls=controls), differences


def references_of(
    claims: Iterable[Claim], experiments: Iterable[Experiment]
) -> tuple[dict[str, Reference], dict[str, str]]:
    """What is known of the papers of some claims and experiments.

    Args:
        claims: of attlas or of one's own.
        experiments: likewise.

    Returns:
        References by key, of attlas and of the users' projects; titles of projects by their keys.

    Raises:
        UserError: if a project names references that cannot be read.
    """
    places = [claim.place[0] for claim in claims] + [each.source[0] for each in experiments]
    known, titles = dict(all_references()), {}
    for project in filter(None, map(project_of, sorted({Path(place).parent for place in places}))):
        known |= project.bibliography()
        titles[project.key] = project.title
    return known, titles


def _papers(
    entries: Sequence[ClaimEntry],
    errata: Sequence[Erratum],
    exhibits: Sequence[ExperimentEntry],
) -> tuple[PaperEntry, ...]:
    """The papers that have a claim, an erratum or an experiment, in order of bibliography."""
    known, titles = references_of([e.claim for e in entries], [e.experiment for e in exhibits])
    used = {e.claim.paper for e in entries}
    used |= {e.paper for e in errata} | {e.experiment.paper for e in exhibits}
    papers = []
    for key in [*(k for k in known if k in used), *sorted(used - known.keys())]:
        claims = tuple(
            sorted(
                (e for e in entries if e.claim.paper == key),
                key=lambda e: paper_order(e.claim.locator),
            )
        )
        own = tuple(e for e in exhibits if e.experiment.paper == key)
        papers.append(
            PaperEntry(
                key=key,
                reference=known.get(key),
                title=titles.get(key, ""),
                claims=claims,
                errata=tuple(
                    sorted(
                        (e for e in errata if e.paper == key), key=lambda e: paper_order(e.locator)
                    )
                ),
                chains=slack_ledger(claims),
                experiments=own,
                findings=findings_of(claims, own),
            )
        )
    return tuple(papers)
