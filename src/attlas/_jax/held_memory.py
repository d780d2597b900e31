"""The memory that this process uses, the most that it used since a moment, and giving it back."""

import contextlib
import ctypes
import gc
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


def give_back(beyond: int) -> bool:
    """Clear the programs that JAX compiled, if the process uses more than so many bytes.

    JAX holds every program for as long as its function lives, which is as long as the process. A
    program that is needed again is compiled again, or read from the persistent cache. The C library
    keeps freed memory for itself until `malloc_trim` returns it.

    Returns:
        Whether the programs were cleared.

    Examples:
        >>> give_back(beyond=10**15)
        False
    """
    if _held() <= beyond:
        return False
    import jax

    jax.clear_caches()
    gc.collect()
    if resource is not None:  # not on Windows, whose `ctypes` needs the name of a library
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        if trim is not None:
            trim(0)
    return True


def _held() -> int:
    """Bytes that the process uses now, or the most that it ever used where the system says that."""
    with contextlib.suppress(OSError):
        return _status("VmRSS")
    return peak_memory()


def _status(name: str) -> int:
    """Bytes of one line of the status of a process in Linux, 0 without it."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    return 0
