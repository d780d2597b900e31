"""What a check says when a process of its own is killed."""

import contextlib
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from attlas.core.errors import UserError
from attlas.verify import pool
from attlas.verify.registry import find_claims


def test_a_killed_process_is_one_line(monkeypatch):
    class Dying:
        def submit(self, function, group):
            future: Future = Future()
            future.set_exception(BrokenProcessPool("terminated abruptly"))
            return future

    monkeypatch.setattr(pool, "worker_pool", lambda workers: contextlib.nullcontext(Dying()))
    with pytest.raises(UserError, match=r"died .*--processes 1") as caught:
        list(pool.check_all(find_claims(["lemma-12"])))
    assert "\n" not in str(caught.value)
