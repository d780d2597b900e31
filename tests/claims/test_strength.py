"""The words beside a verdict: a coarse check must not look like a sharp one."""

from dataclasses import replace

import pytest

from attlas.claims.strength import (
    best_ratio,
    detection_sentences,
    outcome_words,
    strength_sentences,
)
from attlas.claims.verdict import (
    ChallengeReport,
    CheckReport,
    Outcome,
    Strength,
    Verdict,
    limits_of,
    passing_factor,
    strengths,
)

HELD = Verdict(Outcome.SUPPORTED, "held", tightness=0.5, applicable=64, tried=64)


def report(*limits, tightness=0.5, **more):
    return CheckReport(
        "a/b", replace(HELD, tightness=tightness), (), Outcome.SUPPORTED, detection=limits, **more
    )


def searched(*limits, ratio, **more):
    return ChallengeReport(ratio, False, 64, 60, HELD, 3840, "moves", limits, **more)


def test_the_search_sharpens_the_limit_and_exhibits_tightness():
    found = report(0.5, 0.9, challenge=searched(0.001, 0.95, ratio=0.999))
    assert limits_of(found) == (0.001, 0.9)
    assert best_ratio(found) == 0.999
    assert passing_factor(limits_of(found)) == pytest.approx(10)
    assert limits_of(report(0.5, challenge=searched(ratio=0.7))) == (0.5,)


def test_the_verdict_says_what_would_pass():
    assert outcome_words(report(1 - 1.02**-1)) == "supported (attained), ratio 0.98"
    assert outcome_words(report(1 - 1e-6)).endswith("1e6 times too small would not be detected")
    assert outcome_words(report(1.5)).endswith(
        "a constant that is too small would never be detected"
    )
    # One component at 1 does not speak for a coarse one.
    assert outcome_words(report(0.001, 0.75)).startswith("supported (consistent): a constant 4 ")
    assert outcome_words(report()) == "supported"
    broken = replace(report(0.1), verdict=replace(HELD, outcome=Outcome.VIOLATED))
    assert outcome_words(broken) == "violated"


def test_sentences_name_constant_exponents_and_attack():
    found = report(0.25, challenge=searched(0.25, ratio=0.75), exponents={"n": 0.3, "d": None})
    assert list(strength_sentences(found)) == [
        "detects errors of the right side from 25 %",
        "detects errors of the exponent of n from 0.3",
        "no exponent of d is tested",
        "attacked from 64 starts with 3\N{NARROW NO-BREAK SPACE}840 evaluations, by moves, "
        "best ratio 0.75",
    ]
    broken = replace(searched(ratio=1.1, certified="proved"), violated=True)
    assert list(strength_sentences(report(challenge=broken)))[-1].endswith("broken (proved)")
    assert list(detection_sentences(())) == []


def test_a_level_is_of_the_least_tested_component_and_of_supported_verdicts_alone():
    assert report(0.05, 0.75, tightness=0.95).strength is Strength.CONSISTENT
    assert report(0.05, None, tightness=0.95).strength is Strength.ATTAINED
    assert report(1.5, tightness=None).strength is Strength.VACUOUS
    assert report(1.5, tightness=None).ratio == 0
    assert report(tightness=None).strength is None
    sharpened = report(0.75, challenge=searched(0.4, ratio=0.6))
    assert (sharpened.strength, sharpened.ratio) == (Strength.TESTED, pytest.approx(0.6))
    violated = report(0.05, challenge=replace(searched(0.0, ratio=1.1), violated=True))
    assert violated.strength is None
    refuted = replace(report(0.05), verdict=replace(HELD, outcome=Outcome.VIOLATED))
    assert refuted.strength is None
    assert strengths([refuted, sharpened, report(0.05)]) == "1 attained, 1 tested"
