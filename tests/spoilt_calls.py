"""Calls with spoilt arguments that were made. `python -m spoilt_calls` in `tests` writes the table.

The record beside this file holds the sums that `fuzz_examples.py --calls 1000000` prints: it makes
all possible calls, of values and, with `--records`, of records.
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
    """The record in Markdown."""
    lines = ["| functions of | functions | calls | ended otherwise |", "|---|---:|---:|---:|"]
    lines += [
        f"| {row['functions of']} | {row['functions']} | {row['calls']:,} | {row['wrong']} |"
        for row in record["rows"]
    ]
    return "\n".join(lines)


def page(text: str, record: dict[str, Any]) -> str:
    """The page with the table of a record."""
    return with_table(text, "spoilt calls", table(record))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8"), published()), "utf-8")
