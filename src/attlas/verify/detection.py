r"""Which errors a check would detect: the detection limit of each component, and untested ones.

The components of a claim are the entries of its sides (the rows, for a limit or rate): entries that
`jnp.stack` put together are separate statements, and each needs a control that violates it. Entries
that are one statement at several places, such as the entries of a vector identity, are declared
`alike`: then controls violate more than half of them, and each of the others is at least half as
near its bound as those, so that none is slack where the others are tested. An entry whose sides are
zero on every instance states nothing and needs no control.
"""

from collections.abc import Sequence

import numpy as np

from attlas.claims.claim import Claim, Control
from attlas.claims.kinds.entrywise import Entrywise
from attlas.claims.sides import Evidence, flat
from attlas.claims.verdict import ChallengeReport, Outcome, Verdict
from attlas.verify.decide import decide

MAX_COMPONENTS = 64
"""Components whose limits are listed; of more only the worst, of alike ones the best place."""


def detection_limits(
    claim: Claim, evidence: Evidence, controls: Sequence[Evidence] = ()
) -> tuple[float | None, ...]:
    r"""The smallest relative change of the right side that the check would detect.

    For an inequality (right - left + allowed) / |right|, which is 1 - tightness where both sides
    are positive: an error is detected from a right side too large by the factor 1 / (1 - limit).
    For an identity allowed / |right|, with the entry's size in the controls where both sides
    vanish. Least over the instances.

    Returns:
        One number per component; of more than 64 the worst alone, of alike ones the best; None for
        a component whose right side is always zero. Empty for other kinds than inequality,
        existence and identity.
    """
    limits = _limits(claim, evidence, controls)
    if not limits.size:
        return ()
    if claim.alike:
        limits = limits.min(keepdims=True)
    elif limits.size > MAX_COMPONENTS:
        limits = limits.max(keepdims=True)
    return tuple(float(limit) if np.isfinite(limit) else None for limit in limits)


def _limits(claim: Claim, evidence: Evidence, controls: Sequence[Evidence]) -> np.ndarray:
    """The limit of each component, infinite where its right side is always zero."""
    rule = claim.kind.rule
    if not isinstance(rule, Entrywise) or not evidence.applicable.any():
        return np.zeros(0)
    return rule.detection_limits(evidence, controls, claim.roundings)


def _uncontrolled(
    claim: Claim, evidence: Evidence, controls: Sequence[tuple[Control, Evidence]], alpha: float
) -> tuple[tuple[int, ...], ...]:
    """Indices of components of a SUPPORTED claim that need a control and have none."""
    shape = _entries(claim, evidence)
    if claim.expect.outcome is not Outcome.SUPPORTED or np.prod(shape) < 2:
        return ()
    stated = _stated(claim, evidence)
    violated = np.zeros_like(stated)
    for control, sides in controls:
        if control.expect is Outcome.VIOLATED and _entries(claim, sides) == shape:
            violated |= _violated(claim, sides, alpha)
    needing = stated & ~violated
    # Of alike ones, where most are violated, only those need a control whose tightness is below
    # half of that of every violated one.
    if claim.alike and 2 * (stated & violated).sum() > stated.sum():
        limits = _limits(claim, evidence, [sides for _, sides in controls])
        if limits.size:
            needing &= 1 - limits < (1 - limits[stated & violated].max()) / 2
    return tuple(
        tuple(int(i) for i in np.unravel_index(entry, shape)) for entry in np.flatnonzero(needing)
    )


def _entries(claim: Claim, evidence: Evidence) -> tuple[int, ...]:
    shape = evidence.left.shape[1:]
    return shape[:-1] if claim.kind.rule.scaled else shape


def _rows(claim: Claim, evidence: Evidence, array: np.ndarray) -> np.ndarray:
    """Instances by components by what one component holds."""
    tail = evidence.left.shape[-1] if claim.kind.rule.scaled else 1
    return array.reshape(len(array), -1, tail)


def _stated(claim: Claim, evidence: Evidence) -> np.ndarray:
    sides = (_rows(claim, evidence, side) for side in (evidence.left, evidence.right))
    return np.any([np.any(side != 0, axis=(0, 2)) for side in sides], axis=0)


def _violated(claim: Claim, evidence: Evidence, alpha: float) -> np.ndarray:
    """Which components are violated."""
    rule = claim.kind.rule
    if isinstance(rule, Entrywise):
        excess = rule.difference(evidence) - rule.tolerance(evidence, claim.roundings)
        return np.any(flat(excess[evidence.applicable]) > 0, axis=0)
    count = int(np.prod(_entries(claim, evidence)))
    outcomes = [decide(claim, evidence.component(k, rule.scaled), alpha=alpha).outcome
                for k in range(count)]  # fmt: skip
    return np.array([outcome is Outcome.VIOLATED for outcome in outcomes])


def faults(
    claim: Claim,
    evidence: Evidence,
    controls: Sequence[tuple[Control, Evidence]],
    alpha: float,
) -> tuple[str, ...]:
    """Sentences on faults of the claim itself: components without a control, coarse identities."""
    sentences = []
    if places := _uncontrolled(claim, evidence, controls, alpha):
        total = int(np.prod(_entries(claim, evidence)))
        listed = ", ".join(str(place[0] if len(place) == 1 else place) for place in places[:4])
        more = ", ..." if len(places) > 4 else ""
        remedy = (
            "with alike=True controls must violate more than half of them, and the others must "
            "come at least half as near to their bound"
            if claim.alike
            else "give each a control, or alike=True if they are one statement at several places"
        )
        sentences.append(
            f"no control violates {len(places)} of its {total} components ({listed}{more}): "
            f"{remedy}"
        )
    coarsest = claim.kind.rule.coarsest
    if coarsest is not None and claim.expect.outcome is Outcome.SUPPORTED:
        limits = _limits(claim, evidence, [sides for _, sides in controls])
        worst = limits[np.isfinite(limits)].max(initial=0.0)
        if worst > coarsest:
            sentences.append(
                f"a relative error of {worst:.2g} in a component would not be noticed: its "
                f"magnitude or certified error is too large for {claim.kind.rule.noun}"
            )
    return tuple(sentences)


def unattained(
    claim: Claim, verdict: Verdict, search: ChallengeReport | None = None
) -> tuple[str, ...]:
    """A sentence on a claim that is declared as tight, where neither check nor search shows it."""
    if claim.attained is None or verdict.outcome is not Outcome.SUPPORTED:
        return ()
    ratios = [verdict.tightness, search.ratio if search else None]
    best = max((ratio for ratio in ratios if ratio is not None), default=None)
    if best is not None and best >= claim.attained:
        return ()
    text = "no ratio" if best is None else f"{best:.4g}"
    return (
        f"declared as attained up to {claim.attained:.4g}, but the best instance reaches {text}: "
        "add one that attains it to the sampler, or check with --challenge",
    )
