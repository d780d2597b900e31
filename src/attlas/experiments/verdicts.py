"""Verdicts on disk: the latest report of each claim, with its witnesses."""

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from attlas._files.plain_file import Damaged
from attlas.claims.claim import Claim
from attlas.claims.verdict import (
    ChallengeReport,
    CheckReport,
    ControlReport,
    Outcome,
    Provenance,
    Verdict,
)
from attlas.core.errors import UserError, refuse_misfits
from attlas.experiments.environment import environment, provenance
from attlas.experiments.pair import only_writer, read_or_set_aside, read_pair, write_pair
from attlas.experiments.store import Store, claim_place
from attlas.projects.loading import source_digest

if TYPE_CHECKING:  # few reports have one
    from attlas.claims.shrunk_witness import ShrunkWitness

FOLDER = "verdicts"
SHRUNK = "shrunk"
"""Where the arrays of a shrunk witness are, as those of a verdict are under its place."""


@refuse_misfits
def report_document(report: CheckReport) -> dict[str, Any]:
    """A report as plain JSON of the schema `check`, without witnesses; infinity and NaN are texts.

    Examples:
        >>> verdict = Verdict(Outcome.SUPPORTED, "all hold", slack=float("inf"))
        >>> report_document(CheckReport("a/b", verdict, (), Outcome.SUPPORTED))["verdict"]["slack"]
        'inf'
    """
    challenge = report.challenge
    return {
        "claim": report.claim,
        "provenance": str(report.provenance or ""),
        "expect": str(report.expect),
        "verdict": verdict_document(report.verdict),
        "strength": report.strength,
        "ratio": number_text(report.ratio),
        "nearest": number_text(report.nearest),
        "far": list(report.far),
        "controls": [
            {
                "description": control.description,
                "expect": str(control.expect),
                "as_expected": control.as_expected,
                "verdict": verdict_document(control.verdict),
            }
            for control in report.controls
        ],
        "challenge": challenge
        and {
            "ratio": number_text(challenge.ratio),
            "violated": bool(challenge.violated),
            "starts": int(challenge.starts),
            "steps": int(challenge.steps),
            "evaluations": int(challenge.evaluations),
            "method": challenge.method,
            "detection": [number_text(limit) for limit in challenge.detection],
            "stopped": challenge.stopped,
            "certified": challenge.certified,
            "verdict": verdict_document(challenge.verdict),
        },
        "detection": [number_text(limit) for limit in report.detection],
        "exponents": {name: number_text(limit) for name, limit in report.exponents.items()},
        "faults": list(report.faults),
        "near": list(report.near),
        "seconds": float(report.seconds),
        "defects": list(report.defects),
        "shrunk": None if report.shrunk is None else report.shrunk.document(),
        "proof": None if report.proof is None else report.proof.document(),
    }


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
    measured = environment() if measured_in is None else measured_in
    metadata: dict[str, Any] = {**measured, "finished": now}
    if claim is not None:
        metadata["source"] = provenance(claim.place, claim.home, report.source)
    if inputs is not None:
        metadata["inputs"] = dict(inputs)
    with only_writer(folder):  # whoever challenges the claim meanwhile waits
        if has_challenge := report.challenge is not None:
            metadata["challenged"] = {"code": metadata["code"], "finished": now}
        else:
            stored = stored_report(store, report.claim)  # sets aside what is damaged
            source = metadata.get("source", {}).get("sha256", "")
            if stored and stored[0].challenge is not None and stored[0].source == source:
                found = stored[0].challenge
                shrunk = report.shrunk or (stored[0].shrunk if found.violated else None)
                report = replace(report, challenge=found, shrunk=shrunk)
                metadata["challenged"] = stored[1]["challenged"]
        document = {"kind": "verdict", "report": report_document(report), "metadata": metadata}
        arrays = {
            f"{place}.{name}": np.asarray(value)
            for place, verdict in _verdicts(report).items()
            for name, value in (verdict.witness or {}).items()
        }
        if report.shrunk is not None:
            small = report.shrunk.arrays.items()
            arrays |= {f"{SHRUNK}.{name}": np.asarray(value) for name, value in small}
        # What was read above is not read again: nobody else writes here meanwhile.
        read_old = None if has_challenge else lambda: None
        return write_pair(folder, stem, document, arrays, store.note, read_old=read_old)


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
                if pair := read_pair(folder, slug, "verdict"):
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


def _verdicts(report: CheckReport) -> dict[str, Verdict]:
    """All verdicts of a report by the name of their place."""
    verdicts = {"verdict": report.verdict}
    verdicts |= {f"control{i}": control.verdict for i, control in enumerate(report.controls)}
    if report.challenge is not None:
        verdicts["challenge"] = report.challenge.verdict
    return verdicts


@refuse_misfits
def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain JSON of the schema `check`, without its witness.

    Examples:
        >>> verdict_document(Verdict(Outcome.VIOLATED, "no", slack=-1.0))["slack"]
        -1.0
    """
    return {
        "outcome": str(verdict.outcome),
        "reason": verdict.reason,
        "slack": number_text(verdict.slack),
        "tightness": number_text(verdict.tightness),
        "applicable": int(verdict.applicable),
        "distinct": int(verdict.distinct),
        "tried": int(verdict.tried),
        "refused_violate": int(verdict.refused_violate),
        "seed": int(verdict.seed),
        "statistics": {name: number_text(value) for name, value in verdict.statistics.items()},
        "index": None if verdict.index is None else int(verdict.index),
        "confirmed": verdict.confirmed and asdict(verdict.confirmed),
    }


def _limits(limits: Sequence[Any]) -> tuple[float | None, ...]:
    return tuple(None if limit is None else float(limit) for limit in limits)


def number_text(value: float | None) -> float | str | None:
    """JSON has no infinity and no NaN: they become texts that `float` reads.

    Examples:
        >>> number_text(0.5), number_text(float("-inf"))
        (0.5, '-inf')
    """
    if value is None:
        return None
    plain = float(value)
    return plain if math.isfinite(plain) else str(plain)


def _arrays_at(arrays: Mapping[str, np.ndarray], place: str) -> dict[str, np.ndarray]:
    """The arrays of one place of a report, by their own names."""
    split = ((*name.partition("."), array) for name, array in arrays.items())
    return {name: array for at, _, name, array in split if at == place}


def _shrunk(
    arrays: Mapping[str, np.ndarray], claim: str, stored: Mapping[str, Any] | None
) -> "ShrunkWitness | None":
    """The simpler instance of a stored report; None where its arrays are not there."""
    small = _arrays_at(arrays, SHRUNK)
    if not stored or not small:
        return None
    from attlas.claims.shrunk_witness import ShrunkWitness

    sides = (stored["left"], stored["right"], stored["reason"])
    return ShrunkWitness(
        stored.get("claim", claim), small, tuple(stored["as_drawn"]), *sides, stored["evaluations"]
    )


def _verdict(arrays: Mapping[str, np.ndarray], place: str, fields: Mapping[str, Any]) -> Verdict:
    witness = _arrays_at(arrays, place)
    # Earlier versions did not write this field, and few verdicts have one.
    if confirmed := fields.get("confirmed"):
        from attlas.claims.verdict import Confirmation

        confirmed = Confirmation(**confirmed)
    read = {name: fields[name] and float(fields[name]) for name in ("slack", "tightness")}
    all_fields = {
        **fields,
        **read,
        "outcome": Outcome(fields["outcome"]),
        "statistics": {name: float(value) for name, value in fields["statistics"].items()},
        "confirmed": confirmed,
    }
    return Verdict(**all_fields, witness=witness or None)


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


def report_of(
    document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[CheckReport, dict[str, Any]]:
    """The report and the metadata of a stored verdict.

    Args:
        document: `report`, as `report_document` gives it, and `metadata`.
        arrays: its witnesses, by place and name; may be empty.

    Raises:
        Damaged: if it contradicts itself.
        UserError: if it is no report.

    Examples:
        >>> report = CheckReport("a/b", Verdict(Outcome.SUPPORTED, "yes"), (), Outcome.SUPPORTED)
        >>> document = {"report": report_document(report), "metadata": {}}
        >>> report_of(document, {})[0] == report
        True
    """
    try:
        return _report_of(document, arrays)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        if line := _no_report(document, arrays):
            raise UserError(f"{line}: give a stored verdict") from error
        raise


def _no_report(document: Any, arrays: Any) -> str:
    """Why a document is no report, in one line; empty if it is one."""
    from attlas.experiments.schema import first_violation

    parts = document if isinstance(document, Mapping) else {}
    metadata = parts.get("metadata")
    tables = (metadata, isinstance(metadata, Mapping) and metadata.get("source", {}), arrays)
    if not all(isinstance(table, Mapping) for table in tables):
        return "metadata, their source or the witnesses are no mapping"
    broken = first_violation([parts.get("report")], "check")
    return broken and f"the document is no report ({broken})"


def _report_of(
    document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[CheckReport, dict[str, Any]]:
    stored = document["report"]
    verdict = partial(_verdict, arrays)
    controls = tuple(
        ControlReport(c["description"], Outcome(c["expect"]), verdict(f"control{i}", c["verdict"]))
        for i, c in enumerate(stored["controls"])
    )
    for c, control in zip(stored["controls"], controls, strict=True):
        if c["as_expected"] is not control.as_expected:
            raise Damaged(f"contradicts itself on '{control.description}'")
    search = stored["challenge"]
    challenge = search and ChallengeReport(
        ratio=search["ratio"] and float(search["ratio"]),
        violated=search["violated"],
        starts=search["starts"],
        steps=search["steps"],
        verdict=verdict("challenge", search["verdict"]),
        # Earlier versions did not write these fields.
        evaluations=search.get("evaluations", 0),
        method=search.get("method", "moves"),
        detection=_limits(search.get("detection", ())),
        stopped=search.get("stopped", ""),
        certified=search.get("certified", ""),
    )
    report = CheckReport(
        stored["claim"],
        verdict("verdict", stored["verdict"]),
        controls,
        Outcome(stored["expect"]),
        challenge,
        _limits(stored["detection"]),
        tuple(stored["faults"]),
        stored["seconds"],
        source=document["metadata"].get("source", {}).get("sha256", ""),
        exponents={k: v if v is None else float(v) for k, v in stored.get("exponents", {}).items()},
        nearest=_limits([stored.get("nearest")])[0],
        far=tuple(stored.get("far", ())),
        near=tuple(stored.get("near", ())),
        provenance=Provenance(stored["provenance"]) if stored.get("provenance") else None,
        shrunk=_shrunk(arrays, stored["claim"], stored.get("shrunk")),
    )
    return report, dict(document["metadata"])
