"""The badge: what it counts, its colour, and a picture that is well-formed and loads nothing."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from attlas.claims.verdict import (
    ChallengeReport,
    CheckReport,
    ControlReport,
    Outcome,
    Provenance,
    Verdict,
)
from attlas.site.badge import COLOURS, badge_document, badge_svg, badge_text

HELD, BROKEN = (Verdict(outcome, "said") for outcome in (Outcome.SUPPORTED, Outcome.VIOLATED))
PRINTED, OWN = Provenance.PRINTED, Provenance.OWN
CONTROL = ControlReport("false", Outcome.VIOLATED, BROKEN)
GOOD = CheckReport("a/good", HELD, (CONTROL,), Outcome.SUPPORTED)
BAD = CheckReport("a/bad", BROKEN, (CONTROL,), Outcome.SUPPORTED)
ATTACKED = CheckReport(
    "a/b", HELD, (CONTROL,), Outcome.SUPPORTED, ChallengeReport(2.0, True, 1, 1, BROKEN)
)
ERRATUM = CheckReport("a/erratum", BROKEN, (), Outcome.VIOLATED)
TOOTHLESS = CheckReport(
    "a/t", HELD, (ControlReport("false", Outcome.VIOLATED, HELD),), Outcome.SUPPORTED
)


@pytest.mark.parametrize(
    ("reports", "message", "colour"),
    [
        (
            [GOOD] * 12 + [BAD] + [None, TOOTHLESS],
            "own: 12 held, 1 with a counterexample, 2 open",
            "red",
        ),
        ([GOOD, ATTACKED], "own: 1 held, 1 with a counterexample", "red"),
        ([GOOD, ERRATUM], "own: 1 held, 1 with a counterexample", "brightgreen"),
        ([GOOD, TOOTHLESS], "own: 1 held, 1 open", "yellow"),
        ([], "no claims", "lightgrey"),
    ],
)
def test_the_endpoint_counts_what_was_found(reports, message, colour):
    results = [(OWN, report) for report in reports]
    assert badge_document(results, "my paper") == {
        "schemaVersion": 1, "label": "my paper", "message": message, "color": colour,
    }  # fmt: skip


def test_no_number_adds_claims_of_different_provenance():
    results = [(OWN, GOOD), (PRINTED, GOOD), (OWN, GOOD), (PRINTED, ERRATUM)]
    assert badge_document(results)["message"] == (
        "as printed: 1 held, 1 with a counterexample; own: 2 held"
    )


def test_the_file_says_which_form_it_is():
    assert json.loads(badge_text(Path("b.json"), [(OWN, GOOD)]))["message"] == "own: 1 held"
    assert badge_text(Path("b.SVG"), [(OWN, GOOD)]).startswith("<svg")


def test_the_picture_is_escaped_and_loads_nothing():
    picture = badge_svg('<a href="x">&', "1 held", "red")
    root = ElementTree.fromstring(picture)
    texts = [node.text for node in root.iter() if node.tag.endswith("text")]
    assert texts == ['<a href="x">&', "1 held"]
    assert not {"href", "style", "src"} & {name for node in root.iter() for name in node.attrib}
    assert "verified" not in picture


def luminance(colour):
    parts = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_white_text_can_be_read_on_every_colour():
    for colour in (*COLOURS.values(), "#444444"):
        assert 1.05 / (luminance(colour) + 0.05) >= 4.5
