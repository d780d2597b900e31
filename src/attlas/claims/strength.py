"""How strong a check is, in words: which errors it would have detected."""

from collections.abc import Iterator

from attlas.claims.verdict import (
    CheckReport,
    Limits,
    Outcome,
    Strength,
    limits_of,
    passing_factor,
)
from attlas.core.errors import refuse_misfits
from attlas.display.numbers import plain_number

_WORDS = {
    "SUPPORTED": "supported",
    "VIOLATED": "violated",
    "INCONCLUSIVE": "inconclusive",
    "NOT_APPLICABLE": "not applicable",
}


@refuse_misfits
def best_ratio(report: CheckReport) -> float | None:
    """The largest left / right of an instance of the check or its search, None without any.

    Examples:
        >>> from attlas.claims.verdict import ChallengeReport, CheckReport, Outcome, Verdict
        >>> held = Verdict(Outcome.SUPPORTED, "", tightness=0.5)
        >>> search = ChallengeReport(0.75, False, 1, 1, held)
        >>> best_ratio(CheckReport("a/b", held, (), Outcome.SUPPORTED, search))
        0.75
    """
    ratios = [report.verdict.tightness, report.challenge.ratio if report.challenge else None]
    return max((ratio for ratio in ratios if ratio is not None), default=None)


@refuse_misfits
def outcome_words(report: CheckReport) -> str:
    """The outcome with its strength: what would pass, or the ratio that was exhibited.

    Examples:
        >>> from attlas.claims.verdict import CheckReport, Outcome, Verdict
        >>> held = Verdict(Outcome.SUPPORTED, "", tightness=1e-6)
        >>> outcome_words(CheckReport("a/b", held, (), Outcome.SUPPORTED, detection=(1 - 1e-6,)))
        'supported (vacuous): a constant 1e6 times too small would not be detected'
        >>> outcome_words(CheckReport("a/b", held, (), Outcome.SUPPORTED, detection=(0.25,)))
        'supported (tested), ratio 0.75'
    """
    if report.outcome is not report.verdict.outcome:
        return f"{_WORDS[report.outcome]} by a search"
    word, ratio = _WORDS[report.outcome], report.ratio
    refuted = report.proof is not None and report.verdict.outcome is Outcome.VIOLATED
    if refuted or report.strength is Strength.PROVED:
        return f"{word} ({Strength.PROVED})"
    if ratio is None:
        return word
    word = f"{word} ({report.strength})"
    if report.strength in (Strength.ATTAINED, Strength.TESTED):
        return f"{word}, ratio {plain_number(ratio)}"
    return f"{word}: {_passes(1 / ratio if ratio else float('inf'))}"


def _passes(factor: float) -> str:
    if factor == float("inf"):
        return "a constant that is too small would never be detected"
    return f"a constant {plain_number(factor)} times too small would not be detected"


def detection_sentences(limits: Limits) -> Iterator[str]:
    """What a check would detect, in one sentence; none where no component has a size.

    Examples:
        >>> list(detection_sentences((0.25, 1e-13)))
        ['detects errors of the right side from 25 %, from 1e−11 % in the best component']
        >>> list(detection_sentences((0.999,)))
        ['the constant is hardly tested: one 1e+03 times too small would not be detected']
    """
    finite = [limit for limit in limits if limit is not None]
    factor = passing_factor(limits)
    if factor is None:
        return
    if Strength.of(1 / factor) is Strength.VACUOUS:
        where = " in one component" if len(finite) > 1 else ""
        size = "that is" if factor == float("inf") else f"{plain_number(factor)} times"
        yield f"the constant is hardly tested: one {size} too small would not be detected{where}"
        return
    best = f", from {_percent(min(finite))} in the best component" if len(finite) > 1 else ""
    yield f"detects errors of the right side from {_percent(max(finite))}{best}"


def strength_sentences(report: CheckReport) -> Iterator[str]:
    """Sentences on the proof, on the errors that would be detected, and on the attack.

    Examples:
        >>> from attlas.claims.verdict import CheckReport, Outcome, Verdict
        >>> report = ("a/b", Verdict(Outcome.SUPPORTED, ""), (), Outcome.SUPPORTED)
        >>> list(strength_sentences(CheckReport(*report, detection=(0.25,), exponents={"n": None})))
        ['detects errors of the right side from 25 %', 'no exponent of n is tested']
    """
    if report.proof is not None:
        yield report.proof.sentence()
    yield from detection_sentences(limits_of(report))
    for name, limit in report.exponents.items():
        if limit is None:
            yield f"no exponent of {name} is tested"
        else:
            yield f"detects errors of the exponent of {name} from {plain_number(limit)}"
    search = report.challenge
    if search is None:
        return
    text = f"attacked from {search.starts} starts"
    if search.evaluations:
        text += f" with {search.evaluations:,} evaluations".replace(
            ",", "\N{NARROW NO-BREAK SPACE}"
        )
    if search.violated:
        yield f"{text}: broken" + (f" ({search.certified})" if search.certified else "")
        return
    ratio = "" if search.ratio is None else f", best ratio {plain_number(search.ratio)}"
    yield f"{text}, by {search.method}{ratio}" + (f"; {search.stopped}" if search.stopped else "")


def _percent(share: float) -> str:
    return f"{plain_number(100 * share)} %"
