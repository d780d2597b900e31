"""Verdicts that need not be computed again, since nothing that they follow from has changed.

A verdict follows from the sources of its claim with all that they import of its project and the
data which the project declares, from the sources of attlas, from the installed packages, from the
processor with the variables that XLA and BLAS read, and from the settings of the check. One sha256
of all of these is stored with it; it counts as unchanged where the sha256 of today is the same. The
imports of a claim reach 331 to 348 of the 545 modules of attlas, as `attlas` names all that is
public, so that the sha256 covers all of them except those that only show results.
"""

import datetime
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from attlas.claims.claim import Claim, provenance_of
from attlas.claims.verdict import CheckReport, Witness
from attlas.experiments.environment import PACKAGE, SHOWING
from attlas.experiments.store import Store
from attlas.experiments.verdicts import stored_report
from attlas.projects.loading import source_digest
from attlas.verify.check import search_effort
from attlas.verify.check_many import alpha_of

_VARIABLES = ("XLA_", "JAX_", "OMP_", "OPENBLAS_", "MKL_", "NPROC")
_OF_THE_CACHE = ("JAX_COMPILATION_CACHE", "JAX_PERSISTENT_CACHE")
_PROCESSOR = ("vendor_id", "model name", "flags", "Features", "CPU implementer", "CPU part")


@dataclass(frozen=True)
class CheckInputs:
    """The settings of a run of checks, and the machine on which it runs.

    Attributes:
        count: instances of each claim, or None for the number that each declares.
        alpha: error probability granted to each claim; statistical verdicts depend on it.
        rounds: searches for a counterexample, None for the default of each claim.
        effort: factor of two processor seconds for each search.
        witnesses: instances of earlier searches, by claim.
        machine: digest of processor, packages and variables, see `machine_digest`.
        package: digest of the sources of attlas, see `package_digest`.
    """

    count: int | None
    seed: int
    alpha: float
    rounds: int | None
    effort: float
    witnesses: Mapping[str, Witness]
    machine: str
    package: str

    def effort_of(self, claim: Claim) -> float:
        """The effort of the claim's search for a counterexample, 0 without one."""
        return search_effort(claim, self.rounds, self.effort)

    def digest(self, claim: Claim, source: str) -> str:
        """The sha256 of all that a verdict follows from, except the effort of its search.

        Args:
            source: of the claim, see `attlas.projects.loading.source_digest`.
        """
        # Without trials the error probability, which depends on the other claims, is not used.
        alpha = self.alpha if claim.kind.rule.trials else None
        witness = _witness_digest(self.witnesses.get(claim.name))
        settings = [self.count, self.seed, alpha, witness]
        return _digest([claim.name, source, self.package, self.machine, *settings])

    def package_is_same(self) -> bool:
        """Whether the sources of attlas are those with which the run began."""
        return self.package == package_digest()

    def stored_with(self, claim: Claim, report: CheckReport) -> dict[str, Any] | None:
        """The digest and the effort to store with a new report.

        Returns:
            None where the sources have changed since the run began, where the claim has none, or
            where the check read files that no digest covers.
        """
        source = source_digest(claim.place[0], claim.home)
        if not source or report.source != source or report.undeclared:
            return None
        return {"sha256": self.digest(claim, source), "effort": self.effort_of(claim)}


def check_inputs(
    claims: Sequence[Claim],
    count: int | None,
    seed: int,
    rounds: int | None,
    effort: float,
    witnesses: Mapping[str, Witness],
) -> CheckInputs:
    """The inputs of a run on this machine as it is now; see `CheckInputs`.

    Examples:
        >>> check_inputs((), None, 0, None, 1.0, {}).alpha
        0.005
    """
    alpha = alpha_of(len(claims))
    return CheckInputs(
        count, seed, alpha, rounds, effort, witnesses, machine_digest(), package_digest()
    )


def unchanged_reports(
    store: Store, claims: Iterable[Claim], inputs: CheckInputs
) -> dict[str, tuple[CheckReport, datetime.datetime]]:
    """The stored reports of the claims of which nothing has changed, with the time of each.

    A report that is not as expected is always computed again, so that all of it is shown. Where no
    search is requested, a report with one counts, without its search.

    Raises:
        UserError: if a report was written under another schema.
    """
    reports = {}
    for claim in claims:
        stored = stored_report(store, claim.name)
        if stored is None:
            continue
        report, metadata = stored
        written = metadata.get("inputs") or {}
        source = source_digest(claim.place[0], claim.home)
        effort = inputs.effort_of(claim)
        if (
            report.defects
            or not source
            or written.get("sha256") != inputs.digest(claim, source)
            or effort not in (0.0, written.get("effort"))
        ):
            continue
        challenge = report.challenge if effort else None
        reports[claim.name] = (
            replace(
                report,
                challenge=challenge,
                statement=claim.statement,
                provenance=provenance_of(claim),
            ),
            datetime.datetime.fromisoformat(metadata["finished"]),
        )
    return reports


def age_text(age: datetime.timedelta) -> str:
    """An age in its largest unit.

    Examples:
        >>> [age_text(datetime.timedelta(seconds=n)) for n in (0.3, 119, 7200, 200_000)]
        ['0 s', '1 min', '2 h', '2 d']
    """
    seconds = int(age.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def package_digest(package: Path = PACKAGE, without: tuple[str, ...] = SHOWING) -> str:
    """The sha256 of all files of attlas that can change a verdict, by path and content, as of now.

    Args:
        without: beginnings of the paths of files that are left out.

    Examples:
        >>> len(package_digest())
        64
    """
    digest = hashlib.sha256()
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            inside = Path(folder, name).relative_to(package).as_posix()
            if not inside.startswith(without):
                content = Path(folder, name).read_bytes()
                digest.update(f"{inside}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def machine_digest() -> str:
    """The sha256 of Python, the installed packages, the processor, and variables of XLA and BLAS.

    Examples:
        >>> machine_digest() == machine_digest()
        True
    """
    variables = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(_VARIABLES) and not name.startswith(_OF_THE_CACHE)
    }
    packages = sorted({path.name for folder in sys.path for path in _packages(Path(folder))})
    return _digest([sys.version, platform.platform(), _processor(), packages, variables])


def _packages(folder: Path) -> list[Path]:
    """The folders by which installed packages state their names and versions."""
    return [*folder.glob("*.dist-info"), *folder.glob("*.egg-info")] if folder.is_dir() else []


def _processor() -> list[str]:
    """What the system tells of its processors: the model and the instructions that it knows."""
    file = Path("/proc/cpuinfo")
    if not file.is_file():
        return [platform.processor()]
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return sorted({line for line in lines if line.startswith(_PROCESSOR)})


def _witness_digest(witness: Witness | None) -> list[list[Any]] | None:
    if witness is None:
        return None
    arrays = {name: np.asarray(value) for name, value in sorted(witness.items())}
    return [
        [name, str(a.dtype), list(a.shape), hashlib.sha256(a.tobytes()).hexdigest()]
        for name, a in arrays.items()
    ]


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
