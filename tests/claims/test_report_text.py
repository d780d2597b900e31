"""Verdicts, reports and claims as text and as tables."""

from dataclasses import replace

import numpy as np

from attlas.claims.claim import Control, Source, assume
from attlas.claims.report_text import (
    claim_html,
    report_html,
    report_text,
    verdict_html,
    verdict_text,
)
from attlas.claims.statement import inequality
from attlas.claims.verdict import ChallengeReport, CheckReport, ControlReport, Outcome, Verdict
from attlas.display.statements import typeset

HELD = Verdict(Outcome.SUPPORTED, "held", slack=0.25, tightness=0.5, applicable=40, tried=64)
BROKEN = Verdict(
    Outcome.VIOLATED, "excess <1>", slack=-0.1, witness={"W": np.array([[1.0, -2.0]])}, seed=3
)


def report(control=Outcome.VIOLATED):
    controls = (ControlReport("half of $x$", Outcome.VIOLATED, Verdict(control, "a reason")),)
    challenge = ChallengeReport(0.875, False, 8, 50, HELD)
    return CheckReport("paper/lemma", HELD, controls, Outcome.SUPPORTED, challenge)


def test_a_counterexample_of_the_search_stands_before_what_drawn_instances_say():
    search = ChallengeReport(1.2, True, 8, 50, BROKEN)
    broken = replace(report(), challenge=search)
    assert broken.outcome is Outcome.VIOLATED
    first = report_text(broken).splitlines()[0]
    assert first.startswith("paper/lemma: VIOLATED by a search (excess <1>); drawn instances: SUPP")
    assert "violated by a search" in report_html(broken)
    assert report().outcome is Outcome.SUPPORTED


def test_a_verdict_is_one_line_without_its_arrays():
    text = verdict_text(BROKEN)
    assert text == "VIOLATED (excess <1>; slack −0.1; 0 of 0 instances, seed 3)"
    assert repr(BROKEN) == text
    assert "tightness 0.5" in verdict_text(HELD)


def test_a_table_shows_the_witness_and_escapes_the_reason():
    found = verdict_html(BROKEN)
    assert "excess &lt;1&gt;" in found
    assert "the instance that decides" in found
    assert ">W<" in found
    assert "the instance that decides" not in verdict_html(HELD)


def test_a_report_has_a_line_per_verdict_and_per_defect():
    lines = report_text(report()).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("paper/lemma: SUPPORTED (held;")
    assert lines[1] == "  control 'half of x': VIOLATED"
    assert lines[2] == "  attacked from 8 starts, by moves, best ratio 0.875"
    *same, unexpected = report_text(report(control=Outcome.SUPPORTED)).splitlines()
    assert len(same) == 3
    assert unexpected.startswith("  unexpected: ")


def test_a_report_as_a_table_has_a_row_per_verdict():
    found = report_html(report())
    # One row of heads, then the claim, its control and its challenge.
    assert found.count("<tr>") == 4
    assert "40 of 64 instances, seed 0" in found
    assert "unexpected" not in found
    assert "<p>unexpected: " in report_html(report(control=Outcome.SUPPORTED))


def test_a_claim_shows_its_assumptions_and_controls():
    @inequality(
        "Lemma 1",
        Source.DERIVED,
        sample=lambda rng, count: {"x": rng.normal(size=count)},
        assumptions=[assume("x < 9", lambda x: x < 9)],
        controls=[Control("half the right side", factor=0.5)],
    )
    def half(x, *, factor=1.0):
        r"""$$x \le |x|$$

        Attained where $x \ge 0$.
        """
        return x, factor * abs(x)

    found = claim_html(half)
    assert found.startswith(typeset(half.statement))
    assert "x &lt; 9" in found
    assert "half the right side" in found
    assert 'Attained where <span class="kept"><math>' in found
    assert "own: new; text derived" in found
