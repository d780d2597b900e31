"""Worker processes leave Ctrl-C to their driver and never outlive it."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import weakref

import pytest

from attlas._jax.processes import (
    FEWEST_THREADS,
    available_cores,
    checker_variables,
    look_for_cycles_seldom,
    worker_pool,
    worker_variables,
)

COUNT = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from attlas._jax.processes import available_cores, worker_variables
print(available_cores(), worker_variables(1)["NPROC"])
"""


def test_cores_are_those_granted_not_those_of_the_machine():
    assert 1 <= available_cores() <= (os.cpu_count() or 1)
    if hasattr(os, "sched_setaffinity"):
        bare = {name: value for name, value in os.environ.items() if name != "NPROC"}
        command = [sys.executable, "-c", COUNT]
        found = subprocess.run(command, env=bare, capture_output=True, text=True, check=True)
        assert found.stdout.split() == ["1", "1"]


@pytest.mark.parametrize("cores", [1, 2, FEWEST_THREADS - 1, FEWEST_THREADS, 2 * FEWEST_THREADS])
def test_a_pool_of_few_threads_is_one_thread(monkeypatch, cores):
    monkeypatch.delenv("NPROC")
    monkeypatch.setattr("attlas._jax.processes.available_cores", lambda: cores)
    threads = worker_variables(1)["NPROC"]
    assert threads == (str(cores) if cores >= FEWEST_THREADS else "1")
    assert checker_variables(1)["NPROC"] == "1"


SIDE_BY_SIDE = """
import time
import jax
import jax.numpy as jnp

@jax.jit
def spectra(A):
    S = A + jnp.swapaxes(A, 1, 2)
    values = [jnp.sum(jnp.linalg.svd(A + k, compute_uv=False)) for k in range(12)]
    return jnp.stack(values + [jnp.sum(jnp.linalg.eigvalsh(S + k)) for k in range(12)])

A = jax.random.normal(jax.random.key(0), (300, 12, 12))
for _ in range(60):
    jax.block_until_ready(spectra(A))
"""


@pytest.mark.thorough
def test_factorisations_side_by_side_end_in_a_process_that_checks(monkeypatch):
    monkeypatch.delenv("NPROC")
    monkeypatch.delenv("XLA_FLAGS")
    environment = {**os.environ, **checker_variables(1)}
    command = [sys.executable, "-c", SIDE_BY_SIDE]
    done = subprocess.run(command, env=environment, timeout=600, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_worker_leaves_the_interrupt_key_to_its_driver():
    with worker_pool(1) as pool:
        assert pool.submit(signal.getsignal, signal.SIGINT).result() is signal.SIG_IGN


def stop_in_the_middle() -> None:
    with worker_pool(1) as pool:
        assert pool.submit(abs, -1).result() == 1
        pool.submit(time.sleep, 600)
        raise KeyboardInterrupt


def test_a_driver_that_stops_in_the_middle_does_not_wait_for_its_workers():
    before = set(multiprocessing.active_children())
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        stop_in_the_middle()
    assert time.monotonic() - started < 60
    assert set(multiprocessing.active_children()) <= before


class _Ring:
    def __init__(self):
        self.own = self


def test_a_worker_looks_seldom():
    look_for_cycles_seldom()
    with worker_pool(1) as pool:
        assert pool.submit(gc.get_threshold).result() == gc.get_threshold()


def test_cycles_are_freed_in_the_end():
    look_for_cycles_seldom()
    gone = weakref.ref(_Ring())
    kept = [[] for _ in range(2 * gc.get_threshold()[0])]
    assert len(kept) > gc.get_threshold()[0]
    assert gone() is None
