"""What a check says when a process of its own is killed."""

import contextlib
import os
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from attlas._jax.processes import checker_variables
from attlas.core.errors import UserError
from attlas.verify import check_many as checks
from attlas.verify.registry import claims_at, find_claims

OWN = """
import attlas as at

def numbers(rng, count):
    return {"x": rng.uniform(size=count)}

def claim(sample):
    @at.inequality(sample=sample, controls=[at.Control("half", factor=0.5)])
    def squares(x, *, factor=1.0):
        "The square of a number below 1 is smaller."
        return x**2, factor * x
    return squares

squares = claim(numbers)
"""


def test_a_killed_process_is_one_line(monkeypatch):
    class Dying:
        def submit(self, group):
            future: Future = Future()
            future.set_exception(BrokenProcessPool("terminated abruptly"))
            return future

    monkeypatch.setattr(checks, "worker_pool", lambda workers: contextlib.nullcontext(Dying()))
    for name in checker_variables(2):  # a process that was started under them checks by itself
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match=r"died .*--processes 1") as caught:
        list(checks.check_all(find_claims(["lemma-12"])))
    assert "\n" not in str(caught.value)


def test_a_sampler_that_fails_on_many_instances_is_one_line(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "claims_few.py"
    file.write_text(OWN.replace("size=count", "size=count if count < 8 else 'many'"))
    (claim,) = find_claims([str(file)])
    with pytest.raises(UserError, match=r"claims_few.py:\d+: claim .* fails on 8 .* with ") as said:
        checks.check_group((str(file), [claim.name]), 8, [0], 0.1, 0, {})
    assert "\n" not in str(said.value)


@pytest.mark.thorough
def test_own_claims_are_checked_in_worker_processes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)  # puts the path of imports back
    file = tmp_path / "claims_own.py"
    file.write_text(OWN)
    (claim,) = find_claims([str(file)])
    before = dict(os.environ)
    (report,) = checks.check_all([claim], processes=1)
    assert (report.claim, report.defects) == ("claims_own/squares", ())
    assert len(report.source) == 64
    assert dict(os.environ) == before
    # A worker that finds other claims there says which is missing.
    file.write_text(OWN.replace("squares", "cubes"))
    with pytest.raises(
        UserError, match="the claim 'claims_own/squares' is defined in this process"
    ):
        claims_at(str(file), [claim.name])
