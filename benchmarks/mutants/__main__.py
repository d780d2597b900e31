"""Run the mutants: `python -m benchmarks.mutants [PAPER...] [--only TEXT] [--processes N]`.

It needs what `make lint` installs.
"""

import argparse
import json
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from multiprocessing.pool import Pool
from pathlib import Path

from benchmarks.mutants.mutant import Fate, Mutant, mutants_of
from benchmarks.mutants.trial import Trial, outcome, unsound

TABLE = Path(__file__).parents[1] / "results" / "mutants.json"


def main() -> int:
    """Run them and write the table; exit 1 when a survivor is unexplained."""
    asked = _arguments()
    chosen = [(p, m) for p, m in mutants_of(asked.papers) if asked.only in f"{m.file}: {m.name}"]
    if not chosen:
        print("mutants: no mutant of that paper has this in its file or name", file=sys.stderr)
        return 2
    table = read_table()
    os.environ.update(_variables(asked.processes))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["jax", "optax", "scipy.stats", "xarray"])
    with context.Pool(asked.processes, maxtasksperchild=1) as pool:
        fates = []
        for fate in pool.imap_unordered(outcome, _tasks(chosen, table)):
            _show(fate)
            fates.append(fate)
        broken = _broken(pool, fates)
    table |= {(fate.paper, fate.name): fate for fate in fates}
    listed = [(p, m.name) for p, m in mutants_of()]
    table = {key: table[key] for key in listed if key in table}
    TABLE.write_text(json.dumps([f.row() for f in table.values()], indent=1) + "\n", "utf-8")
    return _summary(table) or broken


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("papers", nargs="*", help="keys of papers; all by default")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="mutants whose file or name has it"
    )
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def read_table() -> dict[tuple[str, str], Fate]:
    """The fates of the last runs, by paper and name."""
    rows = json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else []
    return {(row["paper"], row["name"]): Fate(**row) for row in rows}


def _tasks(chosen: list[tuple[str, Mutant]], table: Mapping) -> Iterator[Trial]:
    """Arguments of `outcome`: the claim that noticed a mutant the last time is tried first."""
    import grimp  # `make lint` installs it: the tests read the table without

    graph = grimp.build_graph("attlas", *{paper for paper, _ in chosen})
    for paper, mutant in chosen:
        users = graph.find_downstream_modules(mutant.module) | {mutant.module}
        modules = sorted(name for name in users if name.startswith(f"{paper}."))
        known = table.get((paper, mutant.name))
        before = [known.claim] if known and known.tried and known.claim else []
        yield Trial(paper, mutant, modules, [*before, *mutant.claims])


def _broken(pool: Pool, fates: list[Fate]) -> int:
    """Check the claims that noticed something again, with no formula changed."""
    noticing: dict[str, set[str]] = {}
    for fate in fates:
        # A mutant that its paper could not be imported with is among them: without it it can be.
        own = noticing.setdefault(fate.paper, set())
        if fate.tried and fate.claim:
            own.add(fate.claim)
    status = 0
    for found in pool.imap(unsound, [(p, sorted(slugs)) for p, slugs in noticing.items()]):
        for slug, defect in found.items():
            print(f"{slug} fails without any change, so that it notices nothing: {defect}")
            status = 1
    return status


def _variables(processes: int) -> dict[str, str]:
    from attlas._jax.processes import checker_variables

    return checker_variables(processes)


def _show(fate: Fate) -> None:
    if fate.claim:
        print(f"{fate.paper}: {fate.name}: noticed by {fate.claim} ({fate.defect})", flush=True)
    else:
        why = fate.sharpening or "UNEXPLAINED"
        print(f"{fate.paper}: {fate.name}: survives {fate.tried} claims: {why}", flush=True)


def _summary(table: Mapping[tuple[str, str], Fate]) -> int:
    count, noticed = Counter(), Counter()
    for fate in table.values():
        count[fate.paper] += 1
        noticed[fate.paper] += bool(fate.claim)
    for paper in count:
        print(f"{paper}: {noticed[paper]} of {count[paper]} noticed by a claim")
    unexplained = [fate for fate in table.values() if fate.unexplained]
    print(f"{sum(noticed.values())} of {len(table)} noticed, {len(unexplained)} unexplained")
    return int(bool(unexplained))


if __name__ == "__main__":
    raise SystemExit(main())
