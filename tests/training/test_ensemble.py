"""Chunks run in threads, under the settings of the caller."""

import jax
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.training.ensemble import in_chunks


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


def test_no_trainings_are_refused():
    with pytest.raises(UserError, match="0 trainings"):
        in_chunks(lambda batch: batch, np.zeros(0), 2)
