"""The pytest plugin: claims and their controls are test items, the witness is the failure message.

It collects files `claims_*.py` that import attlas, and the files that `claims` of `[tool.attlas]`
in the tested project's `pyproject.toml` names. Without such files it imports nothing else.

As with `attlas check`, stored instances of earlier searches in the results folder are evaluated
first, and counterexamples that an attack finds are stored there.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from attlas.claims.claim import Claim
    from attlas.claims.report_cases import Case
    from attlas.claims.verdict import CheckReport, Witness
    from attlas.experiments.store import Store

_IMPORTS = re.compile(rb"^\s*(?:from|import)\s+attlas\b", re.MULTILINE)
_SUFFIXES = (".py", ".ipynb")
_MOST_BYTES = 16_000_000
_RESULTS = "attlas_results"
_named = pytest.StashKey[frozenset[Path]]()
_reports = pytest.StashKey[dict[str, "CheckReport"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("attlas", "claims of attlas")
    group.addoption(
        "--attlas-effort",
        type=float,
        default=1.0,
        metavar="X",
        help="Search each inequality for X times two processor seconds; 1 by default, no search "
        "with 0.",
    )
    group.addoption(
        "--attlas-instances",
        type=int,
        metavar="N",
        help="Instances per claim; by default the claim's own number.",
    )
    description = "Results folder with stored witnesses, to which new ones are added"
    group.addoption(
        "--attlas-results",
        metavar="DIR",
        help=f"{description}; by default the setting {_RESULTS}, else ATTLAS_RESULTS, else "
        "attlas-results in the root of the tests.",
    )
    parser.addini(_RESULTS, f"{description}; relative to the root of the tests.", default="")


def results_of(config: pytest.Config) -> Path:
    """The results folder with the witnesses of the tested project; it need not exist.

    It is that of the command line, relative to where pytest was called; else that of the setting or
    of ATTLAS_RESULTS, or `attlas-results`, relative to the root of the tests.
    """
    named = config.getoption("--attlas-results")
    if named:
        return config.invocation_params.dir / named
    from attlas.experiments.store import FOLDER

    folder = config.getini(_RESULTS) or os.environ.get("ATTLAS_RESULTS") or FOLDER
    return config.rootpath / folder


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a file that defines claims; None for other files."""
    if file_path.suffix not in _SUFFIXES:
        return None
    config = parent.config
    if _named not in config.stash:
        config.stash[_named] = _files_of_project(config.rootpath)
    if file_path in config.stash[_named] or _is_claims_file(file_path):
        return ClaimsFile.from_parent(parent, path=file_path)
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection_finish(session: pytest.Session) -> Iterator[None]:
    """Let `--dist loadgroup` give all items of a claim to one worker."""
    # xdist 3.8 writes groups to `_nodeid`, which pytest 9.2 does not have any more, and reads them
    # from the identifiers, by which `--lf` finds what failed: those stay as they are.
    divided = session.config.getoption("loadgroup", default=False) and not hasattr(
        session, "_nodeid"
    )
    items = [item for item in session.items if divided and isinstance(item, ClaimItem)]
    for item in items:
        item.group = f"@{item.claim.name}"
    yield
    for item in items:
        item.group = ""


def _is_claims_file(path: Path) -> bool:
    """Whether a file is named `claims_*.py` and imports attlas: other projects have claims too."""
    if not (path.name.startswith("claims_") and path.suffix == ".py"):
        return False
    with path.open("rb") as file:
        return _IMPORTS.search(file.read(_MOST_BYTES)) is not None


def _files_of_project(root: Path) -> frozenset[Path]:
    """Files that `[tool.attlas]` of the tested project names."""
    table = root / "pyproject.toml"
    if not table.is_file() or b"tool.attlas" not in table.read_bytes()[:_MOST_BYTES]:
        return frozenset()
    from attlas.core.errors import UserError
    from attlas.projects.places import read_place
    from attlas.projects.project import project_of

    try:
        project = project_of(root)
        places = [] if project is None else [read_place(p, project.root) for p in project.claims]
    except UserError as error:
        raise pytest.UsageError(str(error)) from None
    return frozenset(file for place in places for file in place.files)


class ClaimFailed(Exception):
    """A claim or a control with an unexpected result."""

    def __init__(self, case: "Case"):
        super().__init__("\n".join([*case.failures, "", case.detail]))


class ClaimsFile(pytest.File):
    """A file that defines claims."""

    def collect(self) -> Iterator[pytest.Item]:
        """Load the file, and make an item of each claim and of each control, in their order.

        Raises:
            CollectError: if the file cannot be loaded; the message names the user's line.
        """
        from attlas.claims.report_cases import case_names
        from attlas.core.errors import UserError
        from attlas.verify.registry import claims_of

        try:
            claims = claims_of(str(self.path))
        except UserError as error:
            raise self.CollectError(str(error)) from None
        for claim in claims:
            # A claim that this file only imports belongs to the file that defines it.
            if self.path.suffix == ".py" and Path(claim.place[0]).resolve() != self.path.resolve():
                continue
            slug = claim.name.partition("/")[2]
            names = case_names(slug, tuple(control.description for control in claim.controls))
            for place, name in enumerate(names):
                # As text, so that pytest reads what stands in brackets as it does from its cache of
                # failures: by its default `--lf` would not find controls again.
                identifier = f"{self.nodeid}::{name}"
                yield ClaimItem.from_parent(
                    self, name=name, nodeid=identifier, claim=claim, place=place
                )


class ClaimItem(pytest.Item):
    """A claim, or one of its controls."""

    group = ""
    """What stands behind its identifier while xdist divides the items among workers."""

    def __init__(self, *, claim: "Claim", place: int, **options: Any):
        super().__init__(**options)
        self.claim, self.place = claim, place
        if self.config.pluginmanager.hasplugin("xdist"):
            # With `--dist loadgroup` one worker makes the check that all items of a claim share.
            self.add_marker(pytest.mark.xdist_group(name=claim.name))

    @property
    def nodeid(self) -> str:
        """The identifier, with its group behind it while xdist reads it to divide the items."""
        return super().nodeid + self.group

    def runtest(self) -> None:
        """Check the claim, once for it and its controls; raises ClaimFailed on a failure."""
        from attlas.claims.report_cases import cases

        report = self._report()
        case = cases(report)[self.place]
        if case.failures:
            raise ClaimFailed(case)
        if self.place == 0:
            self.add_report_section("call", "attlas", f"{case.detail}\n{self._searched(report)}")

    def _searched(self, report: "CheckReport") -> str:
        """A line on the search behind a claim that passes, or on why there was none."""
        from attlas.verify.searchable import why_not_attacked, why_not_moved

        if reason := why_not_attacked(self.claim):
            return f"search     none: {reason}"
        search = report.challenge
        if search is None:
            return "search     none: it was not asked for (--attlas-effort)"
        ratio = "no ratio" if search.ratio is None else f"largest left / right {search.ratio:.4g}"
        fresh = f" of fresh draws; {reason}" if (reason := why_not_moved(self.claim)) else ""
        return f"search     {search.evaluations:,} evaluations, {ratio}{fresh}"

    def _report(self) -> "CheckReport":
        from attlas.verify.check import check

        reports = self.session.stash.setdefault(_reports, {})
        if self.claim.name not in reports:
            store = self._results()
            reports[self.claim.name] = report = check(
                self.claim,
                count=self.config.getoption("--attlas-instances"),
                challenge=float(self.config.getoption("--attlas-effort") or 0),
                stored=self._stored_witness(store),
            )
            self._keep_witness(store, report)
        return reports[self.claim.name]

    def _results(self) -> "Store":
        from attlas.experiments.store import Store

        return Store(results_of(self.config), lambda note: self.warn(pytest.PytestWarning(note)))

    def _stored_witness(self, store: "Store") -> "Witness | None":
        """The stored instance of an earlier search."""
        from attlas.experiments.witness import stored_witnesses

        witnesses = stored_witnesses(store, [self.claim.name])
        return dict(witnesses[self.claim.name].arrays) if witnesses else None

    def _keep_witness(self, store: "Store", report: "CheckReport") -> None:
        """Store a counterexample; if that fails, the test failure still shows it."""
        from attlas.core.errors import UserError
        from attlas.experiments.witness import keep_witness

        if report.challenge is None or not report.challenge.violated:
            return
        try:
            keep_witness(store, self.claim.name, report.challenge, report.shrunk)
        except UserError as error:
            self.warn(pytest.PytestWarning(f"the counterexample could not be stored: {error}"))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The failure message with the witness, or a traceback if the user's code raised."""
        from attlas.core.errors import UserError

        if isinstance(excinfo.value, ClaimFailed | UserError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """File, line (from 0) and name of the claim."""
        return self.path, max(0, self.claim.place[1] - 1), self.name
