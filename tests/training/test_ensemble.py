"""Chunks run in threads, under the settings of the caller."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.attention.multi_head import make_multi_head
from attlas.training import ensemble
from attlas.training.ensemble import cache_width, in_chunks


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


def test_no_trainings_are_refused():
    with pytest.raises(UserError, match="0 trainings"):
        in_chunks(lambda batch: batch, np.zeros(0), 2)


@pytest.mark.parametrize(("size", "width"), [((4, 10, 10), 6), ((8, 10, 20), 2), ((64, 10, 64), 1)])
def test_chunks_are_of_the_width_that_was_measured(size, width):
    samples = jnp.ones((100, *size[1:]), jnp.float32)
    assert cache_width(make_multi_head(*size), samples) == width
