"""What a folder of 20,000 records of one number each costs, by the clock, process by process.

The cells are those of `sleeping.py` without any sleep. Timed, each time as a process of its own:
`attlas run` when all is computed, once without the index beside the records (as after the run that
made them: each record is verified) and once with it; `attlas report`; `at.load`, with and without
the start of Python. The aim is 10 s each. Under `taskset -c 0` all of it shares one core. Walls on
a shared machine count other people's work too: the processor time of each process stands beside.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from attlas.experiments.index import NAME
from benchmarks.interleave import write_results

HERE = Path(__file__).parent
ROUNDS, GOAL = 3, 10.0
SCALES = {"smoke": 200, "quick": 2000, "paper": 20_000}
LOAD = """
import time
import attlas as at
start = time.perf_counter()
at.load("many.py")
print(time.perf_counter() - start)
"""


def attlas(*arguments: str) -> list[str]:
    """The command line of this environment, on the results folder of the benchmark."""
    return [sys.executable, "-m", "attlas", "--results", "results", *arguments]


def spent() -> float:
    """Processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(folder: Path, command: list[str]) -> tuple[float, float, str]:
    """Wall and processor time of one process in seconds, and what it printed."""
    started, before = time.perf_counter(), spent()
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    return time.perf_counter() - started, spent() - before, done.stdout


def measured(folder: Path, scale: str) -> dict[str, list[tuple[float, float | None]]]:
    """Make the records, then time what reads them: wall and processor seconds of each round."""
    alike = (HERE / "sleeping.py").read_text().replace('{"seconds": 1.0}', '{"seconds": 0.0}')
    (folder / "many.py").write_text(alike)
    run = attlas("run", "many.py", "--scale", scale, "--workers", "1")
    report = attlas("report", "many.py", "--out", "atlas.html")
    load = [sys.executable, "-c", LOAD]
    times: dict[str, list[tuple[float, float | None]]] = {}

    def note(name: str, seconds: float, processor: float | None = None) -> None:
        times.setdefault(name, []).append((seconds, processor))
        print(f"{name}: {seconds:.1f} s, of the processor {processor}", flush=True)

    note("the run that computes them", *timed(folder, run)[:2])
    for _ in range(ROUNDS):
        (folder / "results" / "many" / NAME).unlink(missing_ok=True)
        note("start of `attlas run`, the first time after a run", *timed(folder, run)[:2])
        note("start of `attlas run`, later", *timed(folder, run)[:2])
        note("`attlas report`", *timed(folder, report)[:2])
        whole, processor, inside = timed(folder, load)
        note("`at.load`", float(inside))
        note("`at.load` with the start of Python", whole, processor)
    return times


def case(name: str, taken: list[tuple[float, float | None]]) -> dict[str, Any]:
    """One row of the results."""
    walls = [seconds for seconds, _ in taken]
    processor = [used for _, used in taken if used is not None]
    return {
        "case": name,
        "seconds": statistics.median(walls),
        "seconds_range": [min(walls), max(walls)],
        "processor_seconds": statistics.median(processor) if processor else None,
        "rounds": len(taken),
        "goal": GOAL if len(taken) > 1 else None,
    }


def main() -> None:
    """Measure and write `results/many_records.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="paper")
    parser.add_argument("--beside", default="not said", help="What else the machine does.")
    given = parser.parse_args()
    os.environ["ATTLAS_RESULTS"] = "results"  # for `at.load`, which runs in the same folder
    with tempfile.TemporaryDirectory() as made:
        times = measured(Path(made), given.scale)
    here = {
        "records": SCALES[given.scale],
        "cores": len(os.sched_getaffinity(0)),
        "beside": given.beside,
        "load_average_at_the_end": os.getloadavg()[0],
    }
    cases = [case(name, taken) | here for name, taken in times.items()]
    write_results("many_records", cases)


if __name__ == "__main__":
    main()
