"""From instances to a verdict: the sides of a claim and its controls, and which errors they detect.

A claim and its controls are evaluated as one compiled program. Without an applicable instance there
is no verdict, sides that are not finite decide nothing, and too few distinct instances support
nothing; all else is the rule of the claim's kind.

The components of a claim are the entries of its sides (the rows, for a limit or rate): entries that
`jnp.stack` put together are separate statements, and each needs a control that violates it. Entries
that are one statement at several places, such as the entries of a vector identity, are declared
`alike`: then controls violate more than half of them, and each of the others is at least half as
near its bound as those, so that none is slack where the others are tested. An entry whose sides are
zero on every instance states nothing and needs no control.
"""

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.claim import Claim, Control
from attlas.claims.kinds.inequality import Entrywise
from attlas.claims.sampling import Instance
from attlas.claims.sides import Batch, Evidence, Program, Sides, complete, flat
from attlas.claims.verdict import ChallengeReport, Outcome, Verdict
from attlas.core.names import parameters

Places = tuple[tuple[int, ...], ...]
"""Indices of components."""
MINIMUM = 30
"""Distinct applicable instances below which a sampled claim is not SUPPORTED."""
MAX_COMPONENTS = 64
"""Components whose limits are listed; of more only the worst, of alike ones the best place."""


def compile_program(claim: Claim) -> Program:
    """One program for a claim and all its controls.

    Returns:
        Function from a batch to (holds, sides), where `holds` has shape (count, assumptions) and
        `sides` lists those of the claim first, then those of each control in order (a control that
        only changes instances repeats those of the claim).
    """
    if claim.backend == "numpy":
        from attlas.verify.host_program import host_program

        return host_program(claim)

    def evaluate(instance: Instance) -> tuple[Array, tuple[Sides, ...]]:
        holds = [jnp.asarray(a.holds(instance), dtype=bool) for a in claim.assumptions]
        claimed = complete(claim.sides(instance))
        changed = tuple(
            complete(claim.sides(instance, control.changes)) if control.changes else claimed
            for control in claim.controls
        )
        return jnp.stack(holds) if holds else jnp.zeros((0,), dtype=bool), (claimed, *changed)

    return jax.jit(jax.vmap(evaluate), compiler_options=CHEAP_COMPILATION)


def instance_at(batch: Batch, index: int) -> dict[str, np.ndarray]:
    """One instance of a batch, by its index.

    Examples:
        >>> instance_at({"x": jnp.array([1.0, 2.0])}, 1)
        {'x': array(2.)}
    """
    # NumPy first: an index into an array of JAX is a program to be compiled.
    return {name: np.asarray(np.asarray(value)[index]) for name, value in batch.items()}


def _distinct_rows(claim: Claim, batch: Batch, keep: np.ndarray) -> int:
    """How many different instances there are, in the arrays that the claim reads."""
    # A trial of a probability or expectation is the whole draw: there all arrays count, and where
    # most draws agree with another in six digits of the largest number of each array, those that
    # do not are counted: copies with a small offset are no independent draws.
    read = parameters(claim.function)
    trials = claim.kind.rule.trials
    all_arrays = read.takes_all or trials
    names = sorted(batch) if all_arrays else [name for name in read.arrays if name in batch]
    if claim.parameters:
        # At one parameter whole numbers coincide by chance, independent floats do not.
        selected = {domain.name for domain in claim.parameters}
        floats = [name for name in names if np.asarray(batch[name]).dtype.kind == "f"]
        names = [name for name in floats if name not in selected]
    if not names:
        return int(keep.sum())
    arrays = [np.asarray(batch[name])[keep] for name in names]
    exactly = _different(arrays)
    apart = _different([_in_six_digits(array) for array in arrays]) if trials else exactly
    # Independent numbers fall into the same millionth by chance, most of thousands do not.
    return apart if 2 * apart < exactly else exactly


def _different(arrays: Sequence[np.ndarray]) -> int:
    """How many rows of arrays with one leading axis differ in a byte."""
    rows = [array.reshape(len(array), -1).view(np.uint8).reshape(len(array), -1) for array in arrays
            if array.size]  # fmt: skip
    if not rows:
        return min(1, len(arrays[0]))
    return len({row.tobytes() for row in np.concatenate(rows, axis=1)})


def _in_six_digits(array: np.ndarray) -> np.ndarray:
    """Floats in millionths of the largest, or as they are where that is undefined."""
    size = np.abs(array).max(initial=0) if array.dtype.kind == "f" else 0
    # Zero is added because -0 and 0 have different bytes.
    return np.round(array / size, 6) + 0.0 if 0 < size < np.inf else array


def gather(
    claim: Claim,
    holds: Array | np.ndarray,
    sides: Sides,
    assumed: bool = True,
    batch: Batch | None = None,
) -> Evidence:
    """Bring the output of a program to the host as evidence.

    Args:
        holds: truth of each assumption, shape (count, assumptions).
        assumed: whether failing assumptions exclude an instance (not for control instances).
        batch: the instances, among which different ones are counted.
    """
    arrays = {name: np.asarray(v) for name, v in sides._asdict().items() if v is not None}
    satisfied = np.asarray(holds)
    failed_assumption = ""
    if claim.assumptions and not satisfied.all():
        failed_assumption = claim.assumptions[int(np.argmin(satisfied.mean(axis=0)))].text
    count = len(arrays["left"])
    applicable = np.asarray(satisfied.all(axis=1) if assumed else np.ones(count, dtype=bool))
    distinct = None if batch is None else _distinct_rows(claim, batch, applicable)
    return Evidence(
        **arrays, applicable=applicable, failed_assumption=failed_assumption, distinct=distinct
    )


def decide(claim: Claim, evidence: Evidence, *, alpha: float = 1e-3, seed: int = 0) -> Verdict:
    """The verdict on a batch, without witness; its `index` names the deciding instance.

    Args:
        claim: gives kind, roundings, and what supports it: a witness, an enumeration, or distinct
            instances.
        evidence: its sides, or those of one of its controls.
        alpha: error probability granted to this claim; statistical kinds use it.
        seed: recorded in the verdict.
    """
    count, tried = int(evidence.applicable.sum()), len(evidence.applicable)
    distinct = count if evidence.distinct is None else evidence.distinct
    rule = claim.rule
    refused = int((rule.violating(evidence, claim.roundings) & ~evidence.applicable).sum())

    def numbered(verdict: Verdict) -> Verdict:
        return replace(
            verdict,
            applicable=count,
            distinct=distinct,
            tried=tried,
            refused_violate=refused,
            seed=seed,
        )

    if count == 0:
        why = f"no instance satisfies '{evidence.failed_assumption}'"
        return numbered(Verdict(Outcome.NOT_APPLICABLE, why))
    # An allowance that is NaN or infinite would excuse any side.
    sides = (evidence.left, evidence.right, evidence.magnitude, evidence.error)
    inside = np.concatenate([flat(side) for side in sides], axis=1)
    broken = ~np.isfinite(inside[evidence.applicable]).all(axis=1)
    if broken.any():
        why = f"{int(broken.sum())} of {count} instances gave a side or error that is not finite"
        return numbered(Verdict(Outcome.INCONCLUSIVE, why))
    verdict = numbered(rule.decide(evidence, claim.roundings, alpha))
    if verdict.outcome is Outcome.SUPPORTED and (why := _unfounded(claim, verdict)):
        return replace(verdict, outcome=Outcome.INCONCLUSIVE, reason=why)
    return verdict


def _unfounded(claim: Claim, verdict: Verdict) -> str:
    """Why instances that all comply do not support a statement; empty where they do."""
    if claim.witness is not None:
        # The corrected statement of an erratum is compared on its witness alone; an existence is
        # shown by one object. Anything else is a statement about more than one instance.
        enough = claim.expect.outcome is not Outcome.SUPPORTED or claim.kind.rule.single_instance
        return "" if enough else "a single stored instance cannot support a general statement"
    if claim.enumerates is not None:
        if verdict.distinct == claim.enumerates:
            return ""
        return f"{verdict.distinct} distinct instances, where {claim.enumerates} are all there are"
    if verdict.distinct < MINIMUM:
        return (
            f"only {verdict.distinct} distinct instances meet the assumptions: support needs "
            f"{MINIMUM}, or enumerates=N in the claim where its sampler lists all N that there are"
        )
    return ""


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
        a component with a side that is always zero. Empty for other kinds than inequality and
        identity.
    """
    limits = component_limits(claim, evidence, controls)
    if not limits.size:
        return ()
    if claim.alike:
        limits = limits.min(keepdims=True)
    elif limits.size > MAX_COMPONENTS:
        stated = limits[np.isfinite(limits)]
        limits = stated.max(keepdims=True) if stated.size else limits[:1]
    return tuple(float(limit) if np.isfinite(limit) else None for limit in limits)


def component_limits(claim: Claim, evidence: Evidence, controls: Sequence[Evidence]) -> np.ndarray:
    """The limit of each component, (components,); infinite where a side is always zero."""
    rule = claim.kind.rule
    if not isinstance(rule, Entrywise) or rule.single_instance or not evidence.applicable.any():
        return np.zeros(0)
    return rule.detection_limits(evidence, controls, claim.roundings)


def uncontrolled(
    claim: Claim, evidence: Evidence, controls: Sequence[tuple[Control, Evidence]], alpha: float
) -> Places:
    """Indices of components of a SUPPORTED claim that need a control and have none."""
    shape = entries(claim, evidence)
    if claim.expect.outcome is not Outcome.SUPPORTED or np.prod(shape) < 2:
        return ()
    stated = stated_components(claim, evidence)
    violated = np.zeros_like(stated)
    for control, sides in controls:
        if control.expect is Outcome.VIOLATED and entries(claim, sides) == shape:
            violated |= _violated(claim, sides, alpha)
    needing = stated & ~violated
    # Of alike ones, where most are violated, only those need a control whose tightness is below
    # half of that of every violated one.
    if claim.alike and 2 * (stated & violated).sum() > stated.sum():
        limits = component_limits(claim, evidence, [sides for _, sides in controls])
        if limits.size:
            needing &= 1 - limits < (1 - limits[stated & violated].max()) / 2
    return tuple(
        tuple(int(i) for i in np.unravel_index(entry, shape)) for entry in np.flatnonzero(needing)
    )


def entries(claim: Claim, evidence: Evidence) -> tuple[int, ...]:
    """The shape of the components of a claim, without the axis of scales."""
    shape = evidence.left.shape[1:]
    return shape[:-1] if claim.kind.rule.scaled else shape


def _rows(claim: Claim, evidence: Evidence, array: np.ndarray) -> np.ndarray:
    """Instances by components by what one component holds."""
    tail = evidence.left.shape[-1] if claim.kind.rule.scaled else 1
    return array.reshape(len(array), -1, tail)


def stated_components(claim: Claim, evidence: Evidence) -> np.ndarray:
    """Which components have a side that is not zero on each instance, (components,)."""
    sides = (_rows(claim, evidence, side) for side in (evidence.left, evidence.right))
    return np.any([np.any(side != 0, axis=(0, 2)) for side in sides], axis=0)


def _violated(claim: Claim, evidence: Evidence, alpha: float) -> np.ndarray:
    """Which components are violated."""
    rule = claim.kind.rule
    if isinstance(rule, Entrywise):
        excess = rule.difference(evidence) - rule.tolerance(evidence, claim.roundings)
        return np.any(flat(excess[evidence.applicable]) > 0, axis=0)
    count = int(np.prod(entries(claim, evidence)))
    outcomes = [decide(claim, evidence.component(k, rule.scaled), alpha=alpha).outcome
                for k in range(count)]  # fmt: skip
    return np.array([outcome is Outcome.VIOLATED for outcome in outcomes])


def faults(
    claim: Claim,
    evidence: Evidence,
    controls: Sequence[tuple[Control, Evidence]],
    places: Places,
) -> tuple[str, ...]:
    """Sentences on faults of the claim itself: components without a control, coarse identities.

    Args:
        places: of the components that no control violates, by `uncontrolled`.
    """
    sentences = []
    if places:
        total = int(np.prod(entries(claim, evidence)))
        listed = ", ".join(str(place[0] if len(place) == 1 else place) for place in places[:4])
        more = ", ..." if len(places) > 4 else ""
        remedy = (
            "with alike=True controls must violate more than half of them, and the others must "
            "come at least half as near to their bound"
            if claim.alike
            else "give each a control, or alike=True if they are one statement at several places"
        )
        sentences += _misshapen(claim, evidence, controls) or [
            f"no control violates {len(places)} of its {total} components ({listed}{more}): "
            f"{remedy}"
        ]
    coarsest = claim.kind.rule.coarsest
    if coarsest is not None and claim.expect.outcome is Outcome.SUPPORTED:
        limits = component_limits(claim, evidence, [sides for _, sides in controls])
        worst = limits[np.isfinite(limits)].max(initial=0.0)
        if worst > coarsest:
            sentences.append(
                f"a relative error of {worst:.2g} in a component would not be noticed: its "
                f"magnitude or certified error is too large for {claim.kind.rule.noun}"
            )
    return tuple(sentences)


def _misshapen(
    claim: Claim, evidence: Evidence, controls: Sequence[tuple[Control, Evidence]]
) -> list[str]:
    """A sentence for each control that returns sides of another shape than the claim."""
    shape = entries(claim, evidence)
    return [
        f"control '{control.description}' returns shape {entries(claim, sides)}, the claim "
        f"{shape}: a control must return an entry for each of the claim's"
        for control, sides in controls
        if entries(claim, sides) != shape
    ]


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
