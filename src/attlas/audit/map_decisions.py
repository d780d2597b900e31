"""Actions on attention maps: what depends on a sink, the type of logits, heads that are copies."""

from itertools import chain

import numpy as np
from jaxtyping import Float

from attlas.audit.data_level.data_quantities import SINK
from attlas.audit.decision import Decision
from attlas.audit.findings import named_heads
from attlas.audit.halves import change_text, halves, is_within, loss_size, measured_decision
from attlas.audit.head_cosines import HeadPair
from attlas.audit.trial import MapObservation, Trial
from attlas.display.numbers import plain_number
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

LARGEST_FLOAT16 = float(np.finfo(np.float16).max)
_HEADROOM = 8
"""How far below the largest float16 products must be for other texts to be safe, too."""
_BFLOAT16_BITS, _FLOAT16_BITS = 8, 11
_COPY = 0.9
"""Cosine of weights from which a head counts as a copy."""

Losses = Float[np.ndarray, " n"]


def sink_decision(
    trial: Trial, observed: MapObservation, base: Losses, budget: float
) -> Decision | None:
    """What it costs that heads with a sink do not see the first token.

    Args:
        observed: the maps and products that `Trial.observed` measured.
        base: losses of the sequences in the unchanged model.
        budget: share of the loss that an action may cost.

    Returns:
        None where no head has a sink.
    """
    choosing, testing = halves(base.size)
    weight = observed.first[choosing].mean(axis=0)
    least = np.maximum(SINK, observed.equal[choosing].mean(axis=0))
    writing = set(chain(*trial.removable))
    sinking = [trial.heads[place] for place in np.flatnonzero(weight > least).tolist()]
    heads = [head for head in sinking if head in writing]
    if not heads:
        return None
    without_first, without_second = (trial.hidden(heads, place) for place in (0, 1))
    free = is_within(base, without_first, testing, budget)
    needed = float(bootstrap_mean((without_first - base)[testing]).low) > 0
    return measured_decision(
        trial,
        lambda model: model.hidden(heads, 0),
        base,
        without_first,
        testing,
        kind="sinks",
        what=(
            f"{len(heads)} of {len(trial.heads)} heads give the first token more than {SINK} of "
            f"their weight, on average: {named_heads(heads)}"
        ),
        meaning=(
            f"Hidden from them on the {choosing.size} {trial.examples} that chose them, it changes "
            f"the loss by {change_text((without_first - base)[choosing])} {trial.unit}, the second "
            f"token by {change_text((without_second - base)[choosing])}; other tokens share its "
            "weight. The effect is that of hiding it"
        ),
        action=_sink_action(trial.examples, free=free, needed=needed),
        advised=free,
        heads=tuple(heads),
    )


def _sink_action(examples: str, *, free: bool, needed: bool) -> str:
    """What to do about the first token; a model with right answers has no cache."""
    cached = examples == "sequences"
    if free and cached:
        return "The first token may be evicted from the cache of these heads"
    if free:
        return "These heads may do without the first token: what they read there does not matter"
    if not needed:
        return f"Keep the first token until more {examples} decide"
    if cached:
        return (
            "Keep the first token: leave it in the cache when others are evicted, and in every "
            "part of a text that is cut"
        )
    return f"Keep the first token: whatever drops or merges tokens of the {examples} must spare it"


def precision_decision(
    trial: Trial, observed: MapObservation, base: Losses, budget: float
) -> Decision:
    """In which type of numbers logits can be computed.

    Args:
        observed: the maps and products that `Trial.observed` measured.
        base: losses of the sequences in the unchanged model.
        budget: share of the loss that an action may cost.
    """
    choosing, testing = halves(base.size)
    products, logits = observed.products[choosing], float(observed.logits[choosing].max())
    largest = float(products.max())
    head = trial.heads[int(np.argmax(products.max(axis=0)))]
    fits = largest * _HEADROOM <= LARGEST_FLOAT16
    allowed = budget * loss_size(base[choosing])
    types = ("float16", "bfloat16") if fits else ("bfloat16",)
    changed = {name: trial.in_type(name) for name in types}
    costs = {name: float(np.mean((losses - base)[choosing])) for name, losses in changed.items()}
    name = next((name for name in types if costs[name] <= allowed), None)
    best = name or min(types, key=lambda each: costs[each])
    is_cheap = name is not None and is_within(base, changed[best], testing, budget)
    room = plain_number(LARGEST_FLOAT16 / largest) if largest > 0 else "infinitely many"
    steps = [plain_number(logits * 2.0**-bits) for bits in (_FLOAT16_BITS, _BFLOAT16_BITS)]
    changes = "; ".join(
        f"in {each} by {change_text((losses - base)[choosing])}" for each, losses in changed.items()
    )
    overflow = "" if fits else ", and other texts, or rounding, may take it beyond"
    return measured_decision(
        trial,
        lambda model: model.in_type(best),
        base,
        changed[best],
        testing,
        kind="precision",
        what=(
            f"The largest product of a query and a key is {plain_number(largest)}, of "
            f"{named_heads([head])}: the largest number of float16, 65,504, is {room} times that"
            f"{overflow}"
        ),
        meaning=(
            f"The largest logit, {plain_number(logits)}, moves by up to {steps[0]} when it is "
            f"rounded to float16, by {steps[1]} to bfloat16. With all logits rounded the loss "
            f"changes on the {choosing.size} {trial.examples} that chose the type {changes} "
            f"{trial.unit}"
        ),
        action=(
            f"Logits may be computed in {best}"
            if is_cheap
            else f"Compute logits in float32: {best} costs more than was allowed, or more "
            f"{trial.examples} are needed to see that it does not"
        ),
        advised=is_cheap,
    )


def _copies(trial: Trial) -> list[HeadPair]:
    """Pairs of heads with alike weights, both of which write something."""
    writing = set(chain(*trial.removable))
    alike = [pair for pair in trial.pairs() if pair.query_key >= _COPY]
    return [p for p in alike if {(p.layer, p.first), (p.layer, p.second)} <= writing]


def copies_decision(trial: Trial, base: Losses, budget: float) -> Decision | None:
    """The pair of heads whose weights are most alike, with one map for both.

    Args:
        base: losses of the sequences in the unchanged model.
        budget: share of the loss that an action may cost.

    Returns:
        None where no cosine is that of a copy.
    """
    alike = _copies(trial)
    if not alike:
        return None
    best = max(alike, key=lambda pair: pair.query_key)
    choosing, testing = halves(base.size)
    ways = {pair: trial.sharing(pair) for pair in (best, best._replace(
        first=best.second, second=best.first))}  # fmt: skip
    pair = min(ways, key=lambda each: float(np.mean(ways[each][choosing])))
    changed = ways[pair]
    first, second = (pair.layer, pair.first), (pair.layer, pair.second)
    is_cheap = is_within(base, changed, testing, budget)
    more = len(alike) - 1
    values = (
        ""
        if np.isnan(pair.value_output)
        else f", that of their values and outputs {plain_number(pair.value_output)}"
    )
    return measured_decision(
        trial,
        lambda model: model.sharing(pair),
        base,
        changed,
        testing,
        kind="copies",
        what=(
            f"{named_heads([first, second]).capitalize()} have nearly the same queries and keys: "
            f"the cosine of their weights is {plain_number(pair.query_key)}{values}"
            + (f"; {more} more pairs are beyond {_COPY}" if more else "")
        ),
        meaning=(
            f"With the map of {named_heads([first])} for both, each with its own values, the loss "
            f"changes on the {choosing.size} {trial.examples} that chose this order by "
            f"{change_text((changed - base)[choosing])} {trial.unit}"
        ),
        action=(
            f"Compute one map for both, and drop the query and key weights of "
            f"{named_heads([second])}"
            if is_cheap
            else "Keep both maps: alike weights do not make alike maps here, or more "
            f"{trial.examples} are needed to see that they do"
        ),
        advised=is_cheap,
        heads=(first, second),
        saving=0.5 / len(trial.heads),
    )
