"""Claims at seeds that nobody had tried. `python -m new_seeds`, run in `tests`, writes the table.

The record beside this file holds, for each group of papers, how many claims ran at which seeds,
which of them changed their verdict or that of a control at one of these, and which are still open.
"""

import json
from pathlib import Path
from typing import Any

from recorded_table import PAGE, with_table

RECORD = Path(__file__).with_suffix(".json")


def published() -> dict[str, Any]:
    """The record, with its `rows`."""
    return json.loads(RECORD.read_text("utf-8"))


def table(record: dict[str, Any]) -> str:
    """The record in Markdown, with sums."""
    rows = [
        (", ".join(row["papers"]), row["claims"], _span(row), len(row["changed"]), len(row["open"]))
        for row in record["rows"]
    ]
    lines = ["| papers | claims | seeds | changed | mended |", "|---|---:|---|---:|---:|"]
    lines += [
        f"| {papers} | {claims} | {seeds} | {changed} | {changed - left} |"
        for papers, claims, seeds, changed, left in rows
    ]
    changed, left = (sum(row[k] for row in rows) for k in (3, 4))
    return "\n".join([*lines, f"| all | | | {changed} | {changed - left} |"])


def _span(row: dict[str, Any]) -> str:
    first = row["first_seed"]
    return f"{first} to {first + row['seeds'] - 1}"


def page(text: str, record: dict[str, Any]) -> str:
    """The page with the table of a record."""
    return with_table(text, "new seeds", table(record))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8"), published()), "utf-8")
