"""Check claims under one mutant, in a process that has not imported attlas yet."""

import importlib
import signal
import sys
from collections.abc import Collection, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType
from typing import Any, NamedTuple, NoReturn

from benchmarks.mutants.mutant import ROOT, Fate, Mutant

SECONDS = 400
"""A mutant whose claims take longer does not end, which is noticed too."""
ALPHA = 1e-5
"""Error probability of a verdict, as in a check of the whole atlas."""


class Changed(MetaPathFinder, Loader):
    """Imports the changed source in place of the file."""

    def __init__(self, mutant: Mutant):
        self.module, self.path = mutant.module, str(mutant.path)
        self.code: CodeType = compile(mutant.source(), self.path, "exec")

    def find_spec(self, fullname: str, path: object = None, target: object = None):
        """Our module only; all others are looked for elsewhere."""
        if fullname != self.module:
            return None
        return spec_from_file_location(fullname, self.path, loader=self)

    def create_module(self, spec: ModuleSpec) -> None:
        """The default."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed code as the module."""
        exec(self.code, vars(module))


class Trial(NamedTuple):
    """A mutant with the claims that may notice it.

    Attributes:
        paper: whose claims are checked.
        mutant: the change.
        modules: names of the claims' modules that import the changed one.
        first: slugs of claims to try before the others.
    """

    paper: str
    mutant: Mutant
    modules: Collection[str]
    first: Sequence[str]


def outcome(trial: Trial) -> Fate:
    """Check the claims that use a module until one notices that it was changed.

    Args:
        trial: the mutant and the claims.

    Returns:
        What became of the mutant.

    Raises:
        RuntimeError: if attlas was imported before the change could be made.
    """
    paper, mutant, modules, first = trial
    if mutant.module in sys.modules:
        raise RuntimeError(f"{mutant.module} was imported before it could be changed")
    sys.meta_path.insert(0, Changed(mutant))
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(SECONDS)

    def fate(claim: str, defect: str, tried: int) -> Fate:
        return Fate(paper, mutant.name, mutant.digest, claim, defect, tried, mutant.sharpening)

    slug, tried = "import", 0
    # Whatever a wrong formula raises is how it is noticed.
    try:
        claims = load_claims(paper)
        files = {importlib.import_module(name).__file__ for name in modules}
        rest = [slug for slug, claim in claims.items() if claim.place[0] in files]
        for tried, slug in enumerate(dict.fromkeys((*first, *rest)), 1):
            if defects := defects_of(claims[slug]):
                return fate(slug, defects[0], tried)
    except Exception as error:  # noqa: BLE001
        told = f"{type(error).__name__}: {error}".replace(f"{ROOT}/", "")
        return fate(slug, told.splitlines()[0][:200], tried)
    return fate("", "", tried)


def _stop(number: int, frame: object) -> NoReturn:
    raise TimeoutError(f"no end within {SECONDS} s")


def load_claims(paper: str) -> dict[str, Any]:
    """The claims of a paper by slug.

    Args:
        paper: its key.

    Returns:
        Claims by the name that follows the paper's.
    """
    from attlas.verify.registry import find_claims

    return {c.name.partition("/")[2]: c for c in find_claims([paper])}


def defects_of(claim: Any) -> tuple[str, ...]:
    """How a claim comes out otherwise than declared, after one round of search.

    Args:
        claim: a claim.

    Returns:
        One line each.
    """
    from attlas.verify.check import check

    return tuple(check(claim, alpha=ALPHA, challenge_rounds=1).defects)


def unsound(noticing: tuple[str, Collection[str]]) -> dict[str, str]:
    """Claims that come out otherwise than declared though no formula was changed.

    Args:
        noticing: a paper, and the slugs of its claims that noticed mutants.

    Returns:
        Their first defects by slug.
    """
    paper, slugs = noticing
    claims = load_claims(paper)
    found = {slug: defects_of(claims[slug]) for slug in slugs}
    return {slug: defects[0] for slug, defects in found.items() if defects}
