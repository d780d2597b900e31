"""Where claims stand, as a badge says it: held, with a counterexample, open; never "verified"."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from attlas.claims.verdict import CheckReport, Outcome


class Standing(StrEnum):
    """What a reader may take from the last check of a claim."""

    HELD = "held"
    COUNTEREXAMPLE = "with a counterexample"
    OPEN = "open"


def standing(report: CheckReport | None) -> Standing:
    """Where one claim stands.

    A drawn instance or an attack is a counterexample, also where one is expected: that a printed
    statement is refuted says its erratum, which has read it with good will first. It held where
    its verdict is SUPPORTED and nothing about the check needs investigation: with a control that
    passed, the check could not have failed.

    Args:
        report: its last check, None where it was not run.

    Examples:
        >>> standing(None).value
        'open'
    """
    if report is None:
        return Standing.OPEN
    broken = report.challenge is not None and report.challenge.violated
    if report.verdict.outcome is Outcome.VIOLATED or broken:
        return Standing.COUNTEREXAMPLE
    held = report.verdict.outcome is Outcome.SUPPORTED and not report.defects
    return Standing.HELD if held else Standing.OPEN


def counts(reports: Iterable[CheckReport | None]) -> dict[Standing, int]:
    """How many claims have each standing.

    Args:
        reports: of claims, None where one was not run.

    Returns:
        A number for every standing, in the order of the badge.

    Examples:
        >>> {word.value: number for word, number in counts([None]).items()}
        {'held': 0, 'with a counterexample': 0, 'open': 1}
    """
    found = Counter(standing(report) for report in reports)
    return {each: found[each] for each in Standing}


def sentence(numbers: dict[Standing, int]) -> str:
    """The counts as a badge says them.

    Returns:
        Standings that are met, or "no claims".

    Examples:
        >>> sentence({Standing.HELD: 12, Standing.COUNTEREXAMPLE: 1, Standing.OPEN: 2})
        '12 held, 1 with a counterexample, 2 open'
    """
    return ", ".join(f"{n} {word}" for word, n in numbers.items() if n) or "no claims"
