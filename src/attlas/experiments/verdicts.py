"""Verdicts on disk: the latest report of each claim, with its witnesses."""

import datetime
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from attlas._files.plain_file import Damaged
from attlas.claims.claim import Claim
from attlas.claims.verdict import CheckReport
from attlas.experiments.environment import environment, provenance
from attlas.experiments.pair import only_writer, read_or_set_aside, read_pair, write_pair
from attlas.experiments.report_document import report_arrays, report_document, report_of
from attlas.experiments.store import Store, claim_place
from attlas.projects.loading import source_digest

FOLDER = "verdicts"


def write_report(
    store: Store,
    report: CheckReport,
    claim: Claim | None = None,
    measured_in: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> Path:
    """Write a claim's report to `<root>/verdicts/<paper>/<claim>.json`, replacing an older one.

    A check without a challenge keeps the stored challenge and its code, unless the claim has
    changed since.

    Args:
        claim: the claim; its file, line, sources and commit are stored with the report.
        measured_in: environment of the process that checked; by default this one's.
        inputs: what the report follows from, see `attlas.experiments.unchanged`.

    Raises:
        UserError: if the folder cannot be written or the disk is full.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    folder, stem = claim_place(store.root / FOLDER, report.claim)
    metadata: dict[str, Any] = {
        **(environment() if measured_in is None else measured_in),
        "finished": now,
    }
    if claim is not None:
        metadata["source"] = provenance(claim.place, claim.home, report.source)
    if inputs is not None:
        metadata["inputs"] = dict(inputs)
    with only_writer(folder):  # whoever challenges the claim meanwhile waits
        if report.challenge is not None:
            metadata["challenged"] = {"code": metadata["code"], "finished": now}
            read_old = None
        else:
            stored = stored_report(store, report.claim)  # sets aside what is damaged
            source = metadata.get("source", {}).get("sha256", "")
            if stored is not None and stored[0].source == source:
                report = _with_challenge_of(stored[0], report)
            if stored is not None and report.challenge is not None:
                metadata["challenged"] = stored[1]["challenged"]
            read_old = _already_read
        document = {"kind": "verdict", "report": report_document(report), "metadata": metadata}
        arrays = report_arrays(report)
        return write_pair(folder, stem, document, arrays, store.note, read_old=read_old)


def _already_read() -> None:
    """The old report, which need not be read again: nobody else writes here meanwhile."""


def _with_challenge_of(stored: CheckReport, report: CheckReport) -> CheckReport:
    """A report with the challenge of an older one, and its simpler witness if it violated."""
    if stored.challenge is None:
        return report
    shrunk = report.shrunk or (stored.shrunk if stored.challenge.violated else None)
    return replace(report, challenge=stored.challenge, shrunk=shrunk)


def stored_report(store: Store, claim: str) -> tuple[CheckReport, dict[str, Any]] | None:
    """The stored report of a claim by its name, with its metadata; None where there is none.

    One that cannot be read is set aside, with its challenge.

    Raises:
        UserError: if it was written under another schema, or cannot be moved.

    Examples:
        >>> stored_report(Store("never-made"), "mine/lemma") is None
        True
    """
    folder, stem = claim_place(store.root / FOLDER, claim)
    consequence = "if it had a challenge, challenge the claim again"

    def read() -> tuple[CheckReport, dict[str, Any]] | None:
        pair = read_pair(folder, stem, "verdict")
        return pair and _report(folder, stem, *pair)

    return read_or_set_aside(folder, stem, read, store.note, consequence=consequence)


def read_reports(store: Store) -> tuple[tuple[CheckReport, dict[str, Any]], ...]:
    """The latest good report of each claim, with its environment and the proof of its sources.

    Damaged reports are named in `store.notes` and skipped, not moved. The environment has code
    hash, versions, commit, device and time.

    Raises:
        UserError: if one was written under another schema.
    """
    reports = []
    for paper in store.names(FOLDER):
        for slug in store.keys(f"{FOLDER}/{paper}"):
            folder = store.root / FOLDER / paper
            try:
                pair = read_pair(folder, slug, "verdict")
                if pair is not None:
                    reports.append(_report(folder, slug, *pair))
            except Damaged as damage:
                store.note(f"{damage}: ignored; check the claim again to replace it")
    from attlas.experiments.proofs import read_proofs, with_proof

    proofs = read_proofs(store, [report.claim for report, _ in reports])
    return tuple((with_proof(report, proofs), metadata) for report, metadata in reports)


@runtime_checkable
class Defined(Protocol):
    """A claim, or what a source says of one."""

    @property
    def place(self) -> tuple[str, int]:
        """File and line of the definition."""
        ...

    @property
    def home(self) -> str:
        """The file or module that was loaded; empty if none was."""
        ...


def is_current(claim: Defined, report: CheckReport) -> bool:
    """Whether a report is of the claim's current sources; False if it does not name its sources."""
    return bool(report.source) and report.source == source_digest(claim.place[0], claim.home)


def _report(
    folder: Path, slug: str, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[CheckReport, dict[str, Any]]:
    claim = document["report"]["claim"]
    if claim_place(folder.parent, claim) != (folder, slug):
        raise Damaged(f"{folder / slug}.json was renamed (it is of {claim})")
    try:
        return report_of(document, arrays)
    except Damaged as damage:
        raise Damaged(f"{folder / slug}.json {damage}") from None
