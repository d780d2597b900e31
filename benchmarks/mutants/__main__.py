"""Run mutants: `python -m benchmarks.mutants [--sample N | --all | --only TEXT]`."""

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from benchmarks.mutants.entered import Entry, functions_entered, renew
from benchmarks.mutants.judged import judgement
from benchmarks.mutants.operators import ROOT, Mutant, digest, functions, mutants_of, sources
from benchmarks.mutants.table import Row, read_table, summary, write_table


def main() -> int:
    """Run them and write the table; exit 1 when a survivor is not judged."""
    asked = _arguments()
    count = sys.maxsize if asked.all or asked.only else asked.sample
    chosen = [m for m in drawn(count, asked.seed) if asked.only in m.name]
    if asked.survivors:
        alive = {
            row.name for row in read_table() if row.result != "killed" and not judgement(row.name)
        }
        chosen = [m for m in drawn(sys.maxsize, 0) if m.name in alive and asked.only in m.name]
    if not chosen:
        print("mutants: no mutant has this in its name", file=sys.stderr)
        return 2
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    from benchmarks.mutants.trial import load_libraries

    load_libraries()
    entering = functions_entered(renew(asked.processes))
    existing = {mutant.name for mutant in drawn(sys.maxsize, 0)}
    table = {row.name: row for row in read_table() if row.current() and row.name in existing}
    if not asked.survivors and not asked.again:
        chosen = [mutant for mutant in chosen if mutant.name not in table]
    begun = time.monotonic()
    for row in _rows(chosen, entering, asked.processes, asked.minutes):
        before = table.get(row.name)
        table[row.name] = replace(row, first=before.first if before else row.result)
        print(f"{row.result}: {row.name}: {row.change}: {row.by}", flush=True)
        if time.monotonic() - begun > 10:
            write_table(table.values())
            begun = time.monotonic()
    wrong = _fail_anyway(table.values(), asked.processes)
    for name in wrong:
        print(f"{name} fails without any change: mutants that it killed are dropped")
    table = {name: row for name, row in table.items() if row.by not in wrong}
    write_table(table.values())
    print(summary(table.values()))
    return int(any(row.result != "killed" and not judgement(row.name) for row in table.values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=500, help="how many are drawn from all")
    parser.add_argument("--all", action="store_true", help="all mutants: days of a processor")
    parser.add_argument(
        "--survivors", action="store_true", help="survivors that nobody has judged, again"
    )
    parser.add_argument("--again", action="store_true", help="also those that have been tried")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="TEXT", help="all whose name has it")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none later")
    return parser.parse_args()


def drawn(count: int, seed: int) -> list[Mutant]:
    """A number of mutants drawn from all of them.

    The order is that of hashes of the names: a larger number extends a smaller one, and a change
    elsewhere in the code leaves the order as it is.
    """
    mutants = [mutant for file in sources() for mutant in mutants_of(file)]
    return sorted(mutants, key=lambda m: sha256(f"{seed}:{m.name}".encode()).digest())[:count]


def _rows(
    chosen: Sequence[Mutant],
    entering: Mapping[tuple[str, str], Sequence[Entry]],
    processes: int,
    minutes: float,
) -> Iterator[Row]:
    from benchmarks.mutants.trial import attempt, run_children, trial_of

    jobs = []
    for mutant in chosen:
        entries = entering.get((mutant.file, mutant.function), ())
        jobs.append((trial_of(mutant, entries), attempt))
    for trial, outcome in run_children(jobs, processes, minutes):
        mutant = trial.mutant
        hashed = digest(functions(ROOT / mutant.file)[mutant.function])
        yield Row(mutant.name, hashed, mutant.line(), *outcome)


def _fail_anyway(rows: Iterable[Row], processes: int) -> set[str]:
    """Tests and claims that killed a mutant and fail without any change too."""
    from benchmarks.mutants.trial import fail_anyway, run_children

    killers = sorted({row.by for row in rows if row.result == "killed" and row.by})
    jobs = [(killers[k : k + 20], fail_anyway) for k in range(0, len(killers), 20)]
    wrong: set[str] = set()
    for names, outcome in run_children(jobs, processes):
        if isinstance(outcome, list):
            wrong |= set(outcome)
        else:
            print(f"not seen to pass without a change ({outcome.by}): {', '.join(names)}")
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
