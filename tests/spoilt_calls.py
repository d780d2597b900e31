"""Calls with spoilt arguments that were made. `python -m spoilt_calls` in `tests` writes the table.

The record beside this file holds what `fuzz_examples.py --calls 1000000` prints, which makes all
possible calls: of values, with `--records` of records, and with `--models` of models. Each line of
the table is one run, whose output becomes a part of the record by

    python -m spoilt_calls values=FILE records=FILE models=FILE
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recorded_table import PAGE, with_table

RECORD = Path(__file__).with_suffix(".json")
ARGUMENTS = {
    "values": "numbers, arrays and texts of mathematics, data sets, solvers, training and readers "
    "of models",
    "records": "records, data sets and reports of certificates, claims, experiments, projects, "
    "site, testing and verify",
    "models": "models and their parts, of kernels, measures, training and readers of models",
}
"""What is spoilt in each run."""


def published() -> dict[str, Any]:
    """The record: what each run printed."""
    return json.loads(RECORD.read_text("utf-8"))


def table(record: Mapping[str, Any]) -> str:
    """The record in Markdown."""
    lines = ["| spoilt | functions | calls | ended otherwise |", "|---|---:|---:|---:|"]
    lines += [
        f"| {what} | {run['spoilt']} | {run['tried']:,} | {len(run['wrong'])} |"
        for name, what in ARGUMENTS.items()
        if (run := record.get(name))
    ]
    return "\n".join(lines)


def page(text: str, record: Mapping[str, Any]) -> str:
    """The page with the table of a record."""
    return with_table(text, "spoilt calls", table(record))


def main(runs: list[str]) -> None:
    """Take over the output of runs, and write the table."""
    record = published()
    for run in runs:
        name, _, file = run.partition("=")
        record[name] = json.loads(Path(file).read_text("utf-8"))
    RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    PAGE.write_text(page(PAGE.read_text("utf-8"), record), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
