"""Time ours and a peer, one after the other in every round, and report the ratio.

Other work shares the machine, so only ratios of interleaved rounds mean anything: each round
runs both sides on the same inputs, and the median ratio is reported with its range. The whole
process is pinned to one core before any numerical library starts. JAX computes on the CPU, as the
peers do, unless the variable JAX_PLATFORMS names another device (`JAX_PLATFORMS=cuda make bench`);
each result names the device.
"""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

RESULTS = Path(__file__).parent / "results"


def pin_to_one_core() -> None:
    """Give this process one core and one thread; call before importing JAX or torch."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    os.environ.update(dict.fromkeys(threads, "1"))
    choose_device()
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    if "numpy" in sys.modules:
        # BLAS read the variables already, when a module with inputs imported NumPy.
        threadpool_limits(limits=1, user_api="blas")


def choose_device() -> None:
    """JAX on the CPU in this process and those it starts, unless JAX_PLATFORMS names a device."""
    if "JAX_PLATFORMS" not in os.environ:
        print("JAX on the CPU: JAX_PLATFORMS=cuda would choose a GPU", file=sys.stderr)
        os.environ["JAX_PLATFORMS"] = "cpu"


LEAST = 0.3
"""Seconds that a timing takes at least: shorter calls are repeated, as timeit does."""


def seconds(
    work: Callable[[], Any], least: float = 0.0, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """Time of one call, and what it returned.

    Args:
        work: returns only when its result is computed.
        least: repeat the call until this much time has passed.
        clock: of the wall; `time.process_time` leaves out what other work took from the core.

    Returns:
        (seconds for each call, result of the last).
    """
    started = clock()
    calls = 0
    while True:
        result = work()
        calls += 1
        passed = clock() - started
        if passed >= least:
            return passed / calls, result


def compare(
    name: str,
    ours: Callable[[], Any],
    peers: Mapping[str, Callable[[], Any]],
    *,
    agree: Callable[[Any, Any], float],
    rounds: int = 3,
    weights: Mapping[str, float] | None = None,
    goal: Mapping[str, float] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """One row for each peer: how many times ours is faster, at which difference of results.

    Args:
        name: of the case.
        ours: our computation; called once before timing, so that it is compiled.
        peers: computations on the same inputs.
        agree: difference of two results, in the unit that the case states.
        rounds: interleaved rounds.
        weights: work units of a call relative to ours (a peer that does 1 of 100 has 0.01).
        goal: ratio aimed at, for each peer.
        clock: as for `seconds`.

    Returns:
        JSON-ready case with times, ratios, differences; a peer that raises is a failed row.
    """
    weights, goal = weights or {}, goal or {}
    ours()
    times: dict[str, list[float]] = {"ours": [], **{peer: [] for peer in peers}}
    failed: dict[str, str] = {}
    difference: dict[str, float] = {}
    for _ in range(rounds):
        taken, mine = seconds(ours, LEAST, clock)
        times["ours"].append(taken)
        for peer, work in peers.items():
            if peer in failed:
                continue
            try:
                taken, theirs = seconds(work, LEAST, clock)
            except Exception as trouble:  # noqa: BLE001 (a failing peer is a row, not our error)
                failed[peer] = f"{type(trouble).__name__}: {trouble}"
                continue
            times[peer].append(taken / weights.get(peer, 1.0))
            difference[peer] = float(agree(mine, theirs))
    rows = {}
    for peer in peers:
        if peer in failed:
            rows[peer] = {"failed": failed[peer]}
            continue
        ratios = [theirs / mine for theirs, mine in zip(times[peer], times["ours"], strict=True)]
        rows[peer] = {
            "ratio": statistics.median(ratios),
            "ratio_range": [min(ratios), max(ratios)],
            "goal": goal.get(peer),
            "difference": difference[peer],
            "seconds": statistics.median(times[peer]),
        }
    report = {"case": name, "seconds": statistics.median(times["ours"]), "rounds": rounds}
    print(json.dumps({**report, "peers": rows}), flush=True)
    return {**report, "peers": rows}


def peak_memory() -> int:
    """Peak resident memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def write_results(name: str, cases: list[dict[str, Any]], threads: int = 1) -> Path:
    """Write a benchmark's cases with the environment they were measured in.

    Args:
        name: file name without ending.
        cases: rows of `compare` or of the benchmark's own making.
        threads: that the benchmark may use.

    Returns:
        The file.
    """
    RESULTS.mkdir(exist_ok=True)
    out = RESULTS / f"{name}.json"
    out.write_text(
        json.dumps({"environment": environment(threads), "cases": cases}, indent=1) + "\n"
    )
    return out


def read_cases(name: str) -> list[dict[str, Any]]:
    """The cases that were written, each with the commit it was measured at.

    Args:
        name: file name without ending.

    Returns:
        The cases; none where there is no file.
    """
    file = RESULTS / f"{name}.json"
    if not file.exists():
        return []
    stored = json.loads(file.read_text())
    commit = stored["environment"]["commit"]
    return [{"commit": commit, **case} for case in stored["cases"]]


def with_case(cases: list[dict[str, Any]], case: dict[str, Any]) -> list[dict[str, Any]]:
    """The cases with a new one in the place of that of its name.

    Args:
        cases: as they stand.
        case: with a name.

    Returns:
        The cases; one that was measured is not given up for one that failed, was skipped or is
        extrapolated from fewer layers.
    """
    names = [each["name"] for each in cases]
    if case["name"] not in names:
        return [*cases, case]
    place = names.index(case["name"])
    if _worth(case) < _worth(cases[place]):
        return cases
    return [*cases[:place], case, *cases[place + 1 :]]


def _worth(case: dict[str, Any]) -> int:
    """0: nothing was measured; 1: a part; 2: all of it."""
    rows = [case, *case.get("peers", {}).values()]
    if any("failed" in row or "skipped" in row for row in rows):
        return 0
    return 1 if case.get("extrapolated") else 2


def environment(threads: int = 1) -> dict[str, Any]:
    """Versions, processor, device of JAX, threads, commit, and the sources that ran.

    A commit may be gone once its branch was rebased; the hash of the sources names them still.
    """
    from attlas.experiments.environment import code_hash

    packages = ("jax", "jaxlib", "numpy", "scipy", "optax", "torch", "cvxpy", "clarabel", "daqp",
                "cma", "hypothesis", "osqp", "piqp", "proxsuite", "scs")  # fmt: skip
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    head = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "device": _device(),
        "threads": threads,
        "versions": found,
        "commit": commit or None,
        "code": code_hash(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _device() -> str:
    import jax  # only now: the core and the threads are chosen before

    device = jax.devices()[0]
    return f"{device.platform}: {device.device_kind}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.processor()
    names = [r.split(":", 1)[1].strip() for r in cpuinfo.read_text().splitlines() if "name" in r]
    return names[0] if names else platform.processor()
