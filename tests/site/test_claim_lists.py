"""Seven lists: each claim stands in one, with the reason beside it, and empty lists are shown."""

import dataclasses

from attlas.claims.claim import Kind
from attlas.claims.proof import Proof
from attlas.claims.verdict import (
    ChallengeReport,
    CheckReport,
    ControlReport,
    Outcome,
    Strength,
    Verdict,
)
from attlas.site.claim_entry import ClaimEntry, Source
from attlas.site.claim_lists import claim_lists, loose_claims


def entry(claim, report=None, **fields):
    return ClaimEntry(claim, report, (), Source("claims_own.py", 1, ""), **fields)


def report(claim, outcome=Outcome.SUPPORTED, detection=(), challenge=None, **numbers):
    control = ControlReport("sides exchanged", Outcome.VIOLATED, Verdict(Outcome.VIOLATED, "said"))
    verdict = Verdict(outcome, "the reason", **numbers)
    return CheckReport(
        claim.name, verdict, (control,), Outcome.SUPPORTED, challenge, detection=detection
    )


PROOF = Proof("expansion", "for all real x", {}, "", {}, "")


def told(entries):
    return [[listed.note for listed in each.claims] for each in claim_lists(entries)]


def test_what_holds_is_told_apart_by_what_a_stronger_statement_would_meet(claims):
    one = claims[0]
    exact = dataclasses.replace(one, kind=Kind.IDENTITY)
    limit = dataclasses.replace(one, kind=Kind.LIMIT)
    attack = ChallengeReport(0.996, False, 8, 50, Verdict(Outcome.SUPPORTED, ""), detection=(4e-3,))
    entries = [
        entry(one, report(one, detection=(1e-4,), tightness=0.9999)),
        entry(one, report(one, detection=(0.5,), tightness=0.5, challenge=attack)),
        entry(exact, report(exact, detection=(1e-13,))),
        entry(one, report(one, detection=(0.25,))),
        # One component is tight and the other is not: the worst one decides.
        entry(one, report(one, detection=(1e-9, 0.75), tightness=1.0)),
        entry(one, report(one, detection=(1.0,))),
        entry(limit, report(limit)),
        entry(exact, dataclasses.replace(report(exact, detection=(1e-13,)), proof=PROOF)),
    ]
    proved, attained, tested, consistent, vacuous, without, refuted, undecided = told(entries)
    assert proved == ["proved by expansion for all real x"]
    assert attained == ["best ratio 1, not attacked", "best ratio 0.996", "exact up to rounding"]
    assert tested == ["best ratio 0.75, not attacked"]
    assert consistent == ["best ratio 0.25, not attacked"]
    assert vacuous == ["best ratio 0, not attacked"]
    assert without == ["decided as a limit"]
    assert refuted == undecided == []
    loose = {each.level: [listed.note for listed in each.claims] for each in loose_claims(entries)}
    assert loose == {Strength.CONSISTENT: consistent, Strength.VACUOUS: vacuous}


def test_what_does_not_hold_and_what_is_not_decided_say_why(claims):
    one, wrong = claims[0], claims[2]
    broken = ChallengeReport(
        1.25, True, 8, 50, Verdict(Outcome.VIOLATED, ""), certified="proved by interval arithmetic"
    )
    unsound = dataclasses.replace(report(one), faults=("it moves nothing",))
    entries = [
        entry(one, report(one, challenge=broken)),
        entry(one, report(one, Outcome.VIOLATED)),
        entry(wrong, dataclasses.replace(report(wrong, Outcome.VIOLATED), expect=Outcome.VIOLATED)),
        entry(one),
        entry(one, outdated="2026-11-21"),
        entry(one, report(one, Outcome.INCONCLUSIVE)),
        entry(one, unsound),
    ]
    *holding, refuted, undecided = told(entries)
    assert holding == [[]] * 6
    attacked = "counterexample by the attack, ratio 1.25, proved by interval arithmetic"
    assert refuted == [attacked, "the reason", "as expected"]
    changed = "changed since it was checked on 2026-11-21"
    assert undecided == ["not run", changed, "inconclusive", "its check needs investigation"]
