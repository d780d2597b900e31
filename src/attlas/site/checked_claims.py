"""The claims of an atlas with their last checks: the folder's own, else the published ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import attlas
from attlas.claims.claim import Claim, Erratum
from attlas.claims.verdict import CheckReport
from attlas.experiments.environment import code_hash, path_in_repository, repository_of
from attlas.experiments.proofs import FOLDER as PROOFS
from attlas.experiments.proofs import read_proofs, with_proof
from attlas.experiments.published_verdicts import published_verdicts
from attlas.experiments.store import Store
from attlas.experiments.verdicts import is_current, read_reports
from attlas.projects.installed import is_of_installed_paper
from attlas.site.claim_entry import ClaimEntry, Publication, Source

_PACKAGE = Path(attlas.__path__[0])
Checked = tuple[CheckReport, Mapping[str, Any]]
"""A report with its metadata."""


class CheckedClaims(NamedTuple):
    """Claims with their last checks.

    Attributes:
        metadata: the environments of the checks that are shown.
        changed: warnings on claims whose expectations have changed since.
        unknown: names of claims of the results folder that are not among the claims.
    """

    entries: tuple[ClaimEntry, ...]
    metadata: tuple[Mapping[str, Any], ...]
    changed: tuple[str, ...]
    unknown: tuple[str, ...]


def checked_claims(
    store: Store, claims: Sequence[Claim], errata: Sequence[Erratum], published: Store | None = None
) -> CheckedClaims:
    """Claims with their last checks; a check of earlier sources is dated and not shown.

    Args:
        published: where the published verdicts are. They are of installed papers, and shown where
            the store has no verdict of the present sources.

    Examples:
        >>> checked_claims(Store("never-made"), (), ()).entries
        ()
    """
    stored = {pair[0].claim: pair for pair in read_reports(store)}
    further = {} if published is None else _with_proofs_of(store, published_verdicts(published))
    code = code_hash()
    entries, metadata, changed = [], [], []
    for claim in claims:
        other = further.get(claim.name) if is_of_installed_paper(claim.place[0]) else None
        pair = _current(claim, stored.get(claim.name), other)
        entry = _claim_entry(claim, pair, errata, code)
        if pair is not None and pair is other and entry.report is not None:
            entry = replace(entry, published=Publication.of(pair[1]))
        if pair is not None and entry.report is not None:
            metadata.append(pair[1])
            report, differences = _as_declared(claim, entry.report)
            entry = replace(entry, report=report)
            changed += differences
        entries.append(entry)
    unknown = sorted(stored.keys() - {claim.name for claim in claims})
    return CheckedClaims(tuple(entries), tuple(metadata), tuple(changed), tuple(unknown))


def _with_proofs_of(store: Store, published: Iterable[Checked]) -> dict[str, Checked]:
    """Published checks by claim; a proof of their sources in the store counts for them too."""
    checks = {pair[0].claim: pair for pair in published}
    has_proofs = (store.root / PROOFS).is_dir()
    proofs = read_proofs(store, checks) if has_proofs else {}
    return {name: (with_proof(report, proofs), m) for name, (report, m) in checks.items()}


def source_of(place: tuple[str, int]) -> Source:
    """Where an object is defined (file and line), without this machine's private paths.

    Returns:
        The path within its repository or project, or the bare name; with a link relative to the
        root of the checkout if attlas runs from it, where `make atlas` writes the page.

    Examples:
        >>> source_of(("/somewhere/notebook.py", 3))
        Source(path='notebook.py', line=3, link='')
    """
    name, line = path_in_repository(place[0]), place[1]
    root = repository_of(Path(place[0]).parent)
    is_here = root is not None and root == repository_of(_PACKAGE)
    return Source(name, line, f"{name}#L{line}" if is_here else "")


def _current(claim: Claim, own: Checked | None, other: Checked | None) -> Checked | None:
    """The check to show: the own one if it is of the present sources, else the other one if so."""
    if own is not None and is_current(claim, own[0]):
        return own
    if other is not None and is_current(claim, other[0]):
        return other
    return own or other


def _claim_entry(
    claim: Claim, checked: Checked | None, errata: Sequence[Erratum], code: str
) -> ClaimEntry:
    """A claim with its report, unless the claim's sources have changed since."""
    report, metadata = checked or (None, {})
    repository = metadata.get("source") or {"commit": metadata.get("commit"), "modified": False}
    outdated = report is not None and not is_current(claim, report)
    return ClaimEntry(
        claim=claim,
        report=None if outdated else report,
        errata=tuple(e for e in errata if e.claim == claim.name),
        source=source_of(claim.place),
        other_code=report is not None and metadata.get("code", code) != code,
        commit=str(repository["commit"] or "")[:12],
        modified=bool(repository["modified"]),
        outdated=str(metadata.get("finished", ""))[:10] if outdated else "",
    )


def _as_declared(claim: Claim, report: CheckReport) -> tuple[CheckReport, list[str]]:
    """The report judged by the claim's current expectations, and warnings if they have changed."""
    declared = {control.description: control.expect for control in claim.controls}
    controls = tuple(
        replace(control, expect=declared.get(control.description, control.expect))
        for control in report.controls
    )
    again = f"check `{claim.name}` again"
    differences = []
    if report.expect is not claim.expect.outcome:
        differences.append(
            f"A stored verdict expected {report.expect}, its claim now {claim.expect.outcome}: "
            f"{again}."
        )
    if controls != report.controls:
        differences.append(f"A stored verdict expected other outcomes of its controls: {again}.")
    missing = declared.keys() - {control.description for control in report.controls}
    if missing:
        differences.append(
            f"A stored verdict lacks the control '{min(missing)}' of its claim: {again}."
        )
    return replace(report, expect=claim.expect.outcome, controls=controls), differences
