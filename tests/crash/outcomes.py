"""What the crash tests tried. `python -m crash.outcomes`, run in `tests`, writes it into the docs.

The thorough tests store it below `.cache/crash`; from there it goes into a record beside this file,
and from the record into a table of `docs/internals.md`.
"""

import json
import re
from pathlib import Path
from typing import Any

from crash.writers import NAMES

ROOT = Path(__file__).parents[2]
OUTCOMES = ROOT / ".cache" / "crash"
RECORD = Path(__file__).with_name("outcomes.json")
PAGE = ROOT / "docs" / "internals.md"
_BEGIN, _END = "<!-- crash tests: begin -->", "<!-- crash tests: end -->"


def publishable(name: str, outcome: dict[str, Any]) -> list[Any]:
    """Store what a test tried; returns the faults that it met."""
    OUTCOMES.mkdir(parents=True, exist_ok=True)
    (OUTCOMES / f"{name}.json").write_text(json.dumps(outcome, indent=1, sort_keys=True) + "\n")
    return outcome.get("faults", [])


def collected() -> dict[str, Any]:
    """All outcomes as one record, by writer and by command."""
    flips = _stored("flips")
    writers = {}
    for name in NAMES:
        parts = [_stored(f"{way} {name}") for way in ("alone", "beside")]
        faults = [fault for part in (*parts, flips) for fault in part["faults"]]
        writers[name] = {
            "disturbed": parts[0]["tried"].get(name, 0),
            "beside": parts[1]["tried"].get(name, 0),
            "flips": flips["tried"].get(name, 0),
            "noticed": flips["noticed"].get(name, 0),
            "lost": sum(fault["writer"] == name for fault in faults),
        }
    kills = sorted(path.stem for path in OUTCOMES.glob("kills *.json"))
    commands = {name.removeprefix("kills "): _stored(name) for name in kills}
    return {"seed": flips["seed"], "writers": writers, "commands": commands}


def _stored(name: str) -> dict[str, Any]:
    return json.loads((OUTCOMES / f"{name}.json").read_text())


def table(record: dict[str, Any]) -> str:
    """The record in Markdown, with sums."""
    names = ("disturbed", "beside", "flips", "noticed", "lost")
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
    text = PAGE.read_text(encoding="utf-8")
    between = re.compile(f"{_BEGIN}.*{_END}", re.DOTALL)
    return between.sub(f"{_BEGIN}\n\n{table(record)}\n\n{_END}", text)


if __name__ == "__main__":
    RECORD.write_text(json.dumps(collected(), indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page(json.loads(RECORD.read_text())), encoding="utf-8")
