"""Claims on a dask cluster: the verdicts of this machine, or one line that says what is missing."""

import dataclasses

import dask.config
import numpy as np
import pytest
from distributed import LocalCluster

from attlas.core.errors import UserError
from attlas.experiments.dask_claims import check_on_dask, checked
from attlas.experiments.environment import environment
from attlas.experiments.report_document import report_document
from attlas.verify.check import check
from attlas.verify.check_many import RUN_ALPHA
from attlas.verify.registry import claims_of

OWN = """
import attlas as at

def numbers(rng, count):
    return {"x": rng.uniform(size=count)}

@at.inequality(sample=numbers, search_over="x", controls=[at.Control("half", factor=0.5)])
def squares(x, *, factor=1.0):
    "The square of a number below 1 is smaller."
    return x**2, factor * x
"""


def cluster(**given):
    return LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=":0", host="127.0.0.1",
        protocol="tcp", **given,
    )  # fmt: skip


def plain(report):
    return {**report_document(report), "seconds": None}


def test_a_cluster_gives_the_verdicts_of_this_machine(tmp_path):
    file = tmp_path / "claims_on_dask.py"
    file.write_text(OWN)
    (claim,) = claims_of(str(file))
    with cluster(processes=False) as there:
        on = there.scheduler_address.replace("tcp", "dask")
        asked = {"count": 40, "challenge": 1, "stored": {claim.name: {"x": np.array(0.999)}}}
        ((report, made),) = check_on_dask([claim], on=on, **asked)
    assert made == environment()
    here = check(claim, count=40, challenge=1, stored={"x": np.array(0.999)}, alpha=RUN_ALPHA / 2)
    assert plain(report) == plain(here)
    assert "tightest on the stored witness" in report.verdict.reason
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "100ms"}),
        pytest.raises(UserError, match="no dask scheduler answers"),
    ):
        list(check_on_dask([claim], on=on))


@pytest.mark.thorough
def test_what_a_worker_lacks_is_one_line(tmp_path, monkeypatch):
    file = tmp_path / "claims_on_dask.py"
    file.write_text(f"import only_installed_here\n{OWN}")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "only_installed_here.py").write_text("")
    with cluster(processes=True) as there:
        # The worker runs already: it does not look where this process looks from now on.
        monkeypatch.syspath_prepend(tmp_path / "elsewhere")
        (claim,) = claims_of(str(file))
        on = there.scheduler_address.replace("tcp", "dask")
        with pytest.raises(UserError, match="No module named 'only_installed_here'") as caught:
            list(check_on_dask([claim], on=on))
        assert "cannot import" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_refusal_of_a_worker_is_one_line(tmp_path):
    file = tmp_path / "claims_on_dask.py"
    file.write_text(OWN)
    (claim,) = claims_of(str(file))
    broken = dataclasses.replace(claim, name="claims_on_dask/cubes")
    with cluster(processes=False) as there:
        on = there.scheduler_address.replace("tcp", "dask")
        with pytest.raises(UserError, match=r"a worker of dask://.* says: the claim .*cubes"):
            list(check_on_dask([broken], on=on))


def test_what_a_check_raises_is_a_value_and_one_line():
    def fails():
        raise ZeroDivisionError("of\ntwo lines")

    told = checked(fails)
    assert told.startswith("could not check (ZeroDivisionError: of two lines): ")
    assert "\n" not in told
