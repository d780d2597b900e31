"""A report of a check as plain JSON and named arrays, and back."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas._files.plain_file import Damaged
from attlas.claims.verdict import (
    ChallengeReport,
    CheckReport,
    ControlReport,
    Outcome,
    Provenance,
    Verdict,
)
from attlas.core.errors import UserError, refuse_misfits

if TYPE_CHECKING:  # few reports have one
    from attlas.claims.shrunk_witness import ShrunkWitness

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


@refuse_misfits
def report_arrays(report: CheckReport) -> dict[str, np.ndarray]:
    """The witnesses of a report, each array named by its place in the report and its own name.

    Examples:
        >>> verdict = Verdict(Outcome.VIOLATED, "no", witness={"x": np.array([1.0])})
        >>> report_arrays(CheckReport("a/b", verdict, (), Outcome.SUPPORTED))
        {'verdict.x': array([1.])}
    """
    verdicts = {"verdict": report.verdict}
    verdicts |= {f"control{i}": control.verdict for i, control in enumerate(report.controls)}
    if report.challenge is not None:
        verdicts["challenge"] = report.challenge.verdict
    instances = {place: verdict.witness or {} for place, verdict in verdicts.items()}
    if report.shrunk is not None:
        instances[SHRUNK] = report.shrunk.arrays
    return {
        f"{place}.{name}": np.asarray(value)
        for place, instance in instances.items()
        for name, value in instance.items()
    }


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
