"""One task in a child process with limits of time and memory and few environment variables.

What runs there is code of a caller. The limits keep it from using up the machine; they do not
isolate it: it has the files, the network and the rights of the user.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attlas._jax.processes import checker_variables
from attlas.core.errors import UserError
from attlas.projects.places import TRUST

ALLOWED = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("ATTLAS_CACHE", "ATTLAS_CLAIMS", "ATTLAS_DATA", TRUST),
)
"""Environment variables of the server that the child gets, beside those of a process that checks
claims."""
LARGEST_ANSWER = 2**24
"""Bytes of an answer."""
INTERVAL = 0.1
"""Seconds between two looks at the memory of the child."""
_SHOWN = 2000
_GIB = 2**30


@dataclass(frozen=True)
class Limits:
    """What one task may use.

    Attributes:
        seconds: wall clock; the processor time of all cores together is limited accordingly.
        memory: bytes of resident memory of the child with all of its own children; each of them
            may map as many private bytes.
        file: bytes of a file that it writes.
    """

    seconds: float = 120.0
    memory: int = 4 * _GIB
    file: int = 2**28


def run_task(
    task: str,
    arguments: dict[str, Any],
    limits: Limits,
    *,
    results: Path = Path("attlas-results"),
    stop: threading.Event | None = None,
) -> dict[str, Any]:
    """Run a task of `attlas.server.tasks` in a child and return its answer.

    Args:
        task: name of the task.
        arguments: by name, as the schema of its tool says; plain JSON.
        results: folder of records and verdicts.
        stop: ends the task when it is set.

    Raises:
        UserError: if the task refuses its input, fails, or exceeds a limit; one line.

    Examples:
        >>> run_task("check", {"claims": ["lema-12"]}, Limits())
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: there is no claim or paper 'lema-12': did you mean ...
    """
    request = {
        "task": task,
        "arguments": arguments,
        "results": str(results.absolute()),
        "seconds": limits.seconds,
        "memory": limits.memory,
        "file": limits.file,
    }
    with tempfile.TemporaryDirectory(prefix="attlas-") as folder:
        answer, output = Path(folder, "answer.json"), Path(folder, "output.txt")
        with output.open("wb") as sink:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "attlas.server.task", str(answer)],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=_environment(folder),
                start_new_session=True,
            )
            try:
                reason = _watched(process, json.dumps(request), limits, stop)
            finally:
                _kill(process)
        if reason:
            raise UserError(f"'{task}' was ended: {reason}")
        return _read(task, process.returncode, answer, output)


def _environment(folder: str) -> dict[str, str]:
    """The variables of the child; its temporary files lie in the folder."""
    allowed = {name: os.environ[name] for name in ALLOWED if name in os.environ}
    return {**allowed, **checker_variables(1), "TMPDIR": folder, "JAX_PLATFORMS": "cpu"}


def _watched(
    process: "subprocess.Popen[bytes]", request: str, limits: Limits, stop: threading.Event | None
) -> str:
    """Wait until the child ends; the reason why it must end before, else empty."""
    pipe = process.stdin
    assert pipe is not None
    try:
        pipe.write(request.encode() + b"\n")
        pipe.flush()
    except BrokenPipeError:
        return ""  # it has ended already: its output says why
    deadline = time.monotonic() + limits.seconds
    while process.poll() is None:
        if time.monotonic() > deadline:
            return f"it took more than {limits.seconds:g} s"
        if stop is not None and stop.is_set():
            return "the caller cancelled it"
        if resident_memory(process.pid) > limits.memory:
            return f"it used more than {limits.memory / _GIB:g} GiB of memory"
        time.sleep(INTERVAL)
    return ""


def resident_memory(session: int) -> int:
    """Bytes of resident memory of all processes of a session; 0 without the folder /proc.

    Examples:
        >>> resident_memory(os.getsid(0)) > 2**20
        True
    """
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # The name of the program stands in brackets and may hold spaces.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                total += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            continue  # a process that ended meanwhile
    return total


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End the child and what it started in its session."""
    with contextlib.suppress(ProcessLookupError):  # all have ended
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _read(task: str, code: int, answer: Path, output: Path) -> dict[str, Any]:
    """The answer that the child wrote."""
    if not answer.is_file():
        with output.open("rb") as text:
            text.seek(max(0, output.stat().st_size - _SHOWN))
            lines = text.read().decode(errors="replace").split("\n")
        said = " / ".join(line.strip() for line in lines[-4:] if line.strip())
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise UserError(f"'{task}' ended without an answer ({how}): {said or 'it printed nothing'}")
    if answer.stat().st_size > LARGEST_ANSWER:
        raise UserError(
            f"the answer of '{task}' has more than {LARGEST_ANSWER} bytes: ask for less"
        )
    document = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in document:
        raise UserError(document["error"])
    return document
