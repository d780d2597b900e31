"""What a search for a counterexample found, as plain JSON."""

from typing import Any

import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.shrunk_witness import ShrunkWitness
from attlas.claims.verdict import ChallengeReport, Witness
from attlas.core.errors import refuse_misfits
from attlas.experiments.report_document import number_text, verdict_document

LARGEST_WITNESS = 10_000
"""Numbers of a witness that are written out."""


@refuse_misfits
def challenge_document(
    claim: Claim, report: ChallengeReport, seed: int, shrunk: ShrunkWitness | None = None
) -> dict[str, Any]:
    """A search as plain JSON: of `attlas challenge --json` and of the tool of `attlas mcp`.

    Args:
        seed: of the starting points of the search.
        shrunk: a simpler instance that violates the claim.

    Examples:
        >>> from attlas.claims.verdict import Outcome, Verdict
        >>> from attlas.verify.registry import one_claim
        >>> held = Verdict(Outcome.SUPPORTED, "held", witness={"x": np.array([0.5, np.inf])})
        >>> search = ChallengeReport(0.5, False, 64, 10, held)
        >>> document = challenge_document(
        ...     one_claim("julistiono2024optimizing/lemma-12"), search, 0
        ... )
        >>> document["witness"], document["shrunk"]
        ({'x': [0.5, 'inf']}, None)
    """
    return {
        "claim": claim.name,
        "expect": str(claim.expect.outcome),
        "violated": report.violated,
        "ratio": number_text(report.ratio),
        "method": report.method,
        "evaluations": report.evaluations,
        "seed": seed,
        "certified": report.certified,
        "verdict": verdict_document(report.verdict),
        "witness": _written(report.verdict.witness),
        "shrunk": None if shrunk is None else shrunk.document(),
    }


def _written(witness: Witness | None) -> dict[str, Any] | None:
    """A witness as lists of numbers; None where there is none, or it is too large to be written."""
    if witness is None or sum(np.size(v) for v in witness.values()) > LARGEST_WITNESS:
        return None
    return {name: _lists(np.asarray(value)) for name, value in witness.items()}


def _lists(value: Any) -> Any:
    """An array as nested lists of numbers; infinity and NaN as text."""
    if isinstance(value, np.ndarray):
        return _lists(value.tolist())
    if isinstance(value, list):
        return [_lists(part) for part in value]
    return number_text(value) if isinstance(value, float) else value
