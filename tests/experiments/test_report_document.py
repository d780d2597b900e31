"""A report is the same after it was written as a document and arrays."""

import numpy as np

from attlas.claims.shrunk_witness import ShrunkWitness
from attlas.claims.verdict import ChallengeReport, CheckReport, ControlReport, Outcome, Verdict
from attlas.experiments.report_document import report_arrays, report_document, report_of


def violated(value):
    return Verdict(Outcome.VIOLATED, "no", slack=-1.0, witness={"x": np.array([value])})


def test_a_report_with_all_its_witnesses_comes_back():
    shrunk = ShrunkWitness("a/b", {"x": np.array([4.0])}, (), "1", "0", "confirmed", 7)
    report = CheckReport(
        "a/b",
        violated(1.0),
        (ControlReport("half", Outcome.VIOLATED, violated(2.0)),),
        Outcome.VIOLATED,
        ChallengeReport(1.5, True, 64, 10, violated(3.0)),
        shrunk=shrunk,
    )
    arrays = report_arrays(report)
    assert {name: float(array[0]) for name, array in arrays.items()} == {
        "verdict.x": 1.0,
        "control0.x": 2.0,
        "challenge.x": 3.0,
        "shrunk.x": 4.0,
    }
    document = {"report": report_document(report), "metadata": {}}
    again, _ = report_of(document, arrays)
    assert report_document(again) == document["report"]
    for mine, theirs in (
        (again.verdict, report.verdict),
        (again.controls[0].verdict, report.controls[0].verdict),
        (again.challenge.verdict, report.challenge.verdict),
    ):
        assert mine.witness["x"] == theirs.witness["x"]
    assert again.shrunk.arrays["x"] == 4.0
