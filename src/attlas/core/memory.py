"""Memory of this machine and its device, asked before a computation allocates."""

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
    """Bytes that this process may use: of the machine, or of its control group where that is less.

    2^62 where the system does not say.

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
    """Memory of a device in bytes.

    Attributes:
        limit: memory that this process may use.
        peak: the most that this process has used since its start.
    """

    limit: int
    peak: int


def device_memory() -> DeviceMemory | None:
    """The memory of the device that JAX computes on, None where it has none of its own, as a CPU.

    Examples:
        >>> device_memory() is None or device_memory().limit > 2**20
        True
    """
    stats = jax.local_devices()[0].memory_stats()
    if not stats or "bytes_limit" not in stats:
        return None
    return DeviceMemory(int(stats["bytes_limit"]), int(stats.get("peak_bytes_in_use", 0)))


def require_memory(size: int, what: str, instead: str, *, on_device: bool = False) -> None:
    """Refuse what can never fit, before the machine swaps or the system kills the process.

    Args:
        instead: advice, the end of the message.
        on_device: whether JAX would allocate it: an accelerator has a memory of its own.

    Raises:
        UserError: if `size` bytes are more than there are.

    Examples:
        >>> require_memory(2**80, "the kernel of X", "give fewer samples")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: the kernel of X takes 1.126e+15 GiB... give fewer samples
    """
    device = device_memory() if on_device else None
    limit = memory_limit() if device is None else min(device.limit, memory_limit())
    if size > limit:
        # A whole number may be larger than any of float64.
        gibibytes = size / _GIB if size < 2**1000 else math.inf
        where = "here" if device is None else "on the device"
        raise UserError(
            f"{what} takes {gibibytes:.4g} GiB, of {limit / _GIB:.4g} GiB {where}: {instead}"
        )
