"""Which tests and claims enter a function: `python -m benchmarks.mutants.entered` writes the table.

Every test file, every module with examples and every paper's claims run once in a child, and a
profile notes the functions that each test enters. Caches are emptied before each test, so that
none is missed because another test has compiled the same program. What a fixture, or a file when
it is imported, enters counts for each test that uses it.
"""

import argparse
import functools
import gc
import hashlib
import importlib
import json
import math
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import pytest

from benchmarks.mutants.operators import PACKAGES, ROOT, sources

TABLE = ROOT / ".cache" / "mutants" / "entered.json"
OTHER_TESTS = ("audit", "claims", "core", "verify")
"""Folders of tests that are run besides those of the packages of formulas."""
_ROOTS = (f"{ROOT}/src/", f"{ROOT}/papers/")
_Key = tuple[str, str]


class Entry(NamedTuple):
    """A test or a claim that enters a function.

    Attributes:
        name: node id of a test, or full name of a claim.
        seconds: how long it took, with everything compiled or read from the cache.
    """

    name: str
    seconds: float

    @property
    def is_test(self) -> bool:
        """Whether it is a unit test."""
        return ".py" in self.name


@contextmanager
def profiled(entered: set[_Key]) -> Iterator[None]:
    """Note the functions that are called meanwhile, also in threads that begin meanwhile."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_filename.startswith(_ROOTS):
                entered.add((code.co_filename[len(f"{ROOT}/") :], code.co_qualname))

    before = sys.getprofile(), threading.getprofile()
    sys.setprofile(note)
    threading.setprofile(note)  # Ensembles are traced in threads that begin meanwhile.
    try:
        yield
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])


def _empty_caches() -> None:
    import jax

    jax.clear_caches()
    for cached in gc.get_objects():
        if isinstance(cached, functools._lru_cache_wrapper):
            file = getattr(getattr(cached.__wrapped__, "__code__", None), "co_filename", "")
            if file.startswith(str(ROOT)) and "/.venv/" not in file:
                cached.cache_clear()


class EnteredFunctions:
    """A pytest plugin: for each test that passes the functions it enters, and its seconds."""

    def __init__(self) -> None:
        self.entered: dict[str, set[_Key]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self._of_fixtures: dict[str, set[_Key]] = defaultdict(set)
        self._of_files: dict[str, set[_Key]] = defaultdict(set)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Any:
        """Note what importing a file enters."""
        with profiled(self._of_files[collector.nodeid]):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        """Note what a fixture of many tests enters."""
        del request
        with profiled(self._of_fixtures[fixturedef.argname]):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Note what a test enters."""
        _empty_caches()
        begun, functions = time.process_time(), self.entered.setdefault(item.nodeid, set())
        with profiled(functions):
            outcome = yield
        self.seconds[item.nodeid] = time.process_time() - begun
        for name in getattr(item, "fixturenames", ()):
            functions |= self._of_fixtures[name]
        functions |= self._of_files[item.nodeid.partition("::")[0]]
        return outcome

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test that fails or is skipped: it can kill nothing."""
        if report.failed or report.skipped:
            self.failed.add(report.nodeid)

    def rows(self) -> dict[str, tuple[float, list[_Key]]]:
        """Seconds and functions of the tests that passed."""
        return {
            name: (round(self.seconds.get(name, 0.0), 2), sorted(functions))
            for name, functions in self.entered.items()
            if name not in self.failed and functions
        }


def test_files() -> list[str]:
    """Files whose tests and examples are run, as `make test` collects them."""
    folders = [ROOT / "tests" / name for name in (*PACKAGES, *OTHER_TESTS)]
    folders += sorted((ROOT / "papers").glob("*/tests"))
    tests = [file for folder in folders for file in sorted(folder.rglob("test_*.py"))]
    return [file.relative_to(ROOT).as_posix() for file in (*tests, *sources())]


def entered_by_file(file: str) -> dict[str, tuple[float, list[_Key]]]:
    """Run the tests of a file in this process."""
    from benchmarks.mutants.trial import run_pytest

    plugin = EnteredFunctions()
    run_pytest([file], [], plugin)
    return plugin.rows()


def entered_by_claims(module: str) -> dict[str, tuple[float, list[_Key]]]:
    """Check the claims of a module of a paper in this process, as a trial does."""
    from attlas.verify.registry import find_claims
    from benchmarks.mutants.trial import as_users_have_it, has_defects

    as_users_have_it()
    file, rows = importlib.import_module(module).__file__, {}
    for claim in find_claims([module.partition(".")[0]]):
        if str(claim.place[0]) != file:
            continue
        _empty_caches()
        begun, functions = time.process_time(), set()
        with profiled(functions):
            defects = has_defects(claim)
        if not defects:
            rows[claim.name] = round(time.process_time() - begun, 2), sorted(functions)
    return rows


def claim_modules() -> list[str]:
    """Modules of the papers that may hold claims."""
    files = sorted((ROOT / "papers").glob("*/*.py"))
    return [
        f"{file.parent.name}.{file.stem}"
        for file in files
        if file.stem != "__init__" and (file.parent / "__init__.py").exists()
    ]


def _digest(name: str) -> str:
    file = ROOT / name if name.endswith(".py") else ROOT / "papers" / f"{name.replace('.', '/')}.py"
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def read_entered() -> dict[str, Any]:
    """The table: for each test file or module of claims its digest and its rows."""
    return json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else {}


def functions_entered(table: Mapping[str, Any]) -> dict[_Key, list[Entry]]:
    """For each function the tests and claims that enter it."""
    entries: dict[_Key, list[Entry]] = defaultdict(list)
    for stored in table.values():
        for name, (seconds, keys) in stored["rows"].items():
            for file, function in keys:
                entries[file, function].append(Entry(name, seconds))
    return dict(entries)


def renew(processes: int, only: str = "", minutes: float = math.inf) -> dict[str, Any]:
    """Run what is not in the table or has changed, and write it.

    Args:
        processes: how many children at a time.
        only: part of the names of the files and modules to run.
        minutes: after which none is begun.
    """
    from benchmarks.mutants.trial import run_children

    table = read_entered()
    units: list[str] = [n for n in (*test_files(), *claim_modules()) if only in n]
    current = [n for n in units if n in table and table[n]["digest"] == _digest(n)]
    jobs: Sequence[tuple[str, Callable[[str], Any]]] = [
        (name, entered_by_file if name.endswith(".py") else entered_by_claims)
        for name in units
        if name not in current
    ]
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    written = time.monotonic()
    for k, (name, rows) in enumerate(run_children(jobs, processes, minutes)):
        if isinstance(rows, dict):
            table[name] = {"digest": _digest(name), "rows": rows}
        count = len(rows) if isinstance(rows, dict) else rows
        print(f"{k + 1} of {len(jobs)}: {name}: {count}", flush=True)
        if time.monotonic() - written > 10:
            TABLE.write_text(json.dumps(table), "utf-8")
            written = time.monotonic()
    TABLE.write_text(json.dumps(table), "utf-8")
    return table


def main() -> int:
    """Write the table."""
    from benchmarks.mutants.trial import load_libraries

    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants.entered")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin none later")
    asked = parser.parse_args()
    load_libraries()
    functions = functions_entered(renew(asked.processes, asked.only, asked.minutes))
    print(f"{len(functions)} functions are entered by a test or a claim: {TABLE.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
