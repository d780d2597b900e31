import dask.config
import numpy as np
import pytest
from distributed import LocalCluster

from attlas.core.errors import UserError
from attlas.runs.dask_backend import scheduler_address
from attlas.runs.execute import execute
from attlas.runs.store import Store


def results(store: Store) -> dict[int, np.ndarray]:
    return {r.cell.settings["x"]: r.arrays["power"] for r in store.records("squares")}


def test_a_killed_worker_is_replaced_and_all_cells_finish(squares, tmp_path, monkeypatch):
    monkeypatch.setenv("SQUARES_DIE", f"{tmp_path / 'deaths'}:1@2")
    store = Store(tmp_path / "dask")
    summary = execute([squares], "quick", store=store, on="dask")
    assert len(list((tmp_path / "deaths").iterdir())) == 1
    assert (summary.finished, summary.failures) == (6, ())
    found = results(store)
    assert sorted(found) == list(range(6))
    for x, power in found.items():
        np.testing.assert_array_equal(power, float(x) ** np.arange(4))


def test_cells_run_on_a_scheduler_that_is_there_already(squares, tmp_path):
    store = Store(tmp_path)
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="",
        host="127.0.0.1", protocol="tcp",
    )  # fmt: skip
    with cluster:
        place = cluster.scheduler_address.removeprefix("tcp://")
        summary = execute([squares], "smoke", store=store, on=f"dask://{place}")
        assert (summary.finished, summary.failures) == (3, ())
    # With nothing left to do, no scheduler is asked for.
    assert execute([squares], "smoke", store=store, on=f"dask://{place}").reused == 3
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "100ms"}),
        pytest.raises(UserError, match="no dask scheduler answers at tcp://127"),
    ):
        execute([squares], "smoke", store=store, on=f"dask://{place}", fresh=True)


def test_remote_schedulers_need_tls_or_an_explicit_word():
    assert scheduler_address("dask://localhost:8786") == "tcp://localhost:8786"
    assert scheduler_address("dask://[::1]:8786") == "tcp://[::1]:8786"
    assert scheduler_address("tls://node7:8786") == "tls://node7:8786"
    assert scheduler_address("dask://10.0.0.7:8786", insecure=True) == "tcp://10.0.0.7:8786"
    for remote in ("dask://10.0.0.7:8786", "dask://node7:8786"):
        with pytest.raises(UserError, match="without TLS"):
            scheduler_address(remote)
    for wrong in ("dask://node7", "http://node7:80", "dask:", "ray", "tls://:1", "dask://h:x"):
        with pytest.raises(UserError, match="cannot run on"):
            scheduler_address(wrong)
