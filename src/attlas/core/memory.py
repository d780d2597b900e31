"""What fits the memory of this machine and its device, asked before anything is allocated."""

import math
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jax

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


class DeviceMemory(NamedTuple):
    """What a device tells of its own memory, in bytes.

    Attributes:
        limit: what this process may take of it.
        peak: the most that this process held of it, since its start.
    """

    limit: int
    peak: int


def device_memory() -> DeviceMemory | None:
    """The memory of the device that JAX computes on.

    Returns:
        None where the device has no memory of its own, as a CPU.

    Examples:
        >>> device_memory() is None or device_memory().limit > 2**20
        True
    """
    told = jax.local_devices()[0].memory_stats()
    if not told or "bytes_limit" not in told:
        return None
    return DeviceMemory(int(told["bytes_limit"]), int(told.get("peak_bytes_in_use", 0)))


def require_memory(size: int, what: str, instead: str, *, on_device: bool = False) -> None:
    """Refuse what can never fit, before the machine swaps or the system kills the process.

    Args:
        instead: what to do, the end of the message.
        on_device: whether JAX would hold them: an accelerator has a memory of its own.

    Raises:
        UserError: if they are more than there are.

    Examples:
        >>> require_memory(2**80, "the kernel of X", "give fewer samples")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: the kernel of X takes 1.126e+15 GiB... give fewer samples
    """
    own = device_memory() if on_device else None
    limit = memory_limit() if own is None else min(own.limit, memory_limit())
    if size > limit:
        # A whole number may be larger than any of float64.
        shown = size / _GIB if size < 2**1000 else math.inf
        where = "here" if own is None else "on the device"
        raise UserError(
            f"{what} takes {shown:.4g} GiB, of {limit / _GIB:.4g} GiB {where}: {instead}"
        )
