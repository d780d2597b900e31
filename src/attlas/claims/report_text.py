"""Claims, verdicts and reports of a check, as text and as small tables of a notebook."""

from collections.abc import Iterator

from markupsafe import Markup

from attlas.claims.claim import Claim, provenance_text
from attlas.claims.shrunk_witness import ShrunkWitness
from attlas.claims.strength import outcome_words, strength_sentences
from attlas.claims.verdict import CheckReport, Verdict
from attlas.core.errors import refuse_misfits, refuse_unreadable
from attlas.display.numbers import plain_number
from attlas.display.statements import prose, typeset
from attlas.display.tables import arrays_table, table
from attlas.display.terminal import plain


@refuse_misfits
def verdict_text(verdict: Verdict) -> str:
    """A verdict in one line, without the arrays of its witness.

    Examples:
        >>> from attlas.claims.verdict import Outcome, Verdict
        >>> verdict_text(Verdict(Outcome.SUPPORTED, "held", slack=0.25, applicable=64, tried=64))
        'SUPPORTED (held; slack 0.25; 64 of 64 instances, seed 0)'
    """
    return f"{verdict.outcome} ({'; '.join(_details(verdict))})"


@refuse_misfits
def verdict_html(verdict: Verdict) -> Markup:
    """A verdict with the instance that decides it.

    Examples:
        >>> from attlas.claims.verdict import Outcome, Verdict
        >>> "held" in verdict_html(Verdict(Outcome.SUPPORTED, "held"))
        True
    """
    rows = table((), [("outcome", str(verdict.outcome)), *_rows(verdict)])
    if verdict.witness is None:
        return rows
    return rows + arrays_table(verdict.witness, "the instance that decides")


@refuse_misfits
def report_text(report: CheckReport) -> str:
    """A report with one line per verdict.

    Examples:
        >>> from attlas.claims.verdict import CheckReport, Outcome, Verdict
        >>> held = Verdict(Outcome.SUPPORTED, "held", applicable=64, tried=64)
        >>> print(report_text(CheckReport("a/b", held, (), Outcome.VIOLATED)))
        a/b: SUPPORTED (held; 64 of 64 instances, seed 0)
          unexpected: SUPPORTED, expected VIOLATED: held
    """
    before = f"{report.provenance}: " if report.provenance else ""
    lines = [f"{report.claim}: {before}{_outcome_text(report)}"]
    lines += [f"  control '{plain(c.description)}': {c.verdict.outcome}" for c in report.controls]
    lines += [f"  {text}" for text in strength_sentences(report)]
    return "\n".join([*lines, *(f"  unexpected: {plain(text)}" for text in report.defects)])


def _outcome_text(report: CheckReport) -> str:
    """The verdict, after that of a search which contradicts it."""
    drawn, search = verdict_text(report.verdict), report.challenge
    if search is None or report.outcome is report.verdict.outcome:
        return drawn
    return f"{report.outcome} by a search ({search.verdict.reason}); drawn instances: {drawn}"


@refuse_misfits
def report_html(report: CheckReport) -> Markup:
    """A report as a table: the claim, its controls and its challenge, below the statement.

    Examples:
        >>> from attlas.claims.verdict import CheckReport, Outcome, Verdict
        >>> held = Verdict(Outcome.SUPPORTED, "held", applicable=64, tried=64)
        >>> "<caption>a/b: 64" in report_html(CheckReport("a/b", held, (), Outcome.SUPPORTED))
        True
    """
    verdict = report.verdict
    name = f"the claim, {report.provenance}" if report.provenance else "the claim"
    rows = [(name, outcome_words(report), verdict.slack, verdict.tightness, verdict.reason)]
    for control in report.controls:
        v = control.verdict
        name = f"control: {control.description}"
        rows.append((name, str(v.outcome), v.slack, v.tightness, v.reason))
    if search := report.challenge:
        text = f"{search.starts} starts, {search.evaluations} evaluations, by {search.method}"
        rows.append(("challenge", str(search.verdict.outcome), None, search.ratio, text))
    heads = ("", "outcome", "slack", "tightness", "reason")
    applicable = _instances(verdict)
    blocks = [typeset(report.statement)] if report.statement else []
    blocks.append(table(heads, rows, f"{report.claim}: {applicable}"))
    blocks += [Markup("<p>{}</p>").format(prose(text)) for text in strength_sentences(report)]
    blocks += [Markup("<p>unexpected: {}</p>").format(prose(text)) for text in report.defects]
    if report.shrunk is not None:
        blocks.append(shrunk_html(report.shrunk))
    return Markup("").join(blocks)


@refuse_unreadable
def shrunk_html(shrunk: ShrunkWitness) -> Markup:
    """A shrunk witness as a formula, with both sides and the line of Python that evaluates it.

    Examples:
        >>> import numpy as np
        >>> sides = ("3.0", "2.0", "confirmed in 60 digits")
        >>> shown = shrunk_html(ShrunkWitness("a/b", {"x": np.array([3.0, 0.0])}, (), *sides, 40))
        >>> "<code>attlas.replay(&#34;a/b&#34;, {&#34;x&#34;: [3.0, 0.0]})</code>" in shown
        True
    """
    parts = [
        typeset(shrunk.latex()),
        Markup("<p>left {}, right {}; {}</p>").format(
            shrunk.left, shrunk.right, prose(shrunk.reason)
        ),
    ]
    if python := shrunk.python():
        parts.append(Markup("<p><code>{}</code></p>").format(python))
    return Markup("").join(parts)


@refuse_misfits
def claim_html(claim: Claim) -> Markup:
    """A claim with its statement, its remark, its assumptions and its controls.

    Examples:
        >>> from attlas.claims.claim import Claim, Kind, Source, Status
        >>> words = ("a/b", "a", "Lemma 1", "$x = x$", "", Kind.IDENTITY, Status.NEW, Source.FOUND)
        >>> "Lemma 1, a/b" in claim_html(Claim(*words, abs, dict, ()))
        True
    """
    rows = [
        ("kind", str(claim.kind)),
        ("provenance", f"{provenance_text(claim)}; text {claim.source}"),
    ]
    rows += [("assumes", assumption.text) for assumption in claim.assumptions]
    rows += [("control", control.description) for control in claim.controls]
    remark = Markup("<p>{}</p>").format(prose(claim.remark)) if claim.remark else Markup("")
    return typeset(claim.statement) + remark + table((), rows, f"{claim.locator}, {claim.name}")


def _instances(verdict: Verdict) -> str:
    text = f"{verdict.applicable} of {verdict.tried} instances, seed {verdict.seed}"
    if verdict.distinct and verdict.distinct < verdict.applicable:
        text += f", {verdict.distinct} distinct"
    if verdict.refused_violate:
        text += f", {verdict.refused_violate} of the refused ones violate it"
    return text


def _details(verdict: Verdict) -> Iterator[str]:
    if verdict.reason:
        yield plain(verdict.reason)
    for name in ("slack", "tightness"):
        value = getattr(verdict, name)
        if value is not None:
            yield f"{name} {plain_number(value)}"
    yield _instances(verdict)


def _rows(verdict: Verdict) -> Iterator[tuple[str, object]]:
    yield "reason", verdict.reason
    yield "slack", verdict.slack
    yield "tightness", verdict.tightness
    yield "instances", _instances(verdict)
    yield from verdict.statistics.items()
