"""Layers on a cluster are those computed here; a worker with other files refuses."""

from pathlib import Path

import pytest
from distributed import LocalCluster
from experiments.small_model import CONTEXT, LAYERS, all_layers, assert_same, small_model

from attlas.core.errors import UserError
from attlas.experiments.dask_audit import compute_layers_on_dask, layer_values
from attlas.experiments.layer_cache import LayerCache, files_digest


@pytest.mark.thorough
def test_layers_on_a_scheduler_that_is_there_already(tmp_path):
    source = small_model(tmp_path / "model")
    kept, told = LayerCache(tmp_path, source, CONTEXT), []
    want = all_layers(source)
    kept.write(1, want[1])
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0",
        host="127.0.0.1", protocol="tcp",
    )  # fmt: skip
    with cluster:
        place = "dask://" + cluster.scheduler_address.removeprefix("tcp://")
        compute_layers_on_dask(
            kept, source, LAYERS, on=place, progress=lambda *parts: told.append(parts)
        )
    assert told == [(1, 3), (2, 3), (3, 3)]
    for index, values in enumerate(want):
        found = kept.read(index)
        assert found is not None
        assert_same(found, values)
    # With nothing left to do, no scheduler is asked for.
    compute_layers_on_dask(kept, source, LAYERS, on=place)


def test_a_worker_that_sees_other_files_says_so(tmp_path):
    source = small_model(tmp_path / "model")
    assert "holds other files" in layer_values(str(source), "0" * 64, 0, CONTEXT)
    absent = str(tmp_path / "absent")
    assert "does not exist there" in layer_values(absent, "0" * 64, 0, CONTEXT)


def test_a_worker_looks_again_at_files_that_were_replaced(tmp_path):
    source = small_model(tmp_path / "model", 1)
    digest, (one, *_) = files_digest(source), all_layers(source)
    found = layer_values(str(source), digest, 0, CONTEXT)
    assert isinstance(found, dict)
    assert_same(found, one)
    small_model(source, 2)
    # The driver's files, on another machine, are still the first ones.
    assert "holds other files" in layer_values(str(source), digest, 0, CONTEXT)


def test_remote_schedulers_need_tls(tmp_path):
    source = small_model(tmp_path / "model")
    kept = LayerCache(tmp_path, source, CONTEXT)
    with pytest.raises(UserError, match="another machine without TLS"):
        compute_layers_on_dask(kept, Path(source), LAYERS, on="dask://node7:8786")
