"""What a cell costs beside its own work on a cluster of many workers, and what the driver holds.

`attlas run` sends sleeping cells to a scheduler whose workers are threads of the scheduler's own
process, see `many_workers.py`. What passes beyond the sleep is the start's, the scheduler's, the
workers', the driver's and the records'. Walls on a shared machine count other people's work too:
the processor times of the driver and of the scheduler with all its workers stand beside them.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.interleave import write_results

HERE = Path(__file__).parent
CELLS = {"smoke": 200, "quick": 2000, "paper": 20_000}


def measured(scale: str, workers: int, seconds: float) -> dict[str, float | str | None]:
    """One run of all cells of a scale."""
    cluster = subprocess.Popen(
        [sys.executable, str(HERE / "many_workers.py"), str(workers)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with cluster, tempfile.TemporaryDirectory() as results:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        command = [
            sys.executable, "-m", "attlas", "--results", results, "run",
            str(HERE / "sleeping.py"), "--scale", scale, "--set", f"seconds={seconds}",
            "--on", address,
        ]  # fmt: skip
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall = time.perf_counter() - started
        driver = resource.getrusage(resource.RUSAGE_CHILDREN)
        cluster.communicate("\n")
    both = resource.getrusage(resource.RUSAGE_CHILDREN)
    cells = CELLS[scale]
    return {
        "case": f"{cells} cells of {seconds} s on {workers} workers",
        "seconds": wall,
        "sleep": cells * seconds / workers,
        "overhead_per_cell": (wall - cells * seconds / workers) / cells,
        "driver_bytes": driver.ru_maxrss * 1024,
        "driver_processor_seconds": _used(driver),
        "cluster_processor_seconds": _used(both) - _used(driver),
        "load_average_at_the_end": os.getloadavg()[0],
        "worker": "a distributed.Worker of one thread with an address and connections of its own, "
        "in the scheduler's process; neither process nor nanny of its own",
    }


def _used(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and write `results/cluster_overhead.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=CELLS, default="paper")
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1.0)
    given = parser.parse_args()
    case = measured(given.scale, given.workers, given.seconds)
    print(case)
    write_results("cluster_overhead", [case])


if __name__ == "__main__":
    main()
