"""What a call costs: processor seconds, and bytes of memory beyond those held before."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Cost(NamedTuple):
    """Of one call; `megabytes` is 0 where the system does not say the peak."""

    seconds: float
    megabytes: float


def cost_of(call: Callable[[], object]) -> Cost:
    """Run a call and measure it; its exceptions pass."""
    is_measured = CLEAR.exists()
    if is_measured:
        CLEAR.write_text("5", "ascii")  # the peak is counted from here on
    before, start = _kilobytes("VmRSS"), time.process_time()
    call()
    seconds = time.process_time() - start
    return Cost(seconds, (_kilobytes("VmHWM") - before) / 1024 if is_measured else 0.0)


def _kilobytes(name: str) -> int:
    if not STATUS.exists():
        return 0
    line = next(line for line in STATUS.read_text("ascii").splitlines() if line.startswith(name))
    return int(line.split()[1])
