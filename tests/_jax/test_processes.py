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

from attlas._jax.processes import available_cores, look_for_cycles_seldom, worker_pool

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
