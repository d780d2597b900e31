"""Try one mutant in a forked child: put its code in place, run unit tests, then check claims.

The parent has imported the instrument and the libraries of the papers, and has computed nothing:
JAX has started no threads, so that a fork is safe, and a child costs what its tests cost. Tests
and claims compute when they are imported, which is left to the children.
"""

import ast
import contextlib
import gc
import importlib
import math
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

import pytest

from benchmarks.mutants.entered import Entry
from benchmarks.mutants.operators import ROOT, Function, Mutant, module_name, sources

ALPHA = 1e-5
"""Error probability of a verdict, as in a check of the whole atlas."""
TEST_SECONDS, CLAIM_SECONDS = 30, 20
"""The tests and the claims of one mutant take about so many seconds of the processor at most."""
SECONDS = 120
"""Seconds of the processor after which a mutant is ended: counted apart, not as killed."""


_FUNCTIONS: dict[tuple[str, str], list[FunctionType]] = {}
"""The functions of the process, behind whatever decorators, by file and qualified name."""


class Outcome(NamedTuple):
    """What became of a mutant.

    Attributes:
        result: "killed", "survived", "timeout", or "failed" where no code could be changed.
        by: the unit test or the claim that killed it; of what failed, why.
        claims: number of claims that were checked.
        complete: whether all tests and claims ran that enter the function.
    """

    result: str
    by: str = ""
    claims: int = 0
    complete: bool = True


class Trial(NamedTuple):
    """What a child does.

    Attributes:
        mutant: the change.
        tests: node ids of unit tests, in the order they are run.
        claims: full names of claims.
        all_entering: whether these are all tests and claims that enter the function.
    """

    mutant: Mutant
    tests: Sequence[str]
    claims: Sequence[str]
    all_entering: bool


def trial_of(mutant: Mutant, entries: Sequence[Entry]) -> Trial:
    """Choose what is run for a mutant among the tests and claims that enter its function.

    The examples of its own file come first, then the tests named after it, then the quickest.
    """
    path = Path(mutant.file)

    def order(entry: Entry) -> tuple[bool, bool, float]:
        place = entry.name.partition("::")[0]
        return place != mutant.file, path.stem not in Path(place).stem, entry.seconds

    tests = _within([e for e in sorted(entries, key=order) if e.is_test], TEST_SECONDS)
    claims = _within([e for e in sorted(entries, key=order) if not e.is_test], CLAIM_SECONDS)
    complete = len(tests) + len(claims) == len(entries)
    return Trial(mutant, tests, claims, complete)


def _within(entries: Sequence[Entry], seconds: float) -> list[str]:
    names, spent = [], 0.0
    for entry in entries:
        if names and spent + entry.seconds > seconds:
            continue
        names.append(entry.name)
        spent += entry.seconds
    return names


def load_libraries() -> None:
    """Import what the tests of `make test` import, shape checks included.

    Raises:
        RuntimeError: if an import has computed something: a fork would not be safe.
    """
    importlib.import_module("conftest")
    for name in ("hypothesis", "scipy.optimize", "scipy.stats", "xarray", "optax", "diffrax"):
        importlib.import_module(name)
    for file in sources():
        importlib.import_module(module_name(file))
    importlib.import_module("attlas.verify.check")
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            code = each.__code__
            _FUNCTIONS.setdefault((code.co_filename, code.co_qualname), []).append(each)
    gc.collect()
    gc.freeze()


def put_in_place(mutant: Mutant) -> None:
    """Change the code and the defaults of the function in this process.

    Args:
        mutant: the change.

    Raises:
        LookupError: if no function has the code that is to be changed.
    """
    module = importlib.import_module(mutant.module)
    file, inner = str(module.__file__), mutant.function
    changed = _compiled(mutant.changed(), file, dict(vars(module)))
    matching = _FUNCTIONS.get((file, inner), [])
    if not matching:
        raise LookupError(f"no function has the code of {inner}")
    for each in matching:
        if each.__code__.co_freevars:
            raise LookupError(f"{inner} closes over {each.__code__.co_freevars}")
        each.__code__ = changed.__code__
        each.__defaults__, each.__kwdefaults__ = changed.__defaults__, changed.__kwdefaults__


def _compiled(function: Function, file: str, namespace: dict[str, Any]) -> FunctionType:
    exec(compile(ast.Module([function], []), file, "exec"), namespace)
    return namespace[function.name]


class _FirstFailure:
    """A pytest plugin that remembers which tests failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test that failed."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        """Note a file that could not be collected."""
        if report.failed:
            self.failed.append(report.nodeid)


def run_pytest(tests: Sequence[str], options: Sequence[str], plugin: object) -> int:
    """Run unit tests as `make test` does, thorough ones left out.

    Args:
        tests: files, or node ids of tests, in the repository.
        options: further options of pytest.
        plugin: what watches the tests.

    Returns:
        pytest's exit status.
    """
    with tempfile.TemporaryDirectory() as folder:
        quiet = ["-q", "-p", "no:xdist", "-o", f"cache_dir={folder}", f"--basetemp={folder}/tests"]
        # Hypothesis was imported by the parent: its own assertions need no rewriting.
        quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        return pytest.main([*quiet, *options, *(f"{ROOT}/{test}" for test in tests)], [plugin])


def run_tests(tests: Sequence[str], *, stop: bool) -> list[str]:
    """Run unit tests, and say which failed.

    Args:
        tests: files, or node ids of tests, in the repository.
        stop: whether to end at the first that fails.

    Returns:
        The tests that failed.

    Raises:
        RuntimeError: if pytest could not run them.
    """
    plugin = _FirstFailure()
    status = run_pytest(tests, ["-x"] * stop, plugin) if tests else 5
    if status not in (0, 5) and not plugin.failed:
        raise RuntimeError(f"pytest ended with {status!r} and no test failed")
    return plugin.failed


def attempt(trial: Trial) -> Outcome:
    """Put the mutant in place, run the tests, then check the claims."""
    try:
        put_in_place(trial.mutant)
    except (LookupError, SyntaxError, NameError) as error:
        return Outcome("failed", f"{type(error).__name__}: {error}")
    if failed := run_tests(trial.tests, stop=True):
        return Outcome("killed", failed[0])
    begun, tried = time.process_time(), 0
    for tried, name in enumerate(failing_claims(trial.claims), 1):
        if name:
            return Outcome("killed", name, tried)
        if time.process_time() - begun > 2 * CLAIM_SECONDS:
            break
    complete = trial.all_entering and tried == len(trial.claims)
    return Outcome("survived", "", tried, complete=complete)


def fail_anyway(names: Sequence[str]) -> list[str]:
    """Those of some tests and claims that fail as things are, without a change."""
    tests = [name for name in names if ".py" in name]
    claims = [name for name in names if name not in tests]
    return [*run_tests(tests, stop=False), *filter(None, failing_claims(claims))]


def as_users_have_it() -> None:
    """JAX without the strictness of the unit tests, in which some claims stop."""
    import jax

    jax.config.update("jax_numpy_dtype_promotion", "standard")
    jax.config.update("jax_numpy_rank_promotion", "allow")


def has_defects(claim: Any) -> bool:
    """Whether a claim comes out otherwise than it says; an error is one way to notice."""
    from attlas.verify.check import check

    try:
        return bool(check(claim, alpha=ALPHA, challenge=1).defects)
    except Exception:  # noqa: BLE001 (whatever a wrong formula raises is how it is noticed)
        return True


def failing_claims(names: Sequence[str]) -> Iterator[str]:
    """For each of some claims its name where it comes out otherwise than it says, else nothing."""
    from attlas.verify.registry import find_claims

    as_users_have_it()
    try:
        papers = sorted({name.partition("/")[0] for name in names})
        claims = {claim.name: claim for paper in papers for claim in find_claims([paper])}
    except Exception:  # noqa: BLE001 (claims that compute at import notice a wrong formula there)
        yield from names
        return
    for name in names:
        yield name if name in claims and has_defects(claims[name]) else ""


class _Child:
    """A forked process that computes one thing."""

    def __init__(self, function: Callable[[Any], Any], argument: Any) -> None:
        self.begun = time.monotonic()
        self.answer, end = multiprocessing.Pipe(duplex=False)
        self.number = os.fork()
        if self.number == 0:
            _become(function, argument, end)
        end.close()

    def outcome(self) -> Any:
        """What came of it; none while it runs."""
        late = time.monotonic() - self.begun > 5 * SECONDS
        if not late and not self.answer.poll():
            return None
        try:
            answer = self.answer.recv() if self.answer.poll() else Outcome("timeout")
        except EOFError:
            answer = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.number, signal.SIGKILL)
        _, status = os.waitpid(self.number, 0)
        self.answer.close()
        if answer is None:
            ended = os.WIFSIGNALED(status) and os.WTERMSIG(status)
            slow = ended in (signal.SIGXCPU, signal.SIGKILL)
            answer = Outcome("timeout") if slow else Outcome("killed", f"ended by signal {ended}")
        return answer


def run_children(
    jobs: Sequence[tuple[Any, Callable[[Any], Any]]], processes: int, minutes: float = math.inf
) -> Iterator[tuple[Any, Any]]:
    """Compute each job in a forked child of its own, some at a time.

    Args:
        jobs: arguments and what is computed of each.
        processes: number of children at a time.
        minutes: after which none is begun.

    Yields:
        The arguments and what came of each, as they end: an outcome "timeout" or "failed" where
        nothing did.
    """
    waiting, running, begun = list(jobs), [], time.monotonic()
    while waiting or running:
        if time.monotonic() - begun > 60 * minutes:
            waiting.clear()
        while waiting and len(running) < processes:
            argument, function = waiting.pop(0)
            running.append((argument, _Child(function, argument)))
        time.sleep(0.02)
        for argument, child in tuple(running):
            if (outcome := child.outcome()) is not None:
                running.remove((argument, child))
                yield argument, outcome


def _become(function: Callable[[Any], Any], argument: Any, answer: Any) -> NoReturn:
    """Compute it as the child, whose output nobody reads."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    sys.argv = ["pytest"]
    try:
        answer.send(function(argument))
    except BaseException as error:  # noqa: BLE001 (the parent reports whatever it was)
        answer.send(Outcome("failed", f"{type(error).__name__}: {error}"[:300]))
    os._exit(0)
