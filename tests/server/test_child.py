"""The limits of a child process, each reached by code of a caller."""

import os
import threading
import time
from pathlib import Path

import pytest

from attlas.core.errors import UserError
from attlas.server.child import Limits, resident_memory, run_task

GIB = 2**30


def refusal(source: str, limits: Limits, tmp_path: Path, **options) -> str:
    with pytest.raises(UserError) as refused:
        run_task("check", {"source": source}, limits, results=tmp_path, **options)
    line = str(refused.value)
    assert "\n" not in line
    return line


@pytest.mark.thorough
def test_an_endless_loop_ends_with_its_time_and_its_children(tmp_path):
    mark = tmp_path / "pid"
    source = f"""
import subprocess, pathlib
child = subprocess.Popen(["sleep", "600"])
pathlib.Path({str(mark)!r}).write_text(str(child.pid))
while True:
    pass
"""
    started = time.monotonic()
    assert refusal(source, Limits(seconds=6.0), tmp_path).endswith("it took more than 6 s")
    assert time.monotonic() - started < 20
    state = Path("/proc", mark.read_text(), "stat")
    deadline = time.monotonic() + 10
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "the child's own child lives on"
        time.sleep(0.1)


@pytest.mark.thorough
def test_memory_is_limited_in_one_process_and_over_several(tmp_path):
    limits = Limits(seconds=60.0, memory=GIB)
    alone = "kept = bytearray(2 * 10**9)"  # of zeros, which no page holds yet
    assert "MemoryError" in refusal(alone, limits, tmp_path)
    # Each of both stays below the limit, and together they exceed it.
    together = """
import os, time
os.fork()
kept = bytearray(700 * 10**6)
kept[::4096] = b"a" * len(kept[::4096])
time.sleep(60)
"""
    assert "it used more than 1 GiB of memory" in refusal(together, limits, tmp_path)


@pytest.mark.thorough
def test_files_and_variables_are_limited(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "of the caller")
    limits = Limits(file=10**6)
    file = f"open({str(tmp_path / 'file')!r}, 'wb').write(bytes(10**7))"
    assert "File too large" in refusal(file, limits, tmp_path)
    assert (tmp_path / "file").stat().st_size <= 10**6
    names = "import os\nraise ValueError(sorted(os.environ))"
    assert "SECRET" not in refusal(names, limits, tmp_path)
    raises = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (10**9, 10**9))"
    assert "not allowed to raise" in refusal(raises, limits, tmp_path)


@pytest.mark.thorough
def test_a_process_that_ends_itself_and_a_caller_that_cancels_are_one_line(tmp_path):
    left = refusal("import os\nprint('bye', flush=True)\nos._exit(3)", Limits(), tmp_path)
    assert left == "'check' ended without an answer (exit code 3): bye"
    stop = threading.Event()
    threading.Timer(4, stop.set).start()
    line = refusal("import time\ntime.sleep(600)", Limits(), tmp_path, stop=stop)
    assert line.endswith("the caller cancelled it")


def test_memory_of_a_session_that_is_not_there_is_zero():
    assert resident_memory(2**30) == 0
    assert resident_memory(os.getsid(0)) > 0
