"""What the crash tests tried. `python -m crash.outcomes`, run in `tests`, writes it into the docs.

The thorough tests store it below `.cache/crash`; from there it goes into a record beside this file,
and from the record into a table of `docs/internals.md`.
"""

import json
from pathlib import Path
from typing import Any

from crash.refused import FLIPPED
from crash.writers import NAMES
from recorded_table import PAGE, with_table

ROOT = Path(__file__).parents[2]
OUTCOMES = ROOT / ".cache" / "crash"
RECORD = Path(__file__).with_name("outcomes.json")
ROWS = (*NAMES, *sorted(writer.name for writer in FLIPPED))
COLUMNS = ("disturbed", "beside", "flips", "noticed", "lost")


def publishable(name: str, outcome: dict[str, Any]) -> list[Any]:
    """Store what a test tried; returns the faults that it met."""
    OUTCOMES.mkdir(parents=True, exist_ok=True)
    (OUTCOMES / f"{name}.json").write_text(json.dumps(outcome, indent=1, sort_keys=True) + "\n")
    return outcome.get("faults", [])


def collected(before: dict[str, Any]) -> dict[str, Any]:
    """All outcomes by writer and by command; of a test that did not run, those of `before`."""
    flips = _stored("flips") if (OUTCOMES / "flips.json").exists() else None
    writers = {}
    for name in ROWS:
        row = dict(before["writers"].get(name, dict.fromkeys(COLUMNS, 0)))
        stored = {"disturbed": f"alone {name}", "beside": f"beside {name}"}
        parts = {k: _stored(v) for k, v in stored.items() if (OUTCOMES / f"{v}.json").exists()}
        row |= {column: part["tried"].get(name, 0) for column, part in parts.items()}
        if flips is not None:
            row["flips"] = flips["tried"].get(name, 0)
            row["noticed"] = flips["noticed"].get(name, 0)
            parts["flips"] = flips
        faults = [fault for part in parts.values() for fault in part["faults"]]
        # What was lost in a test that did not run again stays.
        row["lost"] = sum(fault["writer"] == name for fault in faults) + (
            0 if len(parts) == 3 else row["lost"]
        )
        writers[name] = row
    kills = sorted(path.stem for path in OUTCOMES.glob("kills *.json"))
    commands = before["commands"] | {name.removeprefix("kills "): _stored(name) for name in kills}
    return {"seed": before["seed"], "writers": writers, "commands": dict(sorted(commands.items()))}


def _stored(name: str) -> dict[str, Any]:
    return json.loads((OUTCOMES / f"{name}.json").read_text())


def table(record: dict[str, Any]) -> str:
    """The record in Markdown, with sums."""
    names = COLUMNS
    writers = dict(record["writers"])
    writers["all"] = {name: sum(row[name] for row in writers.values()) for name in names}
    commands = dict(record["commands"])
    commands["all"] = {key: sum(c[key] for c in commands.values()) for key in ("tried", "lost")}
    lines = [
        "| writer | killed or refused at a call | beside a second writer | flipped bits "
        "| of these noticed | lost |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for writer, row in writers.items():
        lines.append(f"| {writer} | " + " | ".join(f"{row[name]:,}" for name in names) + " |")
    if not record["commands"]:
        return "\n".join(lines)
    lines += ["", "| command | random kills | lost |", "|---|---:|---:|"]
    lines += [f"| {name} | {row['tried']} | {row['lost']} |" for name, row in commands.items()]
    return "\n".join(lines)


def page(record: dict[str, Any]) -> str:
    """The page of the docs with the table of a record."""
    return with_table(PAGE.read_text(encoding="utf-8"), "crash tests", table(record))


if __name__ == "__main__":
    RECORD.write_text(
        json.dumps(collected(json.loads(RECORD.read_text())), indent=1, sort_keys=True) + "\n"
    )
    PAGE.write_text(page(json.loads(RECORD.read_text())), encoding="utf-8")
