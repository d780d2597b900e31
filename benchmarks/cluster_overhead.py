"""What a cell costs beside its own work on a cluster of many workers, and what the driver holds.

`attlas run` sends sleeping cells to a scheduler whose workers are threads of one process. Two
seconds per cell beyond the sleep, say, would be the scheduler's, the driver's and the records'.
"""

import argparse
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
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        cluster.communicate("\n")
    cells = CELLS[scale]
    return {
        "case": f"{cells} cells of {seconds} s on {workers} workers",
        "seconds": wall,
        "sleep": cells * seconds / workers,
        "overhead_per_cell": (wall - cells * seconds / workers) / cells,
        "driver_bytes": peak,
    }


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
