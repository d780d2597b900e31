"""The table of what became of the mutants: `benchmarks/results/mutants.json`."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.mutants.judged import judgement
from benchmarks.mutants.operators import ROOT, digest, functions

TABLE = Path(__file__).parents[1] / "results" / "mutants.json"
RESULTS = ("killed", "survived", "timeout", "failed")


@dataclass(frozen=True)
class Row:
    """What became of a mutant.

    Attributes:
        name: file, function, operator and position.
        digest: of the function; one with another is out of date.
        change: the changed statement.
        result: "killed", "survived", "timeout", or "failed" where it could not be tried.
        by: the test or claim that killed it.
        claims: number of claims checked.
        complete: whether all tests and claims ran that enter the function.
        first: the result of its first trial. A test that is written for a survivor changes the
            result and not this, so that these alone estimate the share of all mutants.
    """

    name: str
    digest: str
    change: str
    result: str
    by: str = ""
    claims: int = 0
    complete: bool = True
    first: str = ""

    @property
    def file(self) -> str:
        """The file of the function."""
        return self.name.partition(":")[0]

    @property
    def by_claim(self) -> bool:
        """Whether a claim killed it, no test."""
        return self.result == "killed" and self.claims > 0

    def current(self) -> bool:
        """Whether the function is the one that was tried."""
        path, function = ROOT / self.file, self.name.split(":")[1]
        return path.is_file() and self.digest in {
            digest(node) for name, node in functions(path).items() if name == function
        }


def read_table() -> list[Row]:
    """The rows of the last runs."""
    stored = json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else []
    return [Row(**row) for row in stored]


def write_table(rows: Iterable[Row]) -> None:
    """Write the table, in the order of the names."""
    listed = [asdict(row) for row in sorted(rows, key=lambda row: row.name)]
    lines = ",\n".join(json.dumps(row) for row in listed)
    TABLE.write_text(f"[\n{lines}\n]\n", "utf-8")


def summary(rows: Iterable[Row]) -> str:
    """Counts of the results, of the killed by what, of the survivors how many are judged."""
    rows = list(rows)
    count, first = Counter(row.result for row in rows), Counter(row.first for row in rows)
    claims = sum(row.by_claim for row in rows)
    judged = sum(row.result != "killed" and bool(judgement(row.name)) for row in rows)
    lines = [f"{name}: {count[name]} of {len(rows)}" for name in RESULTS if count[name]]
    lines.append(f"of the killed {claims} by claims, the others by unit tests")
    lines.append(f"of the others {judged} are judged to be no errors")
    return "\n".join([*lines, f"killed when first tried: {first['killed']} of {len(rows)}"])
