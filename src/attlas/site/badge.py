"""A badge of the claims: the endpoint form that badge services read, and a picture of our own."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from attlas.claims.verdict import CheckReport, Outcome
from attlas.site.evidence_level import Standing, counts, sentence, standing

COLOURS = {"brightgreen": "#2e7d32", "yellow": "#8a6100", "red": "#b3261e", "lightgrey": "#5f6368"}
"""Of an endpoint, and as we draw them: white text on each has a contrast of at least 4.5."""
_WIDE = frozenset("mwMW%@")
_SLIM = frozenset("ijl.,:;'|!()[] ftr")


def badge_document(
    reports: Iterable[CheckReport | None], label: str = "attlas"
) -> dict[str, object]:
    """The badge in the form {schemaVersion, label, message, color} of an endpoint.

    It is red where a claim that should hold has a counterexample, yellow where one is open; where
    a counterexample is expected (of an erratum) it is counted and does not change the colour.

    Args:
        reports: of the claims, None where one was not run.

    Examples:
        >>> badge_document([None])["message"], badge_document([])["color"]
        ('1 open', 'lightgrey')
    """
    found = list(reports)
    numbers = counts(found)
    unexpected = any(
        report is not None
        and standing(report) is Standing.COUNTEREXAMPLE
        and report.expect is not Outcome.VIOLATED
        for report in found
    )
    if unexpected:
        colour = "red"
    elif numbers[Standing.OPEN]:
        colour = "yellow"
    else:
        colour = "brightgreen" if found else "lightgrey"
    return {"schemaVersion": 1, "label": label, "message": sentence(numbers), "color": colour}


def badge_svg(label: str, message: str, colour: str) -> str:
    """The badge as a picture that loads nothing.

    Args:
        colour: one of `COLOURS`.

    Examples:
        >>> badge_svg("attlas", "2 held", "brightgreen")[:5]
        '<svg '
    """
    left, right = _width(label), _width(message)
    whole, said = left + right, f"{label}: {message}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" '
        f'viewBox="0 0 {whole} 20" role="img" aria-label={quoteattr(said)}>'
        f"<title>{escape(said)}</title>"
        f'<rect width="{whole}" height="20" rx="3" fill="{COLOURS[colour]}"/>'
        f'<path d="M3 0h{left - 3}v20h-{left - 3}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z" fill="#444"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" '
        'text-anchor="middle">'
        f"{_text(label, left / 2, left)}{_text(message, left + right / 2, right)}</g></svg>\n"
    )


def badge_text(file: Path, reports: Sequence[CheckReport | None], label: str = "attlas") -> str:
    """The badge in the form that a file's name asks for.

    Args:
        file: ends in .svg for the picture; anything else is the endpoint's JSON.

    Returns:
        The content of the file.

    Examples:
        >>> badge_text(Path("badge.json"), [])[:22]
        '{"schemaVersion": 1, "'
    """
    document = badge_document(reports, label)
    if file.suffix.lower() != ".svg":
        return json.dumps(document, ensure_ascii=False) + "\n"
    return badge_svg(label, str(document["message"]), str(document["color"]))


def _width(text: str) -> int:
    """Pixels of a text of 11 pixels' height with a margin; its length is then fixed to fit."""
    return 10 + round(sum(10.5 if c in _WIDE else 4.4 if c in _SLIM else 7 for c in text))


def _text(text: str, middle: float, width: int) -> str:
    # The length is given, so that no font of the reader's machine runs over the edge.
    return (
        f'<text x="{middle:g}" y="14" textLength="{width - 10}" '
        f'lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )
