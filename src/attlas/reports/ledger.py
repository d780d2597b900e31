"""The slack ledger: where a chain of inequalities loses its factor."""

import math
from collections.abc import Sequence

from attlas.reports.content import Chain, ChainLink, ClaimEntry, paper_order


def slack_ledger(entries: Sequence[ClaimEntry]) -> tuple[Chain, ...]:
    r"""The chains of a paper's claims, each link with the factor it loses.

    A link with tightness t = max lhs / rhs loses at least 1/t on every instance seen, so that a
    chain loses at least the product; best cases of different links may be different instances.
    Position 0 is the whole chain, evaluated from its first side to its last: it may lose far more
    than its links at their best, and then is the chain's factor. The share of a link is log(1/t)
    over the logarithm of that factor.

    Args:
        entries: claims of one paper; those with a `ledger` place take part.

    Returns:
        Chains in order of their names, links in proof order.

    Examples:
        >>> slack_ledger([])
        ()
    """
    names = {entry.claim.proof_step.chain for entry in entries if entry.claim.proof_step}
    return tuple(_chain(name, entries) for name in sorted(names, key=lambda n: (paper_order(n), n)))


def _chain(name: str, entries: Sequence[ClaimEntry]) -> Chain:
    placed = [
        (entry.claim.proof_step.position, index, entry)
        for index, entry in enumerate(entries)
        if entry.claim.proof_step and entry.claim.proof_step.chain == name
    ]
    members = [entry for _, _, entry in sorted(placed, key=lambda place: place[:2])]
    tightness = [_tightness(entry) for entry in members]
    losses = [None if t is None else max(0.0, -math.log(t)) for t in tightness]
    whole = [entry.claim.proof_step.position == 0 for entry in members if entry.claim.proof_step]
    pairs = zip(losses, whole, strict=True)
    known = [loss for loss in losses if loss is not None]
    total = max(sum(loss for loss, all_ in pairs if loss is not None and not all_), *known, 0.0)
    links = tuple(
        ChainLink(
            entry=entry,
            tightness=tight,
            factor=None if tight is None else 1 / tight,
            share=loss / total if loss and total else 0.0,
        )
        for entry, tight, loss in zip(members, tightness, losses, strict=True)
    )
    return Chain(name=name, links=links, factor=math.exp(min(total, 700.0)) if known else None)


def _tightness(entry: ClaimEntry) -> float | None:
    """The largest ratio that check or challenge found, if it is one."""
    if entry.report is None:
        return None
    found = [entry.report.verdict.tightness]
    if entry.report.challenge:
        found.append(entry.report.challenge.ratio)
    ratios = [ratio for ratio in found if ratio is not None and 0 < ratio < math.inf]
    return max(ratios, default=None)
