"""Run mutants: `python -m benchmarks.mutants [--sample N | --all] [--only TEXT]`."""

import argparse
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from benchmarks.mutants.imports import claim_modules_of, unit_tests
from benchmarks.mutants.operators import ROOT, Mutant, digest, functions, mutants_of, sources
from benchmarks.mutants.survivors import JUDGED
from benchmarks.mutants.table import Row, read_table, summary, write_table


def main() -> int:
    """Run them and write the table; exit 1 when a survivor is not judged."""
    asked = _arguments()
    chosen = [
        m for m in drawn(asked.sample, asked.seed, everything=asked.all) if asked.only in m.name
    ]
    if asked.survivors:
        alive = {row.name for row in read_table() if row.result != "killed"}
        chosen = [m for file in sources() for m in mutants_of(file) if m.name in alive]
    if not chosen:
        print("mutants: no mutant has this in its name", file=sys.stderr)
        return 2
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    from benchmarks.mutants.trial import load_libraries

    load_libraries()
    table = {row.name: row for row in read_table() if row.current()}
    if not asked.survivors:
        chosen = [mutant for mutant in chosen if mutant.name not in table]
    for row in _rows(chosen, asked.processes, asked.minutes):
        before = table.get(row.name)
        table[row.name] = replace(row, first=before.first if before else row.result)
        print(f"{row.result}: {row.name}: {row.change}: {row.by}", flush=True)
        write_table(table.values())
    wrong = _fail_anyway(table.values())
    for name in wrong:
        print(f"{name} fails without any change: mutants that it killed are dropped")
    table = {name: row for name, row in table.items() if row.by not in wrong}
    write_table(table.values())
    print(summary(table.values()))
    return int(any(row.result == "survived" and row.name not in JUDGED for row in table.values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=1, help="mutants drawn for each file")
    parser.add_argument("--all", action="store_true", help="all mutants: days of a processor")
    parser.add_argument("--survivors", action="store_true", help="those that survived, again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose name has it")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none later")
    return parser.parse_args()


def drawn(count: int, seed: int, *, everything: bool = False) -> list[Mutant]:
    """Mutants of every file, in random order, so that the first of them are a fair sample."""
    chosen = []
    for file in sources():
        made = mutants_of(file)
        draw = random.Random(f"{seed}:{file.relative_to(ROOT)}")
        chosen += made if everything else draw.sample(made, min(count, len(made)))
    random.Random(seed).shuffle(chosen)
    return chosen


def _rows(chosen: Sequence[Mutant], processes: int, minutes: float) -> Iterator[Row]:
    from benchmarks.mutants.trial import Child, Trial

    waiting, running, begun = list(chosen), [], time.monotonic()
    while waiting or running:
        if time.monotonic() - begun > 60 * minutes:
            waiting.clear()
        while waiting and len(running) < processes:
            mutant = waiting.pop(0)
            trial = Trial(mutant, unit_tests(mutant.file), claim_modules_of(mutant.file))
            running.append(Child(trial))
        time.sleep(0.1)
        for child in tuple(running):
            if outcome := child.outcome():
                running.remove(child)
                mutant = child.trial.mutant
                assert mutant is not None
                hashed = digest(functions(ROOT / mutant.file)[mutant.function])
                yield Row(mutant.name, hashed, mutant.line(), *outcome)


def _fail_anyway(rows: Iterable[Row]) -> set[str]:
    """Tests and claims that killed a mutant and fail without any change too."""
    from benchmarks.mutants.trial import Child, Trial

    killers = sorted({row.by for row in rows if row.result == "killed" and row.by})
    wrong: set[str] = set()
    for start in range(0, len(killers), 20):
        names = killers[start : start + 20]
        tests = [name for name in names if name.partition("::")[0].endswith(".py")]
        child = Child(Trial(None, tests, [name for name in names if name not in tests]))
        while not (outcome := child.outcome()):
            time.sleep(0.1)
        if outcome.result in ("timeout", "failed"):
            print(f"not seen to pass without a change ({outcome.by}): {', '.join(names)}")
        elif outcome.by:
            wrong |= set(outcome.by.split("\n"))
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
