"""Run every benchmark of this folder, or those named, each in a process of its own.

`python -m benchmarks` runs all of them; `python -m benchmarks attention_svm` one. JAX computes on
the CPU unless JAX_PLATFORMS names another device; each file of results names it.
"""

import subprocess
import sys
from pathlib import Path

from benchmarks.interleave import choose_device

HERE = Path(__file__).parent
HARNESS = {
    "__init__",
    "__main__",
    "asked_process",
    "attention_problems",
    "gpt2_small",
    "interleave",
    "machine",
    "many_workers",
    "multi_head_peers",
    "page",
    "removal_products",
    "selection_peers",
    "sleeping",
    "synthetic_checkpoint",
}


def main() -> int:
    """Run the benchmarks; the exit code is the number that failed."""
    known = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in HARNESS)
    named = sys.argv[1:] or known
    unknown = [name for name in named if name not in known]
    if unknown:
        print(f"benchmarks: no {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    choose_device()
    failed = 0
    for name in named:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}"]
        failed += subprocess.run(command, check=False, cwd=HERE.parent).returncode != 0
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
