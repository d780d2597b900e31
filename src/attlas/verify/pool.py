"""Check many claims in a few processes.

Compilation is what costs, so the workers compile with the cheap flags and share the
persistent compilation cache; a check and its control already share one program.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import platformdirs

from attlas.core.verdict import CheckReport

CHEAP_FLAGS = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_multi_thread_eigen=false"
)
RUN_ALPHA = 0.01
"""Error probability of a whole run, shared equally by its claims and controls."""


def cache_folder() -> Path:
    """Where compiled programs are kept between processes.

    Returns:
        `ATTLAS_CACHE` if set, else the user's cache folder.
    """
    chosen = os.environ.get("ATTLAS_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("attlas"))


def cheap_environment() -> dict[str, str]:
    """Environment variables of a process that checks claims.

    Returns:
        Variables that are not set already, to be put in place before JAX is imported.
    """
    wanted = {
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "1",
        "XLA_FLAGS": CHEAP_FLAGS,
        "JAX_COMPILATION_CACHE_DIR": str(cache_folder() / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    return {name: value for name, value in wanted.items() if name not in os.environ}


def check_by_name(
    name: str, count: int | None, seed: int, alpha: float, challenge_rounds: int
) -> CheckReport:
    """Check one claim of the atlas; runs in a worker process.

    Args:
        name: full claim name.
        count: instances, or None for the claim's own number.
        seed: of the instances.
        alpha: error probability granted to the claim.
        challenge_rounds: rounds of gradient search.

    Returns:
        The report.
    """
    from attlas.verify.check import check
    from attlas.verify.registry import find_claims

    (claim,) = (c for c in find_claims([name]) if c.name == name)
    return check(claim, count=count, seed=seed, alpha=alpha, challenge_rounds=challenge_rounds)


def check_all(
    names: Sequence[str],
    *,
    count: int | None = None,
    seed: int = 0,
    challenge_rounds: int = 0,
    processes: int = 2,
) -> Iterator[CheckReport]:
    """Check claims of the atlas by name, yielding reports as they come.

    Args:
        names: full claim names.
        count: instances of each, or None for each claim's own number.
        seed: of the instances.
        challenge_rounds: rounds of gradient search for each inequality.
        processes: worker processes.

    Yields:
        One report for each name.
    """
    one = partial(
        check_by_name,
        count=count,
        seed=seed,
        alpha=RUN_ALPHA / (2 * max(1, len(names))),
        challenge_rounds=challenge_rounds,
    )
    added = cheap_environment()
    os.environ.update(added)
    try:
        with ProcessPoolExecutor(min(processes, len(names) or 1), get_context("spawn")) as pool:
            pending = [pool.submit(one, name) for name in names]
            try:
                for finished in as_completed(pending):
                    yield finished.result()
            finally:
                for left in pending:
                    left.cancel()
    finally:
        for name in added:
            os.environ.pop(name, None)
