"""Processes we start: compiler flags and cache, a share of the cores, an end with the driver."""

import contextlib
import gc
import importlib.metadata
import os
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from typing import TYPE_CHECKING

import platformdirs

if TYPE_CHECKING:  # a check of one file starts no process
    from concurrent.futures import ProcessPoolExecutor


_LEAST = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
CHEAP_FLAGS = f"{_LEAST} --xla_cpu_multi_thread_eigen=false"
"""Compiler flags for many tiny programs: compiling is what costs there, not running."""
CHEAPER_FLAGS = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
"""They halve the time again (13.1 s to 6.9 s for four claims), where XLA knows them: an unknown
flag ends the process, so that only the tested release series gets them."""
SAMPLER_FLAGS = f"{CHEAPER_FLAGS} --xla_backend_optimization_level=1"
"""For checking claims, whose samplers train and are run again at every move of a search."""
BRIEF_FLAGS = f"{CHEAPER_FLAGS} {_LEAST}"
"""For cells of some seconds, half of which is compiling: most programs run once, and those whose
loops run long ask for more by `loop_options`. At level 0 for all of them training takes three
times as long; at level 1 for all the first cells of the quick experiments take 380 s, so 347."""
CACHE_END = "-cache"
"""The end of the names of JAX's entries in its persistent compilation cache."""
CACHE_BYTES = 10**9
"""Most bytes of compiled programs; all claims and quick experiments take a tenth."""
FEWEST_THREADS = 4
"""With fewer, XLA gets one thread. A batched factorisation of jaxlib waits for tasks in the pool of
threads that it runs in: as many of them at once as there are threads wait forever. A program with
24 of them stopped within half a minute in three of four runs on two threads, and never on one."""
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
TESTED_SERIES = "0.10."


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
    of them, XLA one thread where the share is below `FEWEST_THREADS`. On an accelerator, no worker
    takes all memory at the start.

    Args:
        workers: number of worker processes on this machine.
        brief: whether compiling takes longer than running: then XLA optimises little and uses its
            older emitters, see `attlas._jax.compilation`.

    Examples:
        >>> worker_variables(os.cpu_count() or 1)["NPROC"]
        '1'
    """
    cores = max(1, available_cores() // max(1, workers))
    share = str(cores)
    wanted = {
        "OMP_NUM_THREADS": share,
        "OPENBLAS_NUM_THREADS": share,
        "MKL_NUM_THREADS": share,
        "NPROC": share if cores >= FEWEST_THREADS else "1",  # XLA's thread pool on a CPU
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
    compilation (`attlas._jax.compilation`). XLA gets one thread, since claims factorise batches of
    matrices side by side, see `FEWEST_THREADS`. Variables that the user has set stay.

    Args:
        workers: number of such processes on this machine.

    Examples:
        >>> "XLA_FLAGS" in checker_variables(2), checker_variables(1)["NPROC"]
        (True, '1')
    """
    alone = {"NPROC": os.environ.get("NPROC", "1")}
    return {**worker_variables(workers), **_on_the_cpu(sampler_flags()), **alone}


def auditor_variables() -> dict[str, str]:
    """The variables of a process that audits a small model, whose programs run on many sequences.

    At level 0 rxnmapper's level data took 109 processor seconds with compiled programs at hand, at
    level 1 it takes 56; compiled anew it takes 75.

    Examples:
        >>> auditor_variables().keys() == checker_variables(1).keys()
        True
    """
    return {**worker_variables(1), **_on_the_cpu(sampler_flags())}


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


def look_for_cycles_seldom() -> None:
    """Let Python look for unreachable cycles less often, in a process that attlas started.

    Importing, tracing and drawing create millions of objects that stay, and few cycles: looking for
    them took a fifth of collecting the tests, an eighth of a report and 3 % of checking claims. A
    report uses a tenth more memory for it.

    Examples:
        >>> look_for_cycles_seldom()
        >>> gc.get_threshold()
        (20000, 50, 50)
    """
    gc.set_threshold(20_000, 50, 50)


def cheap_flags() -> str:
    """XLA_FLAGS for a process that compiles much and runs little.

    Examples:
        >>> cheap_flags().startswith("--xla_backend_optimization_level=0")
        True
    """
    return f"{CHEAP_FLAGS} {CHEAPER_FLAGS}" if _is_tested_series() else CHEAP_FLAGS


def brief_flags() -> str:
    """XLA_FLAGS for a process whose programs compile and run for some seconds each.

    Empty where the installed XLA is not of the tested series.

    Examples:
        >>> brief_flags() in ("", BRIEF_FLAGS)
        True
    """
    return BRIEF_FLAGS if _is_tested_series() else ""


def sampler_flags() -> str:
    """XLA_FLAGS for a process that checks claims.

    Examples:
        >>> sampler_flags() in (SAMPLER_FLAGS, CHEAP_FLAGS)
        True
    """
    return SAMPLER_FLAGS if _is_tested_series() else CHEAP_FLAGS


def _is_tested_series() -> bool:
    return importlib.metadata.version("jaxlib").startswith(TESTED_SERIES)


def is_whole_program(content: bytes) -> bool:
    """Whether an entry of the compilation cache can be read.

    JAX compiles a program again whose entry is damaged and never replaces the entry. What is
    compressed by zstandard, which JAX uses where it is installed, counts as readable.

    Examples:
        >>> whole = zlib.compress(b"program")
        >>> is_whole_program(whole), is_whole_program(whole[:-1])
        (True, False)
    """
    if content.startswith(_ZSTANDARD):
        return True
    reader = zlib.decompressobj()
    try:
        reader.decompress(content)
    except zlib.error:
        return False
    return reader.eof


def compile_cache() -> Path:
    """The folder of compiled programs: ATTLAS_CACHE, else the user's cache folder."""
    named = os.environ.get("ATTLAS_CACHE")
    return Path(named or platformdirs.user_cache_dir("attlas", appauthor=False)) / "compiled"
