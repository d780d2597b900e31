"""A badge of the claims: the endpoint format of badge services, and an SVG picture."""

import json
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from attlas.claims.verdict import CheckReport, Outcome, Provenance
from attlas.site.evidence_level import EvidenceLevel, counts, evidence_level, standing

COLOURS = {"brightgreen": "#2e7d32", "yellow": "#8a6100", "red": "#b3261e", "lightgrey": "#5f6368"}
"""Names of colours of an endpoint, and our colours, with a contrast of at least 4.5 to white."""
_WIDE = frozenset("mwMW%@")
_SLIM = frozenset("ijl.,:;'|!()[] ftr")


def badge_document(
    results: Iterable[tuple[Provenance, CheckReport | None]], label: str = "attlas"
) -> dict[str, object]:
    """The badge in the form {schemaVersion, label, message, color} of an endpoint.

    It is red if a claim that should hold has a counterexample, and yellow if one is open. Expected
    counterexamples (of errata) are counted without changing the colour. Claims are counted for
    each provenance of their statement.

    Args:
        results: provenance and report of each claim; the report is None if it was not run.

    Examples:
        >>> document = badge_document([(Provenance.PRINTED, None), (Provenance.OWN, None)])
        >>> document["message"], badge_document([])["color"]
        ('as printed: 1 open; own: 1 open', 'lightgrey')
    """
    pairs = list(results)
    all_reports = [report for _, report in pairs]
    numbers = counts(all_reports)
    unexpected = any(
        report is not None
        and evidence_level(report) is EvidenceLevel.COUNTEREXAMPLE
        and report.expect is not Outcome.VIOLATED
        for report in all_reports
    )
    if unexpected:
        colour = "red"
    elif numbers[EvidenceLevel.OPEN]:
        colour = "yellow"
    else:
        colour = "brightgreen" if all_reports else "lightgrey"
    return {"schemaVersion": 1, "label": label, "message": standing(pairs), "color": colour}


def badge_svg(label: str, message: str, colour: str) -> str:
    """The badge as a picture that loads nothing.

    Args:
        colour: one of `COLOURS`.

    Examples:
        >>> badge_svg("attlas", "2 held", "brightgreen")[:5]
        '<svg '
    """
    left, right = _width(label), _width(message)
    width, title = left + right, f"{label}: {message}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" '
        f'viewBox="0 0 {width} 20" role="img" aria-label={quoteattr(title)}>'
        f"<title>{escape(title)}</title>"
        f'<rect width="{width}" height="20" rx="3" fill="{COLOURS[colour]}"/>'
        f'<path d="M3 0h{left - 3}v20h-{left - 3}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z" fill="#444"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" '
        'text-anchor="middle">'
        f"{_text(label, left / 2, left)}{_text(message, left + right / 2, right)}</g></svg>\n"
    )


def badge_text(
    file: Path, results: Iterable[tuple[Provenance, CheckReport | None]], label: str = "attlas"
) -> str:
    """The content of a badge file: an SVG picture if its name ends in .svg, else JSON.

    Examples:
        >>> badge_text(Path("badge.json"), [])[:22]
        '{"schemaVersion": 1, "'
    """
    document = badge_document(results, label)
    if file.suffix.lower() != ".svg":
        return json.dumps(document, ensure_ascii=False) + "\n"
    return badge_svg(label, str(document["message"]), str(document["color"]))


def _width(text: str) -> int:
    """Approximate width in pixels of a text of font size 11, with a margin."""
    return 10 + round(sum(10.5 if c in _WIDE else 4.4 if c in _SLIM else 7 for c in text))


def _text(text: str, middle: float, width: int) -> str:
    # A fixed text length keeps any font of the reader's machine inside the badge.
    return (
        f'<text x="{middle:g}" y="14" textLength="{width - 10}" '
        f'lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )
