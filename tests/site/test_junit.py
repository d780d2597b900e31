"""JUnit XML: a case per claim and control, the witness in the failure, nothing that XML refuses."""

import xml.etree.ElementTree as ElementTree

import numpy as np

from attlas.claims.verdict import (
    ChallengeReport,
    CheckReport,
    ControlReport,
    Outcome,
    Provenance,
    Verdict,
)
from attlas.site.junit import junit_xml

HELD = Verdict(Outcome.SUPPORTED, "all hold", 0.5, 0.5, 64, 64)
BROKEN = Verdict(
    Outcome.VIOLATED, "excess <1> & \x00", -1.0, 2.0, 64, 64, witness={"x": np.array([0.1, 3.0])}
)
FALSE = ControlReport("the sign $\\eta$ lost", Outcome.VIOLATED, BROKEN)
TRUE = ControlReport("halved", Outcome.VIOLATED, HELD)


def test_cases_and_counts():
    reports = [
        CheckReport("a/one", HELD, (FALSE,), Outcome.SUPPORTED, seconds=1.5),
        CheckReport("a/two", BROKEN, (FALSE, TRUE), Outcome.SUPPORTED, seconds=0.5),
        CheckReport("b/one", BROKEN, (FALSE,), Outcome.VIOLATED),
        CheckReport(
            "b/two", HELD, (FALSE,), Outcome.SUPPORTED, ChallengeReport(2.0, True, 8, 9, BROKEN)
        ),
    ]
    root = ElementTree.fromstring(junit_xml(reports))
    assert root.attrib == {"name": "attlas"}
    assert [suite.get("failures") for suite in root] == ["2", "1"]
    assert [suite.get("time") for suite in root] == ["2.000", "0.000"]
    suites = {suite.get("name"): suite for suite in root}
    assert {name: suite.get("tests") for name, suite in suites.items()} == {"a": "5", "b": "4"}
    cases = {(c.get("classname"), c.get("name")): c for c in root.iter("testcase")}
    assert len(cases) == 9
    failed = {where: case[0] for where, case in cases.items() if len(case)}
    assert set(failed) == {("a", "two"), ("a", "two[halved]"), ("b", "two")}
    message = failed["a", "two"].get("message")
    assert message == "VIOLATED, expected SUPPORTED: excess <1> & \N{REPLACEMENT CHARACTER}"
    # The witness is in the text of whatever it breaks, to the last digit.
    assert "x = [0.1, 3. ]" in failed["a", "two"].text
    assert "x = [0.1, 3. ]" in failed["b", "two"].text
    assert failed["b", "two"].get("message") == "the challenge found a counterexample"
    assert failed["a", "two[halved]"].get("message") == (
        "control 'halved' is SUPPORTED, expected VIOLATED: all hold"
    )


def test_the_case_of_a_supported_bound_has_its_strength():
    report = CheckReport("a/one", HELD, (FALSE,), Outcome.SUPPORTED, detection=(0.25,))
    first, control = ElementTree.fromstring(junit_xml([report])).iter("testcase")
    assert first.find("properties/property").attrib == {"name": "strength", "value": "tested"}
    assert control.find("properties") is None


def test_claims_of_different_provenance_are_counted_in_different_suites():
    one = CheckReport("a/one", BROKEN, (), Outcome.SUPPORTED, provenance=Provenance.PRINTED)
    two = CheckReport("a/two", HELD, (TRUE,), Outcome.SUPPORTED, provenance=Provenance.OWN)
    root = ElementTree.fromstring(junit_xml([one, two]))
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [
        ("a, as printed", "1"), ("a, own", "2"),
    ]  # fmt: skip
    (failure,) = root[0].iter("failure")
    lines = [line.split()[0] for line in failure.text.splitlines()]
    assert lines[:3] == ["claim", "provenance", "verdict"]
