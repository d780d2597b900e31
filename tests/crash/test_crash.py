"""Whatever system call a writer dies or fails at, what it wrote before is old or new, and whole."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from crash.outcomes import PAGE, RECORD, ROWS, page, publishable
from crash.rehearsal import BEGIN, END
from crash.writers import FAULTY, NAMES

HERE = Path(__file__).parent
SEED = 38
CAN_TRACE = (
    shutil.which("strace") is not None
    and not subprocess.run(
        ["strace", "-o", os.devnull, "true"], capture_output=True, check=False
    ).returncode
)
READING = re.compile(
    "access|close|fcntl|f?stat(fs|x)?|[fl]?(list|get)xattr|getcwd|getdents64|ioctl|lseek|lstat|mmap"
    "|newfstatat|poll|pread64|read|readlink"
)
ALONE = "killed,EIO,EACCES,ENOSPC from then on"
BESIDE = "beside a second writer,killed beside a second writer"


def rehearsed(
    library: Path, room: str, starts: str, ways: str, *names: str, under: Sequence[str] = ()
) -> dict[str, Any]:
    arguments = [str(library), room, starts, ways, *names]
    run = subprocess.run(
        [*under, sys.executable, "-W", "ignore", "-m", "crash.rehearsal", *arguments],
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(HERE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    sys.stderr.write(run.stderr)
    return json.loads(run.stdout)


def test_kill_9_at_every_call_of_every_writer_leaves_the_old_or_the_new(library, room):
    outcome = rehearsed(library, room, "old", "killed")
    assert outcome["faults"] == []
    assert set(outcome["tried"]) == set(NAMES)
    assert min(outcome["tried"].values()) >= 4


def changing_calls(trace: str, room: str) -> list[list[str]]:
    """The calls below a folder that do not only read, in each undisturbed run that strace saw."""
    runs: list[list[str]] = []
    is_inside = False
    changes = re.compile(rf"(?:\d+ +)?(\w+)\(.*{re.escape(room)}/[^/]+/now[/>\"]")
    for line in trace.splitlines():
        if BEGIN in line:
            runs.append([])
        is_inside = BEGIN in line or (is_inside and END not in line)
        call = changes.match(line) if is_inside else None
        is_read = (
            call and call[1] in ("open", "openat") and "O_RDONLY" in line and "O_CREAT" not in line
        )
        if call and not is_read and not READING.fullmatch(call[1]):
            runs[-1].append(call[1])
    return runs


def usual_name(call: str) -> str:
    """One name for the calls of the system and of libc that do the same."""
    return re.sub("(at|at2|64)$", "", re.sub("64$", "", call))


@pytest.mark.thorough
@pytest.mark.skipif(not CAN_TRACE, reason="strace is not installed or not allowed")
def test_strace_sees_no_change_that_the_library_does_not_see(library, room, tmp_path):
    trace, below = tmp_path / "trace", os.path.realpath(room)
    calls = "trace=%file,%desc,%network"
    strace = ["strace", "-f", "-y", "-s", "200", "-e", calls, "-o", str(trace)]
    outcome = rehearsed(library, room, "all", "", under=strace)
    seen = [[usual_name(call) for call in calls] for calls in outcome["calls"].values()]
    assert sum(map(len, seen)) > 500
    text = trace.read_text(errors="replace")
    assert [list(map(usual_name, run)) for run in changing_calls(text, below)] == seen


@pytest.mark.thorough
def test_a_writer_that_hangs_is_named_with_its_stack(library, room, monkeypatch, capfd):
    monkeypatch.setenv("CRASH_SECONDS", "1")
    outcome = rehearsed(library, room, "old", "EIO", "control: hangs where a call fails")
    assert {fault["faults"][0] for fault in outcome["faults"]} == {
        "it hangs: its stack is on standard error"
    }
    assert "in _hanging" in capfd.readouterr().err


def test_faulty_writers_are_noticed(library, room):
    ways = f"{ALONE.partition(',')[0]},{BESIDE.partition(',')[0]}"
    outcome = rehearsed(library, room, "old", ways, *(writer.name for writer in FAULTY[:3]))
    noticed = {(fault["writer"], fault["way"]) for fault in outcome["faults"]}
    in_place, removing, unlocked = (writer.name for writer in FAULTY[:3])
    assert {(in_place, "killed"), (removing, "killed"), (unlocked, "beside a second writer")} <= (
        noticed
    )
    assert (unlocked, "killed") not in noticed


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_every_failure_at_every_call_leaves_the_old_or_the_new(library, room, name):
    outcome = rehearsed(library, room, "all", ALONE, name)
    assert publishable(f"alone {name}", outcome) == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_beside_a_reader_and_a_second_writer_it_is_old_or_new(library, room, name):
    outcome = rehearsed(library, room, "all", BESIDE, name)
    assert publishable(f"beside {name}", outcome) == []


@pytest.mark.thorough
def test_600_flipped_bits_are_noticed_and_nothing_is_lost(room):
    command = [sys.executable, "-m", "crash.bit_flips", room, "600", str(SEED)]
    run = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    outcome = json.loads(run.stdout)
    assert publishable("flips", outcome) == []
    assert sum(outcome["tried"].values()) == 600
    assert min(outcome["noticed"].values()) >= 30  # a space may become a tabulator


def test_the_docs_say_what_was_tried():
    record = json.loads(RECORD.read_text())
    assert set(record["writers"]) == set(ROWS)
    assert PAGE.read_text() == page(record)
    assert sum(row["flips"] for row in record["writers"].values()) >= 600
