"""The findings of an audit in one order: at most five, and what is observed besides."""

import math
from collections.abc import Sequence

from attlas.audit.decision import Decision
from attlas.audit.finding import Finding

MOST = 5


def ranked_findings(
    decisions: Sequence[Decision], observations: Sequence[Finding]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """What has the largest consequence first, see `Finding`.

    What a decision says, too, is no finding of its own: sinks, and heads that each cost nothing
    where the decision is to remove some.

    Args:
        decisions: actions that were tried.
        observations: findings of what stands out among the heads.

    Returns:
        At most five findings, and the others.

    Examples:
        >>> seen = [Finding(str(k), "", None, None, "", 1.0, consequence=k / 9) for k in range(7)]
        >>> first, others = ranked_findings((), seen)
        >>> "".join(each.sentence for each in first), "".join(each.sentence for each in others)
        ('65432', '10')
    """
    decided = {action.kind for action in decisions if action.advised or action.kind == "sinks"}
    repeated = [finding for finding in observations if _subject(finding) in decided]
    ranked = [finding_of(decision) for decision in decisions]
    ranked += [finding for finding in observations if _subject(finding) not in decided]
    ranked.sort(key=lambda finding: (-finding.consequence, -finding.strength))
    return tuple(ranked[:MOST]), (*ranked[MOST:], *repeated)


def finding_of(decision: Decision) -> Finding:
    """A decision as a finding.

    Examples:
        >>> decision = Decision("heads", "a", "b", "c", 2.0, 0.5, 0.4, 0.6, "nats", 8, False)
        >>> finding_of(decision).consequence
        0.2
    """
    single = decision.heads[0] if len(decision.heads) == 1 else (None, None)
    return Finding(
        decision.what,
        decision.meaning,
        *single,
        "",
        math.inf,
        decision.action,
        decision.effect,
        decision.consequence,
        decision.kind,
    )


def _subject(observation: Finding) -> str | None:
    """The kind of the decision that says the same, and tests an action."""
    if observation.quantity == "sink_natural":
        return "sinks"
    return "heads" if observation.quantity == "removal_mean" and observation.head is None else None
