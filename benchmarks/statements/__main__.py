"""Detection and false alarms on public statements: attlas, its methods alone, and general searches.

Each statement is searched by each method for two processor seconds, without compilation. The
statements are divided by the SHA-256 of their names: methods are developed on the half `open`, and
the half `closed` is for the report alone. A row that the file of results has is not computed again,
unless by `--fresh`; each names the commit that it was measured at.
"""

import argparse
import hashlib
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attlas.claims.claim import Claim
from attlas.verify.challenge import challenge
from benchmarks.interleave import environment, pin_to_one_core, read_cases, write_results
from benchmarks.statements.methods import HALVES, OURS
from benchmarks.statements.peers import PEERS, searched


def statements(half: str) -> list[tuple[bool, Claim]]:
    """The statements of a half with their truth.

    Args:
        half: `open` or `closed`, by whether the digest of the name is even.
    """
    chosen = []
    for path in sorted(Path(__file__).parent.glob("*_*.py")):
        truth = path.stem.partition("_")[0]
        if truth not in ("true", "false"):
            continue
        module = importlib.import_module(f"benchmarks.statements.{path.stem}")
        for claim in vars(module).values():
            if isinstance(claim, Claim) and Path(claim.place[0]) == path:
                even = hashlib.sha256(claim.name.encode()).digest()[-1] % 2 == 0
                if even == (half == "open"):
                    chosen.append((truth == "true", claim))
    return chosen


def _by_attlas(method: str) -> Callable[[Claim, float], dict[str, Any]]:
    def search(claim: Claim, seconds: float) -> dict[str, Any]:
        report = challenge(claim, method=method, effort=seconds / 2)
        return {"found": bool(report.violated), "alarms": 0}

    return search


def _by_peer(name: str) -> Callable[[Claim, float], dict[str, Any]]:
    def search(claim: Claim, seconds: float) -> dict[str, Any]:
        objective = searched(name, claim, seconds)
        return {"found": objective.found, "alarms": objective.alarms}

    return search


SEARCHES = {name: _by_attlas(method) for method, name in OURS.items()} | {
    name: _by_peer(name) for name in PEERS
}


def _stored() -> dict[str, dict[str, Any]]:
    """The cases of the file of results whose statements exist, by name."""
    names = {claim.name for half in HALVES for _, claim in statements(half)}
    by_name = {}
    for case in read_cases("statements"):
        commit = case.pop("commit")
        for row in case["searches"].values():
            row.setdefault("commit", commit)
        if case["name"] in names:
            by_name[case["name"]] = case
    return by_name


def main() -> None:
    """Search each statement by each method, write the file of results and print the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", choices=HALVES, help="one half alone")
    parser.add_argument("--seconds", type=float, default=2.0, help="processor seconds")
    parser.add_argument("--methods", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--fresh", action="store_true", help="compute stored rows of these again")
    options = parser.parse_args()
    by_name, commit = _stored(), environment()["commit"]
    for half in [options.half] if options.half else HALVES:
        for truth, claim in statements(half):
            case = by_name.setdefault(
                claim.name, {"name": claim.name, "true": truth, "half": half, "searches": {}}
            )
            for method in options.methods:
                if method in case["searches"] and not options.fresh:
                    continue
                started = time.process_time()
                row = SEARCHES[method](claim, options.seconds)
                row["seconds"] = round(time.process_time() - started, 2)
                row["commit"] = commit
                case["searches"][method] = row
            said = ", ".join(
                f"{method} {'found' if row['found'] else '-'}{'!' * row['alarms']}"
                for method, row in case["searches"].items()
            )
            print(f"{claim.name}: {said}", flush=True)
            write_results("statements", list(by_name.values()))


if __name__ == "__main__":
    pin_to_one_core()
    main()
