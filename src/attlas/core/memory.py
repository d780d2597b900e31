"""What fits the memory of this machine, asked before anything is allocated."""

import math
import os
from functools import cache
from pathlib import Path

from attlas.core.errors import UserError

_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_GIB = 2**30


@cache
def memory_limit() -> int:
    """Bytes that this process may hold: the machine's, or its control group's where that is less.

    Returns:
        Their number; nothing is refused where the system does not say.

    Examples:
        >>> memory_limit() > 2**20
        True
    """
    limits = [2**62]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if _GROUP_LIMIT.is_file():
        group = _GROUP_LIMIT.read_text(encoding="ascii").strip()
        limits += [int(group)] if group.isdigit() else []
    return min(limits)


def require_memory(size: int, what: str, instead: str) -> None:
    """Refuse what can never fit, before the machine swaps or the system kills the process.

    Args:
        size: bytes.
        what: what would take them.
        instead: what to do, the end of the message.

    Raises:
        UserError: if they are more than there are.

    Examples:
        >>> require_memory(2**80, "the kernel of X", "give fewer samples")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: the kernel of X takes 1.126e+15 GiB... give fewer samples
    """
    limit = memory_limit()
    if size > limit:
        # A whole number may be larger than any of float64.
        shown = size / _GIB if size < 2**1000 else math.inf
        raise UserError(f"{what} takes {shown:.4g} GiB, of {limit / _GIB:.4g} GiB here: {instead}")
