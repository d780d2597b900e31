"""Files of others, spoilt at random: each reader answers or refuses in one line, within its budget.

An input is a good file, or one of the corpus in `tests/fuzz/<kind>/`, with one to four changes; an
input that is refused in a new way is changed further. All follows from the seed, which is printed
and another each day, and from the corpus. An input that is neither answered nor refused within two
seconds and 200 MB, or ends the process, is written into the corpus, which the tests read at each
run; its path is printed, and the exit status is 1.

    make fuzz                                               a minute of the processor, all kinds
    make fuzz SECONDS=3600 SEED=7                           longer, and others
    python tests/fuzz_readers.py config tokenizer           these kinds
    python tests/fuzz_readers.py --enlarge                  new ways of refusal go into the corpus
"""

import argparse
import gc
import hashlib
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from spoilt_files import KINDS, Kind, spoilt

from attlas._files.plain_file import Damaged
from attlas.core.errors import UserError

CORPUS = Path(__file__).parent / "fuzz"
CURRENT = Path(__file__).parents[1] / ".cache" / "fuzz"
"""The input that is being read, by its kind: what is left of a process that ended."""
SECONDS = 2.0
"""Of the processor for one input."""
MEMORY = 200e6
"""Bytes that the process may grow by at one input."""
ADDRESSES = 8 * 2**30
"""Of which JAX takes a part: more than that is a `MemoryError`, which is a finding."""
HANGS = 10 * SECONDS
STARTS = 120
"""Seconds in which a process has imported what it needs, on a loaded machine."""
LARGEST, MOST = 2000, 12
"""Bytes of an input that enlarges the corpus, and the number of inputs of one kind there."""


class Outcome(NamedTuple):
    """How an input was read.

    Attributes:
        wrong: what is wrong with it; empty for an answer or one line, soon.
        refusal: the line, without names and numbers; empty for an answer.
    """

    wrong: str
    refusal: str = ""


class Finding(NamedTuple):
    """An input that went wrong: its number, what is wrong, its content."""

    number: int
    wrong: str
    content: bytes


class _Hangs(BaseException):
    """Raised by the alarm."""


def _alarm(*_: Any) -> None:
    raise _Hangs


def _peak() -> int:
    """The most bytes of memory that the process had since `_forget_peak`; 0 where nobody counts."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    peak = re.search(r"VmHWM:\s*(\d+) kB", status)
    return 1024 * int(peak[1]) if peak else 0


def _forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return  # the peak then never falls, and is found late


def outcome(kind: Kind, folder: Path) -> Outcome:
    """How a folder is read."""
    _forget_peak()
    before, begin, refusal = _peak(), time.process_time(), ""
    usual = signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, HANGS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kind.read(folder)
    except (UserError, Damaged) as error:
        refusal = str(error)
        if not refusal or "\n" in refusal or len(refusal) > 1000:
            return Outcome(f"is not one line: {refusal[:200]!r}")
    except _Hangs:
        return Outcome("hangs")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"({frame.filename}:{frame.lineno})"
        return Outcome(f"{type(error).__name__}: {str(error)[:200]} {place}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, usual)
    seconds, growth = time.process_time() - begin, _peak() - before
    wrong = f"took {seconds:.1f} s" if seconds > SECONDS else ""
    wrong = wrong or (f"took {growth / 1e6:.0f} MB" if growth > MEMORY else "")
    return Outcome(wrong, re.sub(r"'[^']*'|[^ ]*[/\d][^ ]*", "", refusal)[:80])


def corpus_of(name: str) -> list[bytes]:
    """The inputs of a kind that are read at each run of the tests."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def tried(
    name: str, seed: int, number: int, corpus: Sequence[bytes], folder: Path
) -> tuple[Outcome, bytes]:
    """Read one spoilt input: how it went, and its content."""
    rng, kind = random.Random(f"{seed} {name} {number}"), KINDS[name]
    kind.make(folder, rng)
    (file,) = folder.glob(kind.name)
    good = file.read_bytes()
    content = rng.choice(corpus) if corpus and rng.random() < 0.5 else good
    content = spoilt(content, kind, rng)
    file.write_bytes(content)
    CURRENT.mkdir(parents=True, exist_ok=True)
    (CURRENT / f"{name}-{os.getpid()}").write_bytes(content)
    return outcome(kind, folder), file.read_bytes()


def findings(
    name: str, seed: int, seconds: float, most: float = math.inf
) -> tuple[int, list[Finding], dict[str, Finding]]:
    """Read spoilt inputs of a kind, at most `most`, for some seconds of the processor.

    Returns:
        How many were read, which went wrong, and the first of each way of refusal.
    """
    read_corpus(name, [CORPUS / name / "none"])  # imports what it needs
    corpus, refused, number, wrong = corpus_of(name), {}, 0, []
    begin = time.process_time()
    while number < most and time.process_time() - begin < seconds:
        with tempfile.TemporaryDirectory() as folder:
            result, content = tried(name, seed, number, corpus, Path(folder))
        if result.wrong.startswith("took"):  # a first call may import or compile
            with tempfile.TemporaryDirectory() as folder:
                result, content = tried(name, seed, number, corpus, Path(folder))
        if result.wrong:
            wrong.append(Finding(number, result.wrong, content))
        elif result.refusal and result.refusal not in refused and len(content) <= LARGEST:
            refused[result.refusal] = Finding(number, "", content)
            corpus.append(content)
        number += 1
        if number % 100 == 0:  # a process of tests looks for cycles seldom, and models hold some
            gc.collect()
    (CURRENT / f"{name}-{os.getpid()}").unlink(missing_ok=True)
    return number, wrong, refused


def read_corpus(name: str, paths: Iterable[Path]) -> list[Outcome]:
    """How inputs are read, each beside good files; a missing one is a good file itself."""
    kind, results = KINDS[name], []
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            kind.make(Path(folder), random.Random(0))
            (file,) = Path(folder).glob(kind.name)
            if path.exists():
                file.write_bytes(path.read_bytes())
            results.append(outcome(kind, Path(folder)))
    return results


def fuzz(kinds: Sequence[str], seed: int, seconds: float, enlarge: bool) -> bool:
    """Spoil and read; write and name what goes wrong. Whether nothing did."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    good = True
    for name in kinds:
        number, wrong, refused = findings(name, seed, seconds)
        counts = f"{number} inputs, {len(refused)} new ways of refusal, {len(wrong)} findings"
        sys.stdout.write(f"{name}: {counts}\n")
        seen: set[str] = set()
        for finding in wrong:
            good = False
            what = re.sub(r"[0-9]+|/tmp/[^ ]*", "", finding.wrong)[:80]
            if what not in seen:
                path = write_input(name, finding.content)
                sys.stdout.write(f"  {path}: {finding.wrong}\n")
            seen.add(what)
        room = MOST - len(corpus_of(name)) if enlarge else 0
        for finding in list(refused.values())[: max(0, room)]:
            write_input(name, finding.content)
        sys.stdout.flush()
    return good


def write_input(name: str, content: bytes) -> Path:
    """Add an input to the corpus of its kind, under a name made of its content."""
    path = CORPUS / name / hashlib.sha256(content).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def watched(command: Sequence[str], kinds: Sequence[str], seconds: float) -> bool:
    """Run the kinds in processes, a new one after each that an input ends.

    Args:
        command: to which the kinds that are left are added; it exits with 0, or 1 for findings.
        seconds: until a process hangs.

    Returns:
        Whether there was no finding.
    """
    good, remaining = True, list(kinds)
    while remaining:
        # A library in Rust that stops at an input need not show its stack.
        variables = {**os.environ, "RUST_BACKTRACE": "0"}
        with subprocess.Popen([*command, *remaining], env=variables) as process:
            try:
                process.wait(seconds)
                how = f"ends the process ({process.returncode})"
            except subprocess.TimeoutExpired:
                process.kill()
                how = "hangs"
        if how != "hangs" and process.returncode in (0, 1):
            return good and process.returncode == 0
        good = False
        (current,) = CURRENT.glob(f"*-{process.pid}") or (None,)
        name = current.name.rpartition("-")[0]
        sys.stdout.write(f"  {write_input(name, current.read_bytes())}: {how}\n")
        current.unlink()
        remaining = remaining[remaining.index(name) + 1 :]
    return good


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="all by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="of all kinds together")
    parser.add_argument("--seed", type=int, default=date.today().toordinal())
    parser.add_argument("--enlarge", action="store_true")
    parser.add_argument("--within", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    kinds = options.kinds or list(KINDS)
    if options.within:
        return int(not fuzz(kinds, options.seed, options.seconds, options.enlarge))
    sys.stdout.write(f"spoilt files: --seed {options.seed}\n")
    sys.stdout.flush()
    command = [sys.executable, __file__, "--within", "--seed", str(options.seed)]
    command += ["--seconds", str(options.seconds / len(kinds)), *["--enlarge"] * options.enlarge]
    return int(not watched(command, kinds, STARTS + 10 * options.seconds))


if __name__ == "__main__":
    sys.exit(main())
