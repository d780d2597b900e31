"""Worker processes leave Ctrl-C to their driver and never outlive it."""

import multiprocessing
import signal
import time

import pytest

from attlas.core.processes import worker_pool


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
