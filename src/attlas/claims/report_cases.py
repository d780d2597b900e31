"""A report as test cases: the claim and each of its controls; a failure shows its witness."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attlas._files.plain_file import printable
from attlas.core.errors import refuse_misfits
from attlas.display.numbers import plain_number
from attlas.display.terminal import plain

if TYPE_CHECKING:
    from attlas.claims.shrunk_witness import ShrunkWitness
    from attlas.claims.verdict import CheckReport, Verdict

LARGEST = 64
"""Entries up to which an array of a witness is written whole."""


@dataclass(frozen=True)
class Case:
    """One test case.

    Attributes:
        name: the claim's name without its paper, with the control in brackets.
        failures: what is wrong, a line each; empty when the case passed.
        detail: the numbers and the witness behind it, in several lines.
        seconds: of the check, at the claim's own case.
        strength: of a supported claim, at its own case.
    """

    name: str
    failures: tuple[str, ...]
    detail: str
    seconds: float = 0.0
    strength: str = ""


def case_names(slug: str, controls: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the cases of a claim: its own, then one for each control, all different.

    Args:
        slug: the claim's name without its paper.
        controls: descriptions of its controls.

    Examples:
        >>> case_names("lemma-1", ("half", "half"))
        ('lemma-1', 'lemma-1[half]', 'lemma-1[half, 2]')
    """
    texts = [printable(plain(text)) for text in controls]
    again = [texts[:k].count(text) for k, text in enumerate(texts)]
    marks = [f"{text}, {n + 1}" if n else text for text, n in zip(texts, again, strict=True)]
    return (slug, *(f"{slug}[{mark}]" for mark in marks))


@refuse_misfits
def cases(report: "CheckReport") -> tuple[Case, ...]:
    """The cases of a report: the claim's, then one for each control.

    A control fails where its outcome is not the expected one, which shows that the check could
    not have failed; every other defect fails the claim.

    Examples:
        >>> from attlas.claims.verdict import CheckReport, Outcome, Verdict
        >>> report = CheckReport("a/b", Verdict(Outcome.VIOLATED, "1 > 0"), (), Outcome.SUPPORTED)
        >>> cases(report)[0].name, cases(report)[0].failures
        ('b', ('VIOLATED, expected SUPPORTED: 1 > 0',))
    """
    slug = report.claim.partition("/")[2] or report.claim
    names = case_names(slug, tuple(control.description for control in report.controls))
    # A counterexample of the attack is the instance to look at.
    search = report.challenge
    decisive = search.verdict if search and search.violated else report.verdict
    detail = "\n".join(_lines(report, decisive, report.shrunk))
    wrong = tuple(map(plain, report.claim_defects))
    test_cases = [Case(names[0], wrong, detail, report.seconds, report.strength or "")]
    for name, control in zip(names[1:], report.controls, strict=True):
        wrong = () if control.as_expected else (plain(control.defect),)
        detail = "\n".join(_lines(report, control.verdict))
        test_cases.append(Case(name, wrong, detail))
    return tuple(test_cases)


@refuse_misfits
def witness_text(witness: Mapping[str, np.ndarray]) -> str:
    """The arrays of a witness as text that Python reads, sorted; large ones by shape and range.

    Examples:
        >>> print(witness_text({"x": np.array([1.0, 0.25]), "W": np.zeros((9, 9))}))
        W = 9 × 9 entries between 0 and 0
        x = [1.  , 0.25]
    """
    return "\n".join(_assigned(name, np.asarray(value)) for name, value in sorted(witness.items()))


def _assigned(name: str, array: np.ndarray) -> str:
    begin = f"{name} = "
    if array.size > LARGEST:
        shape = " × ".join(map(str, array.shape))
        if array.dtype.kind not in "fiu":
            return f"{begin}{shape} entries"
        low, high = plain_number(float(array.min())), plain_number(float(array.max()))
        return f"{begin}{shape} entries between {low} and {high}"
    # As many digits as make the number again: the witness can be pasted into a test.
    text = np.array2string(array, separator=", ", floatmode="unique", max_line_width=96)
    return begin + text.replace("\n", "\n" + " " * len(begin))


def _lines(
    report: "CheckReport", verdict: "Verdict", shrunk: "ShrunkWitness | None" = None
) -> Iterator[str]:
    yield f"claim      {report.claim}"
    if report.statement:
        yield f"statement  {printable(report.statement)}"
    if report.provenance:
        yield f"provenance {report.provenance}"
    yield f"verdict    {verdict.outcome}: {plain(verdict.reason)}"
    if verdict.slack is not None:
        yield f"slack      {verdict.slack:.6g}"
    if verdict.tightness is not None:
        yield f"tightness  {verdict.tightness:.6g}"
    yield f"instances  {verdict.applicable} of {verdict.tried}, seed {verdict.seed}"
    witness = verdict.witness if shrunk is None else shrunk.arrays
    if witness:
        yield "witness"
        yield from ("  " + line for line in witness_text(witness).splitlines())
    if shrunk is not None:
        yield from (line[:11] + printable(line[11:]) for line in shrunk.lines())
