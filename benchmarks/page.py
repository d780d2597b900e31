"""The page `docs/benchmarks.md`, made from the files of results: `python -m benchmarks.page FILE`.

A number stands there because a file of results has it; a test compares the page with the files.
"""

import ast
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.interleave import RESULTS
from benchmarks.mutants.judged import judgement
from benchmarks.statements.methods import HALVES, OURS

_INTRODUCTION = """\
# Benchmarks

This page is made by `python -m benchmarks.page docs/benchmarks.md` from the files in
`benchmarks/results`, and a test compares the two. `make bench` measures everything again on your
machine and rewrites the page.

In every round attlas and each of its peers work on the same inputs, one after the other. *Times
faster* is the median over the rounds of the peer's time divided by the time of attlas, with the
smallest and the largest round in brackets; a value below 1 means that attlas is slower. Everything
runs on one core unless a row says otherwise. *Difference* is how far the two results are apart.
"""
_SLOWER = """\
## Where attlas is slower

Every row of this page with a median below 1. Some of these peers compute less, for example
without error bounds: the section of the benchmark says so.
"""
_HIDDEN = frozenset(
    {"about", "case", "commit", "command", "curvature", "goal", "goal_bytes", "goal_gigabytes",
     "goal_seconds", "load", "load_average_at_the_end", "memory_goal_bytes", "met",
     "name", "peers", "seconds", "setting"}
)  # fmt: skip
"""Fields of a case that the tables of peers show, or that describe the moment of the run."""
_PRUNING = (
    "weights of the attention", "rate", "rate elsewhere", "accuracy in %", "minus AdamW",
    "removed at equal accuracy in %", "minus AdamW", "accuracy there", "50 % removed",
    "90 % removed", "all removed",
)  # fmt: skip
_TRANSPARENT = frozenset({"sides", "precisions"})
"""Fields whose name adds nothing to the names inside."""


def benchmarks_page() -> str:
    """The page of everything that was measured.

    Returns:
        Markdown, one section for each file of results.
    """
    files = sorted(RESULTS.glob("*.json"))
    stored = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}
    mutants, statements = stored.pop("mutants"), stored.pop("statements")
    sections = [_section(name, result) for name, result in stored.items()]
    return "\n".join(
        [_INTRODUCTION, _slower(stored), *sections, _statements(statements), _mutants(mutants)]
    )


def peers_of(case: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of a case: one for each peer that ran.

    Args:
        case: of a file of results.

    Yields:
        What attlas is compared with, and the row with `ratio` and `ratio_range`.
    """
    for peer, row in case.get("peers", {}).items():
        if "ratio" in row:
            yield peer, row
    if "slowdown" in case:
        low, high = case["slowdown_range"]
        turned = {"ratio": 1 / case["slowdown"], "ratio_range": [1 / high, 1 / low]}
        yield "SGD with momentum (foreach)", {**turned, "seconds": case["peer_seconds"]}
    if "limit" in case:
        turned = {"ratio": case["ratio"], "ratio_range": case["ratio_range"]}
        yield "attlas on one core", {**turned, "difference": case["difference"]}


def times_faster(row: Mapping[str, Any]) -> str:
    """The median ratio of a row with its range, to two digits.

    Args:
        row: with `ratio` and `ratio_range`.

    Returns:
        For example `43 (40 to 45)`.
    """
    low, high = row["ratio_range"]
    return f"{rounded(row['ratio'])} ({rounded(low)} to {rounded(high)})"


def rounded(value: float, digits: int = 2) -> str:
    """A number to so many digits, with commas and without an exponent where that is short.

    Args:
        value: any finite number.
        digits: that count.

    Returns:
        Text.
    """
    if isinstance(value, int) or not value:
        return f"{value:,}"
    if not 1e-3 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}"
    before = math.floor(math.log10(abs(value))) + 1
    return f"{round(value, digits - before):,.{max(digits - before, 0)}f}"


def _title(case: Mapping[str, Any]) -> str:
    return str(case.get("case", case.get("name"))).replace("|", "\\|")


def _slower(stored: Mapping[str, Any]) -> str:
    rows = [
        [_title(case), peer, times_faster(row), _difference(row), f"[{name}](#{name})"]
        for name, result in stored.items()
        for case in result["cases"]
        for peer, row in peers_of(case)
        if row["ratio"] < 1
    ]
    heads = ["case", "beside", "times faster", "difference", "benchmark"]
    return f"{_SLOWER}\n{_table(heads, rows)}\n"


def _section(name: str, result: Mapping[str, Any]) -> str:
    parts = [f"## {name}", _described(name), _environment(result)]
    compared = [(case, list(peers_of(case))) for case in result["cases"]]
    rows = [
        [_title(case), _seconds(case), peer, _seconds(row), times_faster(row), _difference(row)]
        for case, peers in compared
        for peer, row in peers
    ]
    if rows:
        heads = ["case", "attlas", "beside", "takes", "times faster", "difference"]
        parts.append(_table(heads, rows))
    grown = [case for case in result["cases"] if "exponent" in case]
    if grown:
        parts.append(
            _table(
                ["case", "time grows like the power [95 %]", "of"],
                [_growth(case) for case in grown],
            )
        )
    prunings = [case for case in result["cases"] if "removed" in case]
    if prunings:
        parts.append(f"{prunings[0]['setting']}; {prunings[0]['seeds']} seeds.")
        parts.append(_table(_PRUNING, [_pruning(case) for case in prunings]))
    alone = [
        case
        for case, peers in compared
        if not peers and "exponent" not in case and "removed" not in case
    ]
    if alone:
        parts.append("\n".join(f"- **{_title(case)}**: {_facts(case)}" for case in alone))
    return "\n\n".join(parts) + "\n"


def _described(name: str) -> str:
    """What the benchmark says of itself, and how it is run."""
    folder = RESULTS.parent
    (module,) = [p.stem for p in folder.glob("*.py") if name == p.stem] or [
        max((p.stem for p in folder.glob("*.py") if name.startswith(p.stem)), key=len)
    ]
    text = _docstring(folder / f"{module}.py")
    return f"{text}\n\nCommand: `python -m benchmarks.{module}`."


def _docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def _environment(result: Mapping[str, Any]) -> str:
    machine = result["environment"]
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items() if v)
    device = machine.get("device", "cpu").partition(": ")[2]
    where = machine["processor"] + (f", {device}" if device not in ("", "cpu") else "")
    commit = str(machine["commit"])[:10]
    code = f", code {machine['code'][:10]}" if "code" in machine else ""
    return (
        f"Measured on: {where}, threads: {machine['threads']}, commit {commit}{code}; {versions}."
    )


def _seconds(row: Mapping[str, Any]) -> str:
    return f"{rounded(row['seconds'])} s" if row.get("seconds") is not None else ""


def _difference(row: Mapping[str, Any]) -> str:
    return f"{row['difference']:.0e}" if "difference" in row else ""


def _growth(case: Mapping[str, Any]) -> list[str]:
    low, high = case["interval"]
    sizes = f"{case['size']}, from {case['sizes'][0]:,} to {case['sizes'][-1]:,}"
    return [_title(case), f"{case['exponent']:.2f} [{low:.2f}, {high:.2f}]", sizes]


def _pruning(case: Mapping[str, Any]) -> list[str]:
    """One way to train: its rates, and in per cent how accurate it is before and after pruning."""
    fields = ("accuracy", "less_adamw", "removed", "removed_less_adamw", "accuracy_there")
    numbers = [case[field] for field in fields] + list(case["accuracy_without"].values())
    cells = [f"{100 * each['mean']:.1f} ± {100 * each['half_width']:.1f}" for each in numbers]
    return [_title(case), rounded(case["rate"]), rounded(case["rate_elsewhere"]), *cells]


def _facts(case: Mapping[str, Any]) -> str:
    facts = [f"{rounded(case['seconds'], 3)} s"] if "seconds" in case else []
    facts += [case["setting"]] if "setting" in case else []
    for key, value in _flattened(case):
        facts.append(f"{key.replace('_', ' ')} {value}")
    return "; ".join(facts)


def _flattened(fields: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in fields.items():
        if key in _HIDDEN and not before:
            continue
        if isinstance(value, Mapping) and "half_width" in value:
            yield f"{before}{key}", f"{rounded(value['mean'])} ± {rounded(value['half_width'])}"
        elif isinstance(value, Mapping):
            inner = before if key in _TRANSPARENT else f"{before}{key} "
            yield from _flattened(value, inner)
        elif isinstance(value, bool):
            yield f"{before}{key}", "yes" if value else "no"
        elif isinstance(value, int | float) and "bytes" in key and value >= 1e6:
            yield f"{before}{key}".replace("_bytes", ""), f"{rounded(value / 1e6, 3)} MB"
        elif isinstance(value, int | float):
            yield f"{before}{key}", rounded(value, 3)
        elif isinstance(value, str) and value:
            yield f"{before}{key}", value
        elif isinstance(value, list) and key.endswith("range"):
            yield f"{before}{key}", " to ".join(rounded(each, 3) for each in value)


def _statements(result: Mapping[str, Any]) -> str:
    """Which public statements each search found false, and where it raised a false alarm."""
    cases = result["cases"]
    false = {half: [c for c in cases if not c["true"] and c["half"] == half] for half in HALVES}
    true = [case for case in cases if case["true"]]
    heads = ["search", *(f"found of {len(rows)} false ones, half {half}" for half, rows in
             false.items()), f"of {len(true)} true ones rejected", "other false alarms",
             "processor s each"]  # fmt: skip
    table = []
    for method in cases[0]["searches"]:
        rows = [case["searches"][method] for case in cases]
        hits = {half: [c["searches"][method]["found"] for c in false[half]] for half in HALVES}
        rejected = [c["searches"][method]["found"] or c["searches"][method]["alarms"] for c in true]
        elsewhere = sum(c["searches"][method]["alarms"] > 0 for c in cases if not c["true"])
        each = sum(row["seconds"] for row in rows) / len(rows)
        table.append([method, *(str(sum(found)) for found in hits.values()),
                      str(sum(map(bool, rejected))), str(elsewhere), rounded(each)])  # fmt: skip
    missed = [
        c["name"] for c in cases if not c["true"] and not c["searches"][OURS["auto"]]["found"]
    ]
    return "\n\n".join([
        "## statements", _docstring(RESULTS.parent / "statements" / "__main__.py"),
        "Command: `python -m benchmarks.statements`.", _environment(result), _table(heads, table),
        f"attlas did not find {', '.join(missed) or 'none'}.", "",
    ])  # fmt: skip


def _mutants(rows: Sequence[Mapping[str, Any]]) -> str:
    names = ("mutants", "test", "claim", "judged", "survived", "timeout")
    count = {name: Counter() for name in names}
    for row in rows:
        parts = row["name"].split("/")
        for place in (parts[2] if parts[0] == "src" else parts[1], "all"):
            count["mutants"][place] += 1
            count[_column_of(row)][place] += 1
    places = [*sorted(count["mutants"].keys() - {"all"}), "all"]
    table = [[place, *(f"{count[name][place]}" for name in names)] for place in places]
    heads = [
        "formulas of", "mutants", "killed by a unit test", "by a claim only",
        "no error, judged", "survived", "ended by the clock",
    ]  # fmt: skip
    first = sum(row["first"] == "killed" for row in rows)
    return (
        "## mutants\n\nOne literal, exponent, sign, index, axis, term, factor or comparison of a "
        "formula is changed\nat a time, drawn at random from all, and the unit tests and claims "
        "that enter its function are run.\nThe files in `benchmarks/mutants/survivors` say of each "
        "mutant that is judged why it is no error.\n\n"
        f"When first tried {first:,} of the {len(rows):,} were killed; for others tests have been "
        f"written since.\n\nCommand: `python -m benchmarks.mutants`.\n\n{_table(heads, table)}\n"
    )


def _column_of(row: Mapping[str, Any]) -> str:
    """Column of the table of mutants in which a row counts."""
    if row["result"] == "killed":
        return "claim" if row["claims"] else "test"
    return "judged" if judgement(row["name"]) else row["result"]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(benchmarks_page(), encoding="utf-8")
