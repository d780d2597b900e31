"""The memory that this process uses, and the most that it used since a given moment."""

import contextlib
import sys
from pathlib import Path

try:
    import resource
except ImportError:  # not on Windows
    resource = None

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def begin_peak() -> int:
    """Restart the peak at the bytes that the process uses now, and return them; 0 if impossible.

    Examples:
        >>> before = begin_peak()
        >>> before == 0 or 10**6 < before <= peak_memory()
        True
    """
    with contextlib.suppress(OSError):
        _RESET.write_text("5")
        return _status("VmHWM")
    return 0


def peak_memory() -> int:
    """The most bytes that this process used since its peak began, at its start if never.

    0 where the system does not say.

    Examples:
        >>> peak_memory() > 10**6
        True
    """
    with contextlib.suppress(OSError):
        return _status("VmHWM")
    if resource is None:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(name: str) -> int:
    """Bytes of one line of the status of a process in Linux, 0 without it."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    return 0
