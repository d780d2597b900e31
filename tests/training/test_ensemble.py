"""Chunks run in threads, under the settings of the caller."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import on_device
from attlas.core.errors import UserError
from attlas.models.attention.multi_head import make_multi_head
from attlas.training import ensemble
from attlas.training.ensemble import accelerator_width, cache_width, core_share, in_chunks


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_chunk_runs_in_the_precision_of_the_caller(dtype):
    seen = []

    def program(batch):
        seen.append((batch.dtype, jax.config.jax_default_matmul_precision))
        return batch

    with jax.enable_x64(dtype is np.float64), jax.default_matmul_precision("highest"):
        found = in_chunks(program, np.arange(7.0), 2)
    assert found.dtype == dtype
    assert set(seen) == {(np.dtype(dtype), "highest")}
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("count", "most", "cores", "chunks", "width"),
    [
        (1000, 240, 1, 5, 200),
        (1000, 240, 2, 6, 167),
        (1000, 240, 4, 8, 125),
        (7, 2, 3, 4, 2),
        (5, 9, 2, 1, 5),
        (3, 1, 2, 3, 1),
    ],
)
def test_chunks_are_even_and_no_core_waits_for_the_last(
    monkeypatch, count, most, cores, chunks, width
):
    monkeypatch.setattr(ensemble, "available_cores", lambda: cores)
    seen = []

    def program(batch):
        seen.append(batch.shape[0])
        return 2 * batch

    assert np.array_equal(in_chunks(program, np.arange(count), most), 2 * np.arange(count))
    assert seen == [width] * chunks


def test_programs_on_several_devices_take_turns(monkeypatch):
    workers, widths = [], []

    class Pool(ThreadPoolExecutor):
        def __init__(self, count):
            workers.append(count)
            super().__init__(count)

    def program(batch):
        widths.append(batch.shape[0])
        return batch + 1

    monkeypatch.setattr(ensemble, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(ensemble, "available_cores", lambda: 5)
    assert in_chunks(program, np.arange(20), 4).tolist() == list(range(1, 21))
    monkeypatch.setattr(ensemble, "member_devices", lambda: [None] * 2)
    monkeypatch.setattr(ensemble, "_spread", lambda devices: jnp.asarray)
    assert in_chunks(program, np.arange(20), 3).tolist() == list(range(1, 21))
    assert workers == [5, 1]
    # Five threads take a chunk of four each; two devices a chunk of six four times, the last
    # of which is filled up with its last member.
    assert widths == [4] * 5 + [6] * 4


def test_one_device_needs_no_mesh():
    assert ensemble._spread(jax.devices()[:1]) is on_device


def test_no_trainings_are_refused():
    with pytest.raises(UserError, match="0 trainings"):
        in_chunks(lambda batch: batch, np.zeros(0), 2)


@pytest.mark.parametrize(("size", "width"), [((4, 10, 10), 6), ((8, 10, 20), 2), ((64, 10, 64), 1)])
def test_chunks_are_of_the_width_that_was_measured(size, width):
    samples = jnp.ones((100, *size[1:]), jnp.float32)
    assert cache_width(make_multi_head(*size), samples) == width


def test_the_width_follows_from_the_bytes_of_attention_readout_and_two_rows():
    # 13 5 7 3 (2 5 / 7 + 2) 8 = 37440 bytes a model: 112.03 of them in 4 MiB.
    model = make_multi_head(3, 5, 7)
    assert cache_width(model, jnp.ones((13, 5, 7))) == 112
    assert cache_width(model, jnp.ones((11, 5, 7))) == 128
    # One head and one token for other models: 1000 4 (2 / 4 + 2) 8 = 80000 bytes, 52.4 of them.
    assert cache_width(None, jnp.ones((1000, 4))) == 52
    assert cache_width(None, jnp.ones((10**6, 4))) == 1


def test_other_devices_take_many_at_once(monkeypatch):
    monkeypatch.setattr(ensemble, "on_cpu", lambda: False)
    assert cache_width(None, jnp.ones((1000, 4))) == 2**30 // 80000
    assert accelerator_width(2.0**31) == 1
    assert core_share(7) == 7


@pytest.mark.parametrize(("count", "cores", "share"), [(7, 3, 3), (6, 3, 2), (1, 8, 1)])
def test_every_core_takes_one_chunk(monkeypatch, count, cores, share):
    monkeypatch.setattr(ensemble, "available_cores", lambda: cores)
    assert core_share(count) == share


@pytest.mark.parametrize(
    ("count", "most", "threads", "devices", "width"),
    [
        (6, 3, 3, 1, 2),
        (10, 4, 1, 2, 4),
        (10, 6, 1, 3, 6),
        (21, 8, 4, 4, 8),
        (2, 8, 1, 8, 8),
        (9, 3, 5, 1, 2),
    ],
)
def test_chunks_are_multiples_of_the_devices(count, most, threads, devices, width):
    assert ensemble._even_width(count, most, threads, devices) == width
