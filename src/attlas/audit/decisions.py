"""What to do with a model: one half of the sequences chooses an action, the other half tests it."""

import time
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from attlas.audit.decision import Decision
from attlas.audit.findings import named_heads
from attlas.audit.halves import (
    BUDGET,
    FEWEST,
    change_text,
    halves,
    is_within,
    loss_size,
    measured_decision,
)
from attlas.audit.map_decisions import copies_decision, precision_decision, sink_decision
from attlas.audit.trial import Trial
from attlas.display.numbers import duration, plain_number
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

_PATIENCE = 6
"""Heads in a row that do not fit, after which no more are tried."""


Progress = Callable[[str, int, int], None]


def decisions_of(
    trial: Trial,
    budget: float = BUDGET,
    progress: Progress = lambda part, done, all_: None,
    say: Callable[[str], None] | None = None,
) -> tuple[Decision, ...]:
    """The actions, one of each kind; none from fewer than four sequences.

    Args:
        trial: model and batch on which actions are tried.
        budget: share of the loss that an action may cost on the half that chooses it.
        progress: called with the part, how much of it is done, and of how much.
        say: called with a sentence on how long the trials will take, before they begin.
    """
    base = trial.losses()
    if base.size < FEWEST:
        return ()
    if say is not None:
        say(_announcement(trial, base.size))
    decisions = [
        _removal(trial, base, budget, lambda *amount: progress("removing heads", *amount)),
        _rounding(trial, base, budget, lambda *amount: progress("rounding layers", *amount)),
    ]
    maps = trial.observed()
    changes = (
        lambda: sink_decision(trial, maps, base, budget),
        lambda: precision_decision(trial, maps, base, budget),
        lambda: copies_decision(trial, base, budget),
    )
    for number, decide in enumerate(changes, 1):
        decisions.append(decide())
        progress("changing maps", number, len(changes))
    return tuple(decision for decision in decisions if decision is not None)


_CHANGED_MAPS = 6
"""Changes of maps that are tried: two of each kind."""


def _announcement(trial: Trial, number: int) -> str:
    """How long the trials take at most, from the second pass with the first head left out."""
    for _ in range(2):  # the first one compiles
        start = time.perf_counter()
        trial.losses(trial.heads[:1])
        seconds = time.perf_counter() - start
    heads, layers = len(trial.heads), trial.layers
    most = 2 * heads + (layers + 2 if layers > 1 else 0) + _CHANGED_MAPS
    return (
        f"level deep: heads, layers and maps are changed in at most {most} passes of {number} "
        f"{trial.examples}, one in {plain_number(seconds)} s: about {duration(most * seconds)}, "
        "before the other parts of the level"
    )


def removable_heads(
    trial: Trial,
    base: Float[np.ndarray, " n"],
    choosing: np.ndarray,
    allowed: float,
    progress: Callable[[int, int], None] = lambda done, all_: None,
    costs: Sequence[float] | None = None,
) -> list[tuple[int, int]]:
    """Heads that can be left out together: the cheapest first, as long as the joint cost allows.

    Layers that share weights lose the same heads, see `Trial.removable`.

    Args:
        base: losses of the unchanged model.
        choosing: places of the sequences on which the cost is taken, a vector.
        allowed: largest mean change of the loss on these.
        progress: called with the trials done, and of at most how many.
        costs: mean change of the loss without each of `trial.removable`; measured when None.
    """
    sets = trial.removable
    costs = _single_costs(trial, base, choosing, progress) if costs is None else costs
    removable: list[tuple[int, int]] = []
    refused = 0
    for place, number in enumerate(np.argsort(costs, kind="stable")):
        if costs[number] > allowed or refused == _PATIENCE:
            break
        joint = bootstrap_mean((trial.losses([*removable, *sets[number]]) - base)[choosing])
        if float(joint.high) <= allowed:
            removable += sets[number]
            refused = 0
        else:
            refused += 1
        progress(len(sets) + place + 1, 2 * len(sets))
    progress(2 * len(sets), 2 * len(sets))
    return sorted(removable)


def _single_costs(
    trial: Trial,
    base: Float[np.ndarray, " n"],
    choosing: np.ndarray,
    progress: Callable[[int, int], None],
) -> list[float]:
    """Mean change of the loss without each head alone, in all layers that share it."""
    costs = []
    for place, heads in enumerate(trial.removable):
        costs.append(float(np.mean((trial.losses(heads) - base)[choosing])))
        progress(place + 1, 2 * len(trial.removable))
    return costs


def _no_removal(
    trial: Trial,
    base: Float[np.ndarray, " n"],
    costs: Sequence[float],
    allowed: float,
) -> Decision:
    """That no head can go, and what the cheapest one costs."""
    choosing, testing = halves(base.size)
    heads = trial.removable[int(np.argmin(costs))]
    changed = trial.losses(heads)
    it, its, are = ("it", "its output", "is")
    if len(heads) > 1:
        it, its, are = ("them", "their outputs", "are")
    return measured_decision(
        trial,
        lambda model: model.losses(heads),
        base,
        changed,
        testing,
        kind="heads",
        what=(
            f"None of {sum(map(len, trial.removable))} heads can be removed for at most "
            f"{plain_number(allowed)} {trial.unit}; the cheapest {are} {named_heads(heads)}"
            f"{_sharing_note(trial)}"
        ),
        meaning=(
            f"On the {choosing.size} {trial.examples} that chose {it} the loss changes by "
            f"{change_text((changed - base)[choosing])} {trial.unit} with {its} set to zero. The "
            f"effect is that of removing {it} alone"
        ),
        action=f"Keep all heads, or raise --budget, which is a share of the loss; more "
        f"{trial.examples} shorten the interval",
        advised=False,
    )


def _sharing_note(trial: Trial) -> str:
    """That layers share weights, where they do."""
    several = any(len(heads) > 1 for heads in trial.removable)
    return " (layers that share weights lose the same heads)" if several else ""


def _removal(
    trial: Trial,
    base: Float[np.ndarray, " n"],
    budget: float,
    progress: Callable[[int, int], None],
) -> Decision | None:
    """The heads that can go together, with their effect, or that none can; None without heads."""
    if not trial.removable:
        return None
    choosing, testing = halves(base.size)
    allowed = budget * loss_size(base[choosing])
    costs = _single_costs(trial, base, choosing, progress)
    heads = removable_heads(trial, base, choosing, allowed, progress, costs)
    if not heads:
        return _no_removal(trial, base, costs, allowed)
    changed = trial.losses(heads)
    limit = budget * loss_size(base[testing])
    is_cheap = is_within(base, changed, testing, budget)
    return measured_decision(
        trial,
        lambda model: model.losses(heads),
        base,
        changed,
        testing,
        kind="heads",
        what=(
            f"{len(heads)} of {sum(map(len, trial.removable))} heads "
            f"{'can' if is_cheap else 'could'} be removed together: {named_heads(heads)}"
            f"{_sharing_note(trial)}"
        ),
        meaning=(
            f"On the {choosing.size} {trial.examples} that chose them their outputs, set to zero, "
            f"change the loss by {change_text((changed - base)[choosing])} {trial.unit}, of "
            f"{plain_number(allowed)} that were allowed"
        ),
        action=(
            "Remove them: --export FOLDER writes the model with their blocks of the output "
            "projection at zero"
            if is_cheap
            else f"Keep them: the test allows for more than the {plain_number(limit)} {trial.unit} "
            f"that were allowed; more {trial.examples} may decide"
        ),
        advised=is_cheap,
        heads=tuple(heads),
        saving=len(heads) / sum(map(len, trial.removable)),
    )


_FEW_BITS, _MORE_BITS, _STORED_BITS = 4, 8, 16


def _rounding(
    trial: Trial,
    base: Float[np.ndarray, " n"],
    budget: float,
    progress: Callable[[int, int], None],
) -> Decision | None:
    """The layer that rounding hurts most, and what it helps to spare it."""
    if trial.layers < 2:
        return None
    choosing, testing = halves(base.size)
    costs = []
    for layer in range(trial.layers):
        costs.append(bootstrap_mean((trial.rounded({layer: _FEW_BITS}) - base)[choosing]))
        progress(layer + 1, trial.layers)
    means = [float(cost.mean) for cost in costs]
    worst = int(np.argmax(means))
    every = dict.fromkeys(range(trial.layers), _FEW_BITS)
    all_rounded = trial.rounded(every)
    hurt = float(costs[worst].low) > 0
    ranked = (
        f"alone it changes the loss by {plain_number(means[worst])} {trial.unit}, the median layer "
        f"by {plain_number(float(np.median(means)))}"
    )
    bits = {**every, worst: _MORE_BITS} if hurt else every
    changed = trial.rounded(bits) if hurt else all_rounded
    spared = f" with layer {worst} at {_MORE_BITS} bits" if hurt else ""
    is_cheap = is_within(base, changed, testing, budget)
    return measured_decision(
        trial,
        lambda model: model.rounded(bits),
        base,
        changed,
        testing,
        kind="rounding",
        what=(
            f"Rounding the weights to {_FEW_BITS} bits hurts layer {worst} most: {ranked}"
            if hurt
            else f"Rounding the weights to {_FEW_BITS} bits hurts no single layer beyond its "
            f"interval; the worst is layer {worst}: {ranked}"
        ),
        meaning=(
            f"With all {trial.layers} layers at {_FEW_BITS} bits the loss changes by "
            f"{change_text((all_rounded - base)[testing])} {trial.unit}; weights were rounded to "
            "the nearest of equal steps, one size of step per output"
        ),
        action=(
            f"Quantise to {_FEW_BITS} bits{spared}"
            if is_cheap
            else f"Do not quantise to {_FEW_BITS} bits{' even' * hurt}{spared}: it costs more than "
            f"was allowed, or more {trial.examples} are needed to see that it does not"
        ),
        advised=is_cheap,
        layers=(worst,) if hurt else tuple(range(trial.layers)),
        saving=1 - sum(bits.values()) / (_STORED_BITS * trial.layers),
    )
