from importlib.metadata import PackageNotFoundError, version
from unittest.mock import create_autospec

import dask.config
import numpy as np
import pytest
from distributed import Client, LocalCluster, Scheduler, SpecCluster, Worker, get_worker

from attlas.core.errors import UserError
from attlas.experiments.compatibility import compatibility
from attlas.experiments.dask_backend import DEVICE, require_workers, scheduler_address
from attlas.experiments.environment import code_hash
from attlas.experiments.execute import execute
from attlas.experiments.progress import Progress
from attlas.experiments.store import Store


def results(store: Store) -> dict[int, np.ndarray]:
    return {r.cell.settings["x"]: r.arrays["power"] for r in store.records("squares")}


@pytest.mark.thorough
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
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0",
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


def test_cells_go_to_the_workers_that_have_a_device(squares, tmp_path):
    quiet = {"nthreads": 1, "dashboard": False}
    workers = {
        "plain": {"cls": Worker, "options": quiet},
        "device": {"cls": Worker, "options": {**quiet, "resources": {DEVICE: 1}}},
    }
    options = {"host": "127.0.0.1", "port": 0, "dashboard": False}
    cluster = SpecCluster(workers, {"cls": Scheduler, "options": options})
    with cluster:
        place = cluster.scheduler_address.removeprefix("tcp://")
        summary = execute([squares], "quick", store=Store(tmp_path), on=f"dask://{place}")
        assert (summary.finished, summary.failures) == (6, ())
        done = {name: worker.state.executed_count for name, worker in cluster.workers.items()}
    assert done == {"plain": 0, "device": 6}


def workers(*answers: object) -> Client:
    """A client of two workers: one is like this process, the other answers as it is told."""
    told = list(answers)

    def run(function, *args, on_error):
        assert on_error == "return"
        return {"tcp://here": function(*args), "tcp://w2": told.pop(0)}

    client = create_autospec(Client, instance=True)
    client.run.side_effect = run
    client.wait_for_workers.side_effect = None if told else TimeoutError
    return client


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((), "has no worker: start one"),
        ((PackageNotFoundError("attlas"),), "w2 has no attlas: install the driver"),
        (("0.0.1",), r"w2 has attlas 0\.0\.1: install the driver.s version there, attlas"),
        ((version("attlas"), "f" * 64), r"w2 runs other code of attlas \(f{12}, the driver"),
        ((version("attlas"), code_hash(), "cannot import mine (No)"), "w2 cannot import mine"),
        ((version("attlas"), code_hash(), ZeroDivisionError("x")), "w2 x"),
        ((version("attlas"), code_hash(), "has numpy 1 (here 2)"), r"w2 has numpy 1 \(here 2\)"),
    ],
)
def test_workers_that_would_fail_every_cell_are_refused_in_one_line(answers, said):
    with pytest.raises(UserError, match=said) as caught:
        require_workers(workers(*answers), ["json"], "dask://there:1")
    assert "\n" not in str(caught.value)
    same = workers(version("attlas"), code_hash(), "")
    assert require_workers(same, ["json"], "dask://there:1") == compatibility(["json"])
    assert require_workers(same, ["json"], "dask") is None


def test_a_worker_that_joins_later_and_is_not_alike_ends_the_run_in_one_line(
    squares, tmp_path, monkeypatch
):
    def answered(driver):
        return "has numpy 0.0.1 (here 2)" if get_worker().name == 1 else ""

    monkeypatch.setattr("attlas.experiments.compatibility.incompatibility", answered)
    monkeypatch.setattr("attlas.experiments.dask_backend.incompatibility", lambda driver: "")
    worker = {"cls": Worker, "options": {"nthreads": 1, "dashboard": False}}
    options = {"host": "127.0.0.1", "port": 0, "dashboard": False}
    cluster = SpecCluster(scheduler={"cls": Scheduler, "options": options}, worker=worker)
    cluster.scale(1)

    class Joining(Progress):
        def finished(self, label: str, seconds: float) -> None:
            cluster.scale(2)
            cluster.wait_for_workers(2)

    store = Store(tmp_path)
    place = cluster.scheduler_address.removeprefix("tcp://")
    monkeypatch.setenv("SQUARES_SLEEP", "0.5")
    with cluster, pytest.raises(UserError, match=r"later has numpy 0\.0\.1 .*are stored") as caught:
        execute([squares], "paper", store=store, on=f"dask://{place}", progress=Joining())
    assert "\n" not in str(caught.value)
    assert 1 <= len(results(store)) < 12


@pytest.mark.usefixtures("serial")
def test_a_scheduler_that_goes_away_is_one_line_and_the_run_resumes(squares, tmp_path, caplog):
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0",
        host="127.0.0.1", protocol="tcp",
    )  # fmt: skip

    class Ending(Progress):
        def finished(self, label: str, seconds: float) -> None:
            cluster.close()

    place = cluster.scheduler_address.removeprefix("tcp://")
    store = Store(tmp_path)
    with cluster, pytest.raises(UserError, match="is gone: finished cells are stored"):
        execute([squares], "paper", store=store, on=f"dask://{place}", progress=Ending())
    kept = len(results(store))
    assert kept >= 1
    again = execute([squares], "paper", store=store)
    assert (again.finished, again.reused, again.failures) == (12 - kept, kept, ())
    # Scheduler and worker, in this process here, may log how they lost each other; the client not.
    assert not [record for record in caplog.records if record.name == "distributed.client"]


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
