"""Processes we start: a share of the cores, one compilation cache, and an end with the driver."""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from signal import SIG_IGN, SIGINT, signal
from typing import TYPE_CHECKING

from attlas._jax.compilation import brief_flags, cheap_flags, compile_cache, sampler_flags
from attlas._jax.cycles import look_for_cycles_seldom

if TYPE_CHECKING:  # a check of one file starts no process
    from concurrent.futures import ProcessPoolExecutor


def available_cores() -> int:
    """The number of cores that this process may use, by its affinity where the system has one.

    A container, a batch system or `taskset` may grant fewer than the machine has; a thread for each
    of the others would only take turns.

    Examples:
        >>> 1 <= available_cores() <= (os.cpu_count() or 1)
        True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_variables(workers: int, brief: bool = False) -> dict[str, str]:
    """The environment variables of a worker; those that the user has set stay.

    Two workers that each use all cores make each other slower: BLAS and XLA get the worker's share
    of them. On an accelerator, no worker takes all memory at the start.

    Args:
        workers: number of worker processes on this machine.
        brief: whether compiling takes longer than running: then XLA optimises little and uses its
            older emitters, see `attlas._jax.compilation`.

    Examples:
        >>> worker_variables(os.cpu_count() or 1)["NPROC"]
        '1'
    """
    share = str(max(1, available_cores() // max(1, workers)))
    wanted = {
        "OMP_NUM_THREADS": share,
        "OPENBLAS_NUM_THREADS": share,
        "MKL_NUM_THREADS": share,
        "NPROC": share,  # XLA's thread pool on a CPU
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_COMPILATION_CACHE_DIR": str(compile_cache()),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "MPLBACKEND": "agg",
    }
    if brief and (flags := brief_flags()):
        wanted["XLA_FLAGS"] = flags
    return {name: os.environ.get(name, value) for name, value in wanted.items()}


def checker_variables(workers: int) -> dict[str, str]:
    """The variables of a process that checks claims: on the CPU, in float64, compiled for samplers.

    Training in samplers runs long; the claims themselves, most of what is compiled, request cheap
    compilation (`attlas._jax.compilation`). Variables that the user has set stay.

    Args:
        workers: number of such processes on this machine.

    Examples:
        >>> "XLA_FLAGS" in checker_variables(2)
        True
    """
    return {**worker_variables(workers), **_on_the_cpu(sampler_flags())}


def auditor_variables() -> dict[str, str]:
    """The variables of a process that audits a small model, whose programs run once.

    Examples:
        >>> auditor_variables().keys() == checker_variables(1).keys()
        True
    """
    return {**worker_variables(1), **_on_the_cpu(cheap_flags())}


def _on_the_cpu(flags: str) -> dict[str, str]:
    wanted = {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1", "XLA_FLAGS": flags}
    return {name: os.environ.get(name, value) for name, value in wanted.items()}


@contextlib.contextmanager
def started_under(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for processes that start inside; the old values return after it.

    Examples:
        >>> with started_under({"ATTLAS_EXAMPLE": "1"}):
        ...     os.environ["ATTLAS_EXAMPLE"]
        '1'
        >>> "ATTLAS_EXAMPLE" in os.environ
        False
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def worker_pool(workers: int) -> "Iterator[ProcessPoolExecutor]":
    """A pool that leaves no process behind, also when the driver stops in the middle."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker
    )
    try:
        yield pool
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.kill()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown(wait=True)


def _start_worker() -> None:
    """Prepare a local worker process: leave Ctrl-C to the driver, and end with it.

    A pool's workers own both ends of their queue and would outlive a killed driver.
    """
    from multiprocessing import parent_process

    signal(SIGINT, SIG_IGN)
    look_for_cycles_seldom()
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    from multiprocessing import connection

    connection.wait([sentinel])
    os._exit(1)
