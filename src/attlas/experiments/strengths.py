"""The published strengths: how sharply each claim of the installed papers was tested.

They are `strengths.json` beside the published records: of each claim its provenance, the outcome of
its last check, its strength and its best ratio. The verdicts that they are from are beside them.
"""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attlas.claims.claim import provenance_of
from attlas.claims.verdict import Outcome, Provenance, Strength, by_provenance
from attlas.core.errors import UserError, refuse_unreadable
from attlas.experiments.environment import code_hash
from attlas.experiments.published import origin
from attlas.experiments.published_verdicts import write_verdicts
from attlas.experiments.report_document import number_text
from attlas.experiments.store import PUBLISHED, Store
from attlas.experiments.text_file import write_text_file
from attlas.experiments.verdicts import is_current, read_reports
from attlas.verify.registry import find_claims

STRENGTHS = "strengths.json"


def publish_strengths(results: Path | str, folder: Path | str = PUBLISHED) -> Path:
    """Write the strengths of all claims and their verdicts, from those of a results folder.

    Args:
        results: a results folder with a verdict of each claim as it and attlas are now.
        folder: target; the published records by default.

    Raises:
        UserError: names the claims without a verdict of their sources and those of attlas.
    """
    code = code_hash()
    verdicts = {
        report.claim: (report, metadata)
        for report, metadata in read_reports(Store(results))
        if metadata["code"] == code
    }
    claims = find_claims()
    current = {c.name: verdicts[c.name][0] for c in claims
               if c.name in verdicts and is_current(c, verdicts[c.name][0])}  # fmt: skip
    if missing := [claim.name for claim in claims if claim.name not in current]:
        named = "" if len(missing) == len(claims) else " " + " ".join(missing)
        raise UserError(f"{len(missing)} claims have no current verdict: attlas check{named}")
    entries = {
        claim.name: {
            "provenance": provenance_of(claim),
            "outcome": current[claim.name].verdict.outcome,
            "strength": current[claim.name].strength,
            "ratio": current[claim.name].ratio,
            "attacked": current[claim.name].challenge is not None,
            "nearest": number_text(current[claim.name].nearest),
            "far": list(current[claim.name].far),
        }
        for claim in claims
    }
    head = json.dumps({"kind": "strengths", **origin()}, indent=1, sort_keys=True)
    rows = [f"  {json.dumps(k)}: {json.dumps(entries[k], sort_keys=True)}" for k in sorted(entries)]
    text = head.removesuffix("\n}") + ',\n "claims": {\n' + ",\n".join(rows) + "\n }\n}\n"
    path = Store(folder).root / STRENGTHS
    write_text_file(path, text, "--out")
    write_verdicts([verdicts[name] for name in current], path.parent)
    return path


def published_strengths(folder: Path | str = PUBLISHED) -> Mapping[str, Mapping[str, Any]]:
    """The published entries by claim.

    They have `provenance`, `outcome`, `strength`, `ratio`, `attacked`, `nearest` (by which factor
    the nearest control exceeds its bound) and `far` (controls that are needlessly far from it).
    """
    text = (Store(folder).root / STRENGTHS).read_text(encoding="utf-8")
    return json.loads(text)["claims"]


@refuse_unreadable
def strengths_table(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """How many supported claims of each provenance have each strength, as a table in Markdown.

    Examples:
        >>> one = {"provenance": "own", "outcome": "SUPPORTED", "strength": "tested"}
        >>> print(strengths_table({"a/b": one, "a/c": {**one, "strength": None}}))
        | provenance | proved | attained | tested | consistent | vacuous | no constant |
        | --- | --- | --- | --- | --- | --- | --- |
        | own | 0 | 0 | 1 | 0 | 0 | 1 |
    """
    for name, entry in entries.items():
        if lacking := {"provenance", "outcome", "strength"} - entry.keys():
            raise UserError(f"the entry of {name} has no {min(lacking)}: give all three of it")
    supported = [entry for entry in entries.values() if entry["outcome"] == Outcome.SUPPORTED]
    if wrong := {str(entry["provenance"]) for entry in supported} - {*map(str, Provenance)}:
        raise UserError(f"provenance is {min(wrong)!r:.40}: give one of {', '.join(Provenance)}")
    groups = by_provenance(
        (Provenance(entry["provenance"]), entry["strength"]) for entry in supported
    )
    words = {**{level: level.value for level in Strength}, None: "no constant"}
    rows = [["provenance", *words.values()], ["---"] * (len(words) + 1)]
    for provenance, levels in groups.items():
        numbers = Counter(levels)
        rows.append([provenance, *(str(numbers[level]) for level in words)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
