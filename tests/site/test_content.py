"""What the atlas holds, before it is a page."""

from dataclasses import replace

import pytest

from attlas.claims.verdict import ChallengeReport, CheckReport, ControlReport, Outcome, Verdict
from attlas.site.claim_entry import MARKS, ClaimEntry, Source
from attlas.site.content import Atlas, ExperimentEntry, PaperEntry, paper_order

SOURCE = Source("claims/lemma.py", 3, "")


def report(claim, outcome, control=Outcome.VIOLATED, challenged=False):
    verdict = Verdict(outcome, "a reason")
    controls = (ControlReport("false", Outcome.VIOLATED, Verdict(control, "")),)
    challenge = ChallengeReport(0.5, False, 8, 50, verdict) if challenged else None
    return CheckReport(claim.name, verdict, controls, claim.expect.outcome, challenge)


@pytest.fixture
def paper(claims, experiments):
    plain, first, wrong, true_control, never, _ = claims
    reports = (
        (plain, report(plain, Outcome.SUPPORTED, challenged=True)),
        (first, report(first, Outcome.INCONCLUSIVE)),
        (wrong, report(wrong, Outcome.VIOLATED)),
        (true_control, report(true_control, Outcome.SUPPORTED, control=Outcome.SUPPORTED)),
        (never, None),
    )
    entries = tuple(ClaimEntry(claim, found, (), SOURCE) for claim, found in reports)
    shown = (ExperimentEntry(experiments[0], SOURCE),)
    return PaperEntry("julistiono2024optimizing", None, entries, (), (), shown)


def test_a_paper_counts_its_claims_by_outcome(paper):
    (group,) = paper.groups
    counts = {outcome: group.count(outcome) for outcome in MARKS}
    assert counts == {
        Outcome.SUPPORTED: 2,
        Outcome.VIOLATED: 1,
        Outcome.INCONCLUSIVE: 1,
        Outcome.NOT_APPLICABLE: 0,
        None: 1,
    }
    assert sum(counts.values()) == len(paper.claims)
    assert group.challenged == 1


def test_unexpected_are_a_verdict_and_a_control_but_no_expected_violation(paper):
    assert [entry.slug for entry in paper.claims if entry.unexpected] == ["first", "true-control"]
    assert paper.groups[0].unexpected == 2


def test_a_claim_without_a_report_is_not_run(paper):
    never = paper.claims[-1]
    assert (never.outcome, never.mark, never.unexpected) == (None, MARKS[None], False)
    assert never.mark.word == "not run"


def test_marks_differ_in_word_and_sign_not_by_colour_alone():
    assert set(MARKS) == {*Outcome, None}
    for part in zip(*MARKS.values(), strict=True):
        assert len(set(part)) == len(MARKS)


def test_the_atlas_lists_what_all_papers_hold(paper):
    other = replace(paper, key="other", claims=paper.claims[:2], experiments=())
    atlas = Atlas((paper, other))
    assert atlas.claims == paper.claims + paper.claims[:2]
    assert atlas.experiments == paper.experiments


def test_anchors_are_fragments_of_a_page(paper):
    assert paper.anchor == "paper-julistiono2024optimizing"
    assert paper.claims[3].anchor == "claim-julistiono2024optimizing-true-control"
    assert paper.experiments[0].anchor == "experiment-lines"


def test_statements_stand_in_the_order_of_the_paper():
    given = ["Theorem 2", "Lemma 13 (L2)", "Lemmas 4 and 5", "Appendix", "Lemma 4, corrected"]
    assert sorted(given, key=paper_order) == [
        "Appendix",
        "Lemmas 4 and 5",
        "Lemma 4, corrected",
        "Lemma 13 (L2)",
        "Theorem 2",
    ]
