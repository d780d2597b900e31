"""Hundreds of checks in one process, with a new seed each: how much memory do they keep?

A program of its own, so that nothing else is in its memory. It prints resident MiB after a warm-up
of 100 checks, and after 200 more.
"""

import gc
import resource
import sys
from pathlib import Path

import attlas as at

WARM, MORE = 100, 200
NAMES = (
    *("gu2024exploring/fact-a-6", "gu2024exploring/lemma-b-1-part-3", "attlas_audit/sink-norm"),
    *("liu2021analyzing/lemma-1-2-mask-radius", "liu2021analyzing/theorem-1-features"),
    *("deora2023optimization/section-7-losses", "deora2023optimization/proposition-3-gap"),
    *("trauger2023sequence/lemma-c-1-exact", "trauger2023sequence/lemma-3-2-distance"),
    "julistiono2024optimizing/mirror-norm",
)


def _resident() -> float:
    """MiB of this process in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    """Ten claims of all papers in turn."""
    claims = at.find_claims(NAMES)
    for number in range(WARM + MORE):
        if number == WARM:
            sys.stdout.write(f"{_resident():.1f} ")
        at.check(claims[number % len(claims)], seed=number)
    sys.stdout.write(f"{_resident():.1f}\n")


if __name__ == "__main__":
    main()
