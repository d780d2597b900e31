"""The slack ledger: where a chain of inequalities loses its factor."""

import math
from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from attlas.display.numbers import plain_number
from attlas.display.terminal import plain
from attlas.experiments.panels.waterfall import waterfall
from attlas.site.claim_entry import ClaimEntry
from attlas.site.content import Chain, ChainLink, paper_order
from attlas.site.figures import embed


def slack_ledger(entries: Sequence[ClaimEntry]) -> tuple[Chain, ...]:
    r"""The chains of a paper's claims in order of their names, links in proof order.

    A link with tightness t = max lhs / rhs loses at least the factor 1/t on every instance seen, so
    that a chain loses at least the product; the best instances of different links may differ.
    Position 0 is the whole chain, evaluated from its first side to its last. It may lose far more
    than its links at their best, and is then the chain's factor. The share of a link is log(1/t)
    over the logarithm of that factor.

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
    is_total = [entry.claim.proof_step.position == 0 for entry in members if entry.claim.proof_step]
    pairs = zip(losses, is_total, strict=True)
    known_losses = [loss for loss in losses if loss is not None]
    total = max(
        sum(loss for loss, all_ in pairs if loss is not None and not all_), *known_losses, 0.0
    )
    links = tuple(
        ChainLink(
            entry=entry,
            tightness=tight,
            factor=None if tight is None else 1 / tight,
            share=loss / total if loss and total else 0.0,
        )
        for entry, tight, loss in zip(members, tightness, losses, strict=True)
    )
    chain = Chain(
        name=name, links=links, factor=math.exp(min(total, 700.0)) if known_losses else None
    )
    return replace(chain, picture=_picture(chain))


def _picture(chain: Chain) -> Markup | None:
    """The chain as a waterfall chart; position 0 is the total, measured from end to end."""
    if sum(link.factor is not None for link in chain.links) < 2:
        return None
    steps = [link for link in chain.links if _position(link) != 0]
    ends = [link.factor for link in chain.links if _position(link) == 0 and link.factor]
    figure = waterfall(
        [plain(link.entry.claim.locator) for link in steps],
        [link.factor and max(1.0, link.factor) for link in steps],
        total=max(ends, default=None),
        name="whole chain" if ends else "all steps",
    )
    lost = "; ".join(
        f"{plain(link.entry.claim.locator)} {plain_number(link.factor)}" for link in chain.links
    )
    return embed(figure, f"Waterfall of the factors lost along {plain(chain.name)}: {lost}")


def _position(link: ChainLink) -> int | None:
    step = link.entry.claim.proof_step
    return None if step is None else step.position


def _tightness(entry: ClaimEntry) -> float | None:
    """The largest positive finite ratio of check or challenge."""
    if entry.report is None:
        return None
    candidates = [entry.report.verdict.tightness]
    if entry.report.challenge:
        candidates.append(entry.report.challenge.ratio)
    ratios = [ratio for ratio in candidates if ratio is not None and 0 < ratio < math.inf]
    return max(ratios, default=None)
