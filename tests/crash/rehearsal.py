"""Kill, stop or refuse a writer at each of its system calls, and say which states were wrong.

    LD_PRELOAD=LIBRARY python -m crash.rehearsal LIBRARY FOLDER STARTS WAYS WRITER...

A fork of this process writes; the library under it (`system_calls.c`) acts at the n-th call that
changes the folder, for n = 1, 2, ... until the writer has no further call. STARTS is `all` or
`old`, where the folder holds what the writer wrote before. Prints one JSON object.
"""

import ctypes
import errno
import faulthandler
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crash.writers import BY_NAME, DAMAGED, NAMES, Writer, freeze_clocks

from attlas.core.errors import UserError

COUNT, KILL, STOP, FAIL, FAIL_FROM_THEN_ON = range(5)
WROTE, HUNG, SPOKE, REFUSED, RAISED = 0, 1, 5, 6, 7
"""Exit codes of a writer: it wrote, hung, said a line, gave a UserError, a traceback."""
WAYS = {
    "killed": (KILL, 0),
    "EIO": (FAIL, errno.EIO),
    "EACCES": (FAIL, errno.EACCES),
    "ENOSPC from then on": (FAIL_FROM_THEN_ON, errno.ENOSPC),
    "beside a second writer": (STOP, 0),
    "killed beside a second writer": (STOP, 0),
}
BESIDE = ("beside a second writer", "killed beside a second writer")
BEGIN, END = "/an undisturbed run begins", "/an undisturbed run ends"
OLD, NEW, OTHER = 1, 2, 3
SECONDS = float(os.environ.get("CRASH_SECONDS", "20"))
"""A reader or writer that takes longer waits for what does not come: its stack is printed."""
DIE_WITH_PARENT = 1


class System:
    """The preloaded library."""

    def __init__(self, library: str):
        self._library = ctypes.CDLL(library)
        self._library.disarm.restype = ctypes.c_char_p

    def arm(self, below: Path, n: int, action: int, error: int) -> None:
        """Act at the n-th call below a folder; at none for 0."""
        self._library.arm(os.fsencode(below), n, action, error)

    def calls(self) -> list[str]:
        """The names of the calls since then."""
        return self._library.disarm().decode().split()


def snapshot(root: Path) -> dict[str, str]:
    """Every file and folder with its content, but what was set aside."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes().hex() if path.is_file() else "folder"
        for path in sorted(root.rglob("*"))
        if "quarantine" not in path.parts
    }


@dataclass(frozen=True)
class Scene:
    """A writer in a folder with a certain content, and what comes out of it undisturbed."""

    system: System
    writer: Writer
    room: Path
    start: str

    def fresh(self) -> Path:
        """The folder, with its content of before."""
        shutil.rmtree(self.room / "now", ignore_errors=True)
        shutil.copytree(self.room / "before", self.room / "now")
        return self.room / "now"

    def begin(self, root: Path, value: int, n: int = 0, action: int = COUNT, error: int = 0) -> int:
        """Start a process that writes a value; returns its number."""
        faulthandler.cancel_dump_traceback_later()  # its lock would stay closed in the child
        child = os.fork()
        if child:
            # Ends this process, too: nothing here may wait for a writer that stands still.
            faulthandler.dump_traceback_later(3 * SECONDS, exit=True)
            return child
        code = RAISED
        try:
            ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            if n:
                self.system.arm(root, n, action, error)
            code = SPOKE if self.writer.write(root, value) else WROTE
        except UserError:
            code = REFUSED
        finally:
            if code == RAISED:
                traceback.print_exc()
            (self.room / "calls").write_text("\n".join(self.system.calls()))
            os._exit(code)

    def calls(self) -> list[str]:
        """The calls of an undisturbed run; two look-ups enclose them for a tracer."""
        root = self.fresh()
        os.access(BEGIN, os.F_OK)
        self.system.arm(root, 0, COUNT, 0)
        self.writer.write(root, NEW)
        calls = self.system.calls()
        os.access(END, os.F_OK)
        return calls


def ended(child: int) -> int:
    """The exit code of a process; minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def waits(child: int) -> bool:
    """Whether a process sleeps, such as for a lock, or has ended."""
    for _ in range(400):
        state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        if state in "ZX":
            return True
        where = Path(f"/proc/{child}/wchan").read_text()
        if state == "S" and ("lock" in where or where == "0"):
            return True
        time.sleep(0.001)
    return False


def rehearse(scene: Scene, way: str) -> Iterator[tuple[int, list[str]]]:
    """Disturb a writer at every call; yields the number of each and what was wrong."""
    writer = scene.writer
    undisturbed = scene.fresh()
    old = writer.read(undisturbed)
    before = {content for content in snapshot(undisturbed).values() if content != "folder"}
    writer.write(undisturbed, NEW)
    new, after = writer.read(undisturbed), snapshot(undisturbed)
    writer.write(undisturbed, OTHER)
    other = writer.read(undisturbed)
    if DAMAGED in (new, other):
        raise ValueError(f"what '{writer.name}' wrote is read as damaged")
    empty = scene.room / "nothing"
    empty.mkdir(exist_ok=True)
    # What is damaged is absent between the time when it is set aside and the end.
    states = (old, new, *([writer.read(empty)] if old == DAMAGED else []))
    count = len(scene.calls())
    for n in range(1, count + 1):
        root = scene.fresh()
        child = scene.begin(root, NEW, n, *WAYS[way])
        faults = []
        if way in BESIDE:
            faults += _beside(scene, root, child, way, states, other)
        else:
            code = ended(child)
            seen = writer.read(root)
            if code == RAISED:
                faults.append("a traceback")
            if code == HUNG:
                faults.append("it hangs: its stack is on standard error")
            if seen not in ((new,) if code == WROTE and not writer.is_quiet else states):
                faults.append(f"neither old nor new: {str(seen)[:99]}")
            if way == "killed" and code != -signal.SIGKILL:
                faults.append(f"ended with {code}")
        if old == DAMAGED and not before & _everything(root):
            faults.append("what was damaged is lost")
        writer.write(root, NEW)
        if writer.read(root) != new:
            faults.append("the next run does not end as the undisturbed one")
        differing = sorted(snapshot(root).items() ^ after.items())
        if differing:
            names = sorted({name for name, _ in differing})
            faults.append(f"the next run leaves other files: {names}")
        faulthandler.cancel_dump_traceback_later()
        yield n, faults


def _everything(root: Path) -> set[str]:
    return {path.read_bytes().hex() for path in root.rglob("*") if path.is_file()}


def _beside(scene: Scene, root: Path, child: int, way: str, states: tuple, other: Any) -> list[str]:
    """A reader and a second writer come while the first one stands still."""
    new = states[1]
    faults = []
    os.waitpid(child, os.WUNTRACED)
    seen = scene.writer.read(root)
    if seen not in states:
        faults.append(f"a reader beside it sees {str(seen)[:99]}")
    second = scene.begin(root, OTHER)
    waits(second)
    seen = scene.writer.read(root) if way != BESIDE[1] else other
    if seen not in (*states, other):
        faults.append(f"a reader beside both sees {str(seen)[:99]}")
    os.kill(child, signal.SIGKILL if way == BESIDE[1] else signal.SIGCONT)
    codes = ended(child), ended(second)
    if RAISED in codes or REFUSED in codes or HUNG in codes:
        faults.append(f"the writers ended with {codes}")
    seen = scene.writer.read(root)
    if seen not in ((other,) if way == BESIDE[1] else (new, other)):
        faults.append(f"after both: {str(seen)[:99]}")
    return faults


def main(library: str, folder: str, starts: str, ways: str, *names: str) -> None:
    """Rehearse some writers in some ways, and print the counts and the faults."""
    freeze_clocks()
    system = System(library)
    faults: list[dict[str, Any]] = []
    tried: dict[str, int] = {}
    undisturbed: dict[str, list[str]] = {}
    for name in names or NAMES:
        writer = BY_NAME[name]
        for number, (start, prepare) in enumerate(writer.starts.items()):
            if starts == "old" and number:
                break
            room = Path(os.path.realpath(folder)) / f"{name}-{number}"
            (room / "before").mkdir(parents=True)
            prepare(room / "before")
            scene = Scene(system, writer, room, start)
            calls = undisturbed[f"{name}: {start}"] = scene.calls()
            for way in filter(None, ways.split(",")):
                # A reader of what is damaged waits, rightly, for the writer that stands still.
                if way in BESIDE and (writer.is_single or "damaged" in start):
                    continue
                for n, wrong in rehearse(scene, way):
                    tried[name] = tried.get(name, 0) + 1
                    if wrong:
                        place = {"writer": name, "start": start, "way": way, "n": n}
                        faults.append(place | {"call": calls[n - 1], "faults": wrong})
    sys.stdout.write(json.dumps({"tried": tried, "faults": faults, "calls": undisturbed}))


if __name__ == "__main__":
    main(*sys.argv[1:])
