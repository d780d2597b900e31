"""Four lists: each claim stands in one, with the reason beside it, and empty lists are shown."""

import dataclasses

from attlas.claims.claim import Kind
from attlas.claims.verdict import ChallengeReport, CheckReport, ControlReport, Outcome, Verdict
from attlas.site.claim_lists import claim_lists
from attlas.site.content import ClaimEntry, Source


def entry(claim, report=None, **fields):
    return ClaimEntry(claim, report, (), Source("claims_own.py", 1, ""), **fields)


def report(claim, outcome=Outcome.SUPPORTED, detection=(), challenge=None, **numbers):
    control = ControlReport("sides exchanged", Outcome.VIOLATED, Verdict(Outcome.VIOLATED, "said"))
    verdict = Verdict(outcome, "the reason", **numbers)
    return CheckReport(
        claim.name, verdict, (control,), Outcome.SUPPORTED, challenge, detection=detection
    )


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
        # One component is tight and the other is not: the worst one decides.
        entry(one, report(one, detection=(1e-9, 0.75), tightness=1.0)),
        entry(one, report(one, detection=(1.0,))),
        entry(one, report(one, tightness=0.25)),
        entry(limit, report(limit)),
    ]
    holds, loose, refuted, open_ = told(entries)
    assert holds == ["ratio 0.9999", "ratio 0.996", "exact up to rounding"]
    assert loose == [
        "would also pass with a right side smaller by a factor 4, not attacked",
        "would also pass with a right side smaller by any factor, not attacked",
        "would also pass with a right side smaller by a factor 4, not attacked",
        "decided as a limit: no constant is tested",
    ]
    assert refuted == open_ == []


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
    holds, loose, refuted, open_ = told(entries)
    assert holds == loose == []
    attacked = "counterexample by the attack, ratio 1.25, proved by interval arithmetic"
    assert refuted == [attacked, "the reason", "as expected"]
    changed = "changed since it was checked on 2026-11-21"
    assert open_ == ["not run", changed, "inconclusive", "its check needs investigation"]
