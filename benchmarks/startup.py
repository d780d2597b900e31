"""How long `attlas --help` takes as a whole process, beside a bare `import jax`."""

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.interleave import write_results

ROUNDS = 7


def wall(command: list[str]) -> float:
    """Wall time of one process, in seconds."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    """Measure and write `results/startup.json`."""
    beside = Path(sys.executable).with_name("attlas")
    attlas = str(beside) if beside.exists() else shutil.which("attlas")
    if attlas is None:
        raise SystemExit("attlas is not installed beside this Python")
    commands = {
        "attlas --help": [attlas, "--help"],
        "python -c 'import jax'": [sys.executable, "-c", "import jax"],
    }
    for command in commands.values():
        wall(command)
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            times[name].append(wall(command))
    cases = [
        {
            "case": name,
            "seconds": statistics.median(taken),
            "seconds_range": [min(taken), max(taken)],
            "goal": 0.5 if name.startswith("attlas") else None,
        }
        for name, taken in times.items()
    ]
    print(cases)
    write_results("startup", cases)


if __name__ == "__main__":
    main()
