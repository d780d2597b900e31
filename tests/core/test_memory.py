"""What fits the memory of this machine."""

import os

import jax
import numpy as np
import pytest

from attlas.core.arrays import read_array
from attlas.core.errors import UserError
from attlas.core.memory import device_memory, memory_limit, require_memory
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit


def test_the_limit_is_no_more_than_the_machine_has():
    assert memory_limit() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_what_fits_passes_and_what_does_not_is_named():
    assert require_memory(memory_limit(), "all of it", "no") is None
    with pytest.raises(UserError, match=r"^a kernel takes .* GiB here: give fewer samples$"):
        require_memory(memory_limit() + 1, "a kernel", "give fewer samples")


def test_a_view_that_repeats_its_entries_is_refused_before_it_is_made():
    view = np.broadcast_to(np.ones(1), (10**9, 10**9))
    with pytest.raises(UserError, match=r"^X of shape \(1000000000, 1000000000\) takes"):
        read_array(view, "X")


def test_a_result_that_fits_no_memory_is_refused_before_it_is_computed():
    samples = np.broadcast_to(np.ones((1, 2)), (10**7, 2))
    with pytest.raises(UserError, match=r"^the kernel takes .* give fewer samples$"):
        softmax_ntk_limit(samples, samples, 1.0)


class _Accelerator:
    """A device that tells of its own memory, as one with CUDA does."""

    def memory_stats(self):
        return {"bytes_limit": 2**30, "peak_bytes_in_use": 2**20}


def test_an_array_of_an_accelerator_must_fit_its_own_memory(monkeypatch):
    assert device_memory() is None
    monkeypatch.setattr(jax, "local_devices", lambda: [_Accelerator()])
    assert device_memory() == (2**30, 2**20)
    require_memory(2**30, "all of it", "no", on_device=True)
    with pytest.raises(UserError, match=r"^a kernel takes 2 GiB, of 1 GiB on the device: give"):
        require_memory(2**31, "a kernel", "give fewer samples", on_device=True)
