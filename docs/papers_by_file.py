"""The tables in the READMEs of the papers by file, from a published record of their checks.

`python docs/papers_by_file.py REPORTS...` publishes the reports that `attlas check FOLDER
--challenge 3 --json REPORTS` wrote, and renews the tables; without reports it renews the tables
alone. A row has the words for a claim, its name in the folder, and what its check exhibited.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attlas.display.numbers import plain_number
from attlas.experiments.published import origin

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "records" / "papers_by_file.json"
ROW = re.compile(r"^\| (?P<words>[^|]+) \| `(?P<name>[a-z0-9-]+)` \|.*\|$", re.MULTILINE)
"""A row of a table: words for a claim, its name, and two cells that are rendered."""
Entry = Mapping[str, Any]


def entry_of(report: Entry) -> dict[str, Any]:
    """What is published of a report: outcome, strength, largest ratio and detection limits."""
    search, verdict = report["challenge"] or {}, report["verdict"]
    ratios = [ratio for ratio in (verdict["tightness"], search.get("ratio")) if ratio is not None]
    limits = [limit for limit in report["detection"] if limit is not None]
    return {
        "outcome": verdict["outcome"],
        "strength": report["strength"],
        "ratio": max(ratios, default=None),
        "detects": min(limits, default=None),
        "controls": [each["description"] for each in report["controls"]],
        "defects": report["defects"],
    }


def publish(files: Sequence[Path]) -> None:
    """Write the record of some files of reports."""
    reports = [each for file in files for each in json.loads(file.read_text(encoding="utf-8"))]
    claims = {report["claim"]: entry_of(report) for report in reports}
    document = {"kind": "papers by file", **origin(), "claims": claims}
    RECORD.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def published() -> Mapping[str, Entry]:
    """The published entries by claim."""
    return json.loads(RECORD.read_text(encoding="utf-8"))["claims"]


def exhibited(entry: Entry) -> str:
    """What a check exhibited, in a cell: a ratio, a detected error, or the controls it rejects.

    Examples:
        >>> exhibited({"outcome": "SUPPORTED", "ratio": 0.5, "strength": "tested"})
        '0.500 (tested)'
    """
    if entry["outcome"] == "VIOLATED":
        ratio = entry["ratio"]
        return f"up to {plain_number(ratio)} times the right side" if ratio else "in its rate"
    if entry["strength"] is None:
        return f"rejects: {'; '.join(entry['controls'])}"
    if entry["ratio"] is None:
        return f"detects an error of {plain_number(entry['detects'], 1)}"
    return f"{entry['ratio']:.3f} ({entry['strength']})"


def renewed(text: str, folder: str, entries: Mapping[str, Entry]) -> str:
    """The text of a README with the rows of its table as the entries have them."""

    def row(found: re.Match[str]) -> str:
        (entry,) = (
            entry
            for name, entry in entries.items()
            if folder.startswith(name.split("/")[0]) and name.endswith(f"/{found['name']}")
        )
        verdict = "supported" if entry["outcome"] == "SUPPORTED" else "**violated**"
        return f"| {found['words']} | `{found['name']}` | {verdict} | {exhibited(entry)} |"

    return ROW.sub(row, text)


if __name__ == "__main__":
    if sys.argv[1:]:
        publish([Path(name) for name in sys.argv[1:]])
    for page in sorted(ROOT.glob("papers/*/README.md")):
        if ROW.search(text := page.read_text(encoding="utf-8")):
            page.write_text(renewed(text, page.parent.name, published()), encoding="utf-8")
