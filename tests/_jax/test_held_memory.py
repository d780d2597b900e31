import sys

import jax
import numpy as np
import pytest

from attlas._jax import held_memory
from attlas._jax.held_memory import begin_peak, give_back, peak_memory

LARGE = 2 * 10**8


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A system without Linux's account of a process."""
    monkeypatch.setattr(held_memory, "_STATUS", tmp_path / "status")
    monkeypatch.setattr(held_memory, "_RESET", tmp_path / "none" / "clear_refs")


def test_a_peak_counts_what_was_freed_and_not_what_came_before_it():
    first = begin_peak()
    array = np.ones(LARGE // 8)
    with_it = peak_memory()
    del array
    # The system counts pages in batches.
    assert abs(peak_memory() - with_it) < 4 * 10**6
    if first:  # Linux
        assert with_it - first > LARGE * 0.9
        assert begin_peak() < with_it - LARGE / 2
        assert peak_memory() < with_it - LARGE / 2
    else:
        assert sys.platform != "linux"


@pytest.mark.usefixtures("elsewhere")
def test_elsewhere_the_peak_is_that_of_the_whole_process():
    assert begin_peak() == 0
    assert peak_memory() > 10**6 or held_memory.resource is None


@pytest.mark.usefixtures("elsewhere")
def test_where_no_system_tells_nothing_is_said(monkeypatch):
    monkeypatch.setattr(held_memory, "resource", None)
    assert peak_memory() == 0


def test_programs_are_cleared_only_beyond_the_limit():
    traced = []

    @jax.jit
    def double(x):
        traced.append(x)
        return 2 * x

    def call(times):
        double(1.0)
        assert len(traced) == times

    call(times=1)
    assert not give_back(beyond=10**15)
    call(times=1)
    assert give_back(beyond=0)
    call(times=2)


@pytest.mark.usefixtures("elsewhere")
def test_where_the_system_tells_the_peak_alone_it_counts():
    assert give_back(beyond=0) == (peak_memory() > 0)
