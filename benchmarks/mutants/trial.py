"""Try one mutant in a forked child: put its code in place, run unit tests, then check claims.

The parent has imported the instrument and the libraries of the papers, and has computed nothing:
JAX has started no threads, so that a fork is safe, and a child costs what its tests cost. Tests
and claims compute when they are imported, which is left to the children.
"""

import ast
import contextlib
import gc
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

import pytest

from benchmarks.mutants.imports import module_name
from benchmarks.mutants.operators import ROOT, Function, Mutant, sources

ALPHA = 1e-5
"""Error probability of a verdict, as in a check of the whole atlas."""
CLAIM_SECONDS = 20
"""Claims of one mutant are begun for so many seconds of the processor."""
SECONDS = 240
"""Seconds of the processor after which a mutant is ended: counted apart, not as killed."""


_FUNCTIONS: dict[tuple[str, str], list[FunctionType]] = {}
"""The functions of the process, behind whatever decorators, by file and qualified name."""


class Outcome(NamedTuple):
    """What became of a mutant.

    Attributes:
        result: "killed", "survived", "timeout", or "failed" where no code could be changed.
        by: the unit test or the claim that killed it; of what failed, why.
        claims: number of claims that were checked.
        all_claims: whether these were all that import the module.
    """

    result: str
    by: str = ""
    claims: int = 0
    all_claims: bool = True


class Trial(NamedTuple):
    """What a child does.

    Attributes:
        mutant: the change; none to see that the tests pass without one.
        tests: paths of unit tests, in the order they are run.
        claims: names of modules of claims.
        deselected: tests that fail without a change.
    """

    mutant: Mutant | None
    tests: Sequence[str]
    claims: Sequence[str] = ()
    deselected: Sequence[str] = ()


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


def run_tests(files: Sequence[str], deselected: Sequence[str], *, stop: bool) -> list[str]:
    """Run unit tests as `make test` does, thorough ones left out.

    Args:
        files: paths in the repository.
        deselected: tests that are not run.
        stop: whether to end at the first that fails.

    Returns:
        The tests that failed.
    """
    plugin = _FirstFailure()
    with tempfile.TemporaryDirectory() as folder:
        options = [
            "-q",
            "-p",
            "no:xdist",
            "-o",
            f"cache_dir={folder}",
            f"--basetemp={folder}/tests",
        ]
        # Hypothesis was imported by the parent: its own assertions need no rewriting.
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        options += [f"--deselect={name}" for name in deselected] + ["-x"] * stop
        status = pytest.main([*options, *(str(ROOT / file) for file in files)], [plugin])
    if status not in (0, 5) and not plugin.failed:
        raise RuntimeError(f"pytest ended with {status!r} and no test failed")
    return plugin.failed


def _attempt(trial: Trial) -> Outcome:
    if trial.mutant is None:
        failed = run_tests(trial.tests, (), stop=False)
        failed += _failing_claims(trial.claims)
        return Outcome("killed" if failed else "survived", "\n".join(failed))
    try:
        put_in_place(trial.mutant)
    except (LookupError, SyntaxError, NameError) as error:
        return Outcome("failed", f"{type(error).__name__}: {error}")
    if failed := run_tests(trial.tests, trial.deselected, stop=True):
        return Outcome("killed", failed[0])
    return _check_claims(trial.claims)


def _check_claims(modules: Sequence[str]) -> Outcome:
    """Check the claims of some modules until one comes out otherwise than declared."""
    from attlas.verify.check import check
    from attlas.verify.registry import find_claims

    _as_users_have_it()
    begun, tried = time.process_time(), 0
    # Whatever a wrong formula raises is how it is noticed, also where claims are imported.
    name = "import"
    try:
        papers = dict.fromkeys(module.partition(".")[0] for module in modules)
        held = {c.name: c for paper in papers for c in find_claims([paper])}
        files = [importlib.import_module(module).__file__ for module in modules]
        listed = [c for file in files for c in held.values() if str(c.place[0]) == file]
        for claim in listed:
            if time.process_time() - begun > CLAIM_SECONDS:
                return Outcome("survived", "", tried, all_claims=False)
            name, tried = claim.name, tried + 1
            if check(claim, alpha=ALPHA, challenge_rounds=1).defects:
                return Outcome("killed", name, tried)
    except Exception:  # noqa: BLE001
        return Outcome("killed", name, tried)
    return Outcome("survived", "", tried)


def _as_users_have_it() -> None:
    """JAX without the strictness of the unit tests, in which some claims stop."""
    import jax

    jax.config.update("jax_numpy_dtype_promotion", "standard")
    jax.config.update("jax_numpy_rank_promotion", "allow")


def _failing_claims(names: Sequence[str]) -> list[str]:
    from attlas.verify.check import check
    from attlas.verify.registry import find_claims

    _as_users_have_it()
    papers = sorted({name.partition("/")[0] for name in names if "/" in name})
    held = {c.name: c for c in (find_claims(papers) if papers else ())}
    failing = []
    for name in names:
        try:
            if name in held and check(held[name], alpha=ALPHA, challenge_rounds=1).defects:
                failing.append(name)
        except Exception:  # noqa: BLE001 (an error counts as noticing where a formula is changed)
            failing.append(name)
    return failing


class Child:
    """A forked process that tries one mutant."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.begun = trial, time.monotonic()
        self.answer, end = multiprocessing.Pipe(duplex=False)
        self.number = os.fork()
        if self.number == 0:
            _become(trial, end)
        end.close()

    def outcome(self) -> Outcome | None:
        """What came of it; none while it runs."""
        late = time.monotonic() - self.begun > 5 * SECONDS
        if not late and not self.answer.poll():
            return None
        try:
            found = self.answer.recv() if self.answer.poll() else Outcome("timeout")
        except EOFError:
            found = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.number, signal.SIGKILL)
        _, status = os.waitpid(self.number, 0)
        self.answer.close()
        if found is None:
            ended = os.WIFSIGNALED(status) and os.WTERMSIG(status)
            slow = ended in (signal.SIGXCPU, signal.SIGKILL)
            found = Outcome("timeout") if slow else Outcome("killed", f"ended by signal {ended}")
        return found


def _become(trial: Trial, answer: Any) -> NoReturn:
    """Try it as the child, whose output nobody reads."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    sys.argv = ["pytest"]
    try:
        answer.send(_attempt(trial))
    except BaseException as error:  # noqa: BLE001 (the parent reports whatever it was)
        answer.send(Outcome("failed", f"{type(error).__name__}: {error}"[:300]))
    os._exit(0)
