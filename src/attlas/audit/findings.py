r"""What stands out: at most five findings, each against a reference and with a test that was run.

A head is tested by ablating it and computing the loss of the user's batch again, a certificate by
attacking it. What was tested in neither way is not reported. What to do about it follows from the
effect of the test.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
import xarray as xr

from attlas.audit.data_level.data_quantities import SINK
from attlas.audit.finding import Finding
from attlas.audit.halves import BUDGET
from attlas.display.numbers import plain_number

MOST = 5
_FAR = 4.0
_POSITIONAL = 0.9
_NEAR_UNIFORM = 0.98
_TIGHT = 0.5
_NAMED = 12
"""Heads up to which a sentence names all."""

Heads = Sequence[tuple[int, int]]


class Effect(Enum):
    """What the interval of a change says."""

    CHEAP = "within what may be lost"
    NEEDED = "above 0, and beyond it"
    OPEN = "neither"


class Change(NamedTuple):
    """What ablating heads did to the loss.

    Attributes:
        loss: loss of the unchanged model.
        mean: mean change over the sequences.
        low: lower end of its interval.
        high: upper end.
        unit: unit of the four numbers.
    """

    loss: float
    mean: float
    low: float
    high: float
    unit: str

    def effect(self, budget: float) -> Effect:
        """What the change says where a share of the loss may be lost.

        Examples:
            >>> [Change(2.0, 0.0, low, 0.1, "nats").effect(0.01).name for low in (-0.1, 0.05)]
            ['OPEN', 'NEEDED']
        """
        if self.high <= budget * (self.loss if self.loss > 0 else 1):
            return Effect.CHEAP
        return Effect.NEEDED if self.low > 0 else Effect.OPEN


Intervene = Callable[[Heads, str], Change]
"""Replaces heads together, in one of the ways of `REPLACEMENTS`."""


def findings_of(
    heads: xr.Dataset, intervene: Intervene | None, budget: float = BUDGET
) -> tuple[Finding, ...]:
    """The findings, those that stand out furthest first.

    Args:
        heads: all variables [layer, head] of the audit.
        intervene: replaces heads and reads the loss again; None where there is no loss.
        budget: share of the loss that an action may cost.

    Returns:
        At most five; none at level weights, where nothing can be ablated.
    """
    findings = list(_tight_certificates(heads))
    if intervene is not None:
        for search in (_needed, _expendable, _uniform, _positional, _singular, _sinks, _doubles):
            findings.extend(search(heads, intervene, budget))
    findings.sort(key=lambda finding: -finding.strength)
    return tuple(findings[:MOST])


def robust_score(values: np.ndarray) -> np.ndarray:
    """Distance from the median in units of the spread, 1.4826 times the median distance.

    Args:
        values: an array of any shape, whose NaN entries stay NaN.

    Returns:
        Scores; infinite where more than half of the values are one number.

    Examples:
        >>> robust_score(np.array([1.0, 2.0, 3.0, 100.0])).round(1).tolist()
        [-1.0, -0.3, 0.3, 65.8]
    """
    centred = values - np.nanmedian(values)
    spread = 1.4826 * np.nanmedian(np.abs(centred))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(centred == 0, 0.0, centred / spread)


def named_heads(places: Heads) -> str:
    """Heads by layer and number; of many the first and how many more.

    Examples:
        >>> named_heads([(0, 1)]), named_heads([(0, 1), (2, 0)])
        ('head 0.1', 'heads 0.1, 2.0')
    """
    listed = places if len(places) <= _NAMED else places[: _NAMED // 2]
    names = ", ".join(f"{layer}.{head}" for layer, head in listed)
    more = f" and {len(places) - len(listed)} more" if len(places) > len(listed) else ""
    return f"head {names}" if len(places) == 1 else f"heads {names}{more}"


def _loss_change(change: Change, what: str) -> str:
    mean, low, high, loss = (plain_number(value) for value in (*change[1:4], change.loss))
    return f"With {what}, the loss of {loss} {change.unit} changes by {mean} [{low}, {high}]"


_UNDECIDED = "more sequences would decide whether the loss needs them"


def _without_maps(effect: Effect) -> str:
    """What to do about heads whose maps were replaced by equal weights."""
    return {
        Effect.CHEAP: "After a test on other sequences, let these heads average the values of all "
        "tokens: their queries, keys and attention weights need not be computed then",
        Effect.NEEDED: "Keep their maps: what distinguishes them from equal weights counts",
        Effect.OPEN: f"Keep their maps: {_UNDECIDED}",
    }[effect]


def _where(mask: np.ndarray) -> list[tuple[int, int]]:
    return [(int(layer), int(head)) for layer, head in np.argwhere(mask)]


def _single(values: xr.DataArray) -> tuple[tuple[int, int], float, float]:
    """The entry that stands out furthest upwards, its score and its value."""
    scores = robust_score(values.values)
    layer, head = np.unravel_index(np.nanargmax(scores), scores.shape)
    place = (int(layer), int(head))
    return place, float(scores[place]), float(values.values[place])


def _needed(heads: xr.Dataset, intervene: Intervene, budget: float) -> Iterator[Finding]:
    """The head whose ablation costs most, if it costs more than the others do."""
    if "removal_mean" not in heads:
        return
    place, score, value = _single(heads.removal_mean)
    low = float(heads.removal_mean_low.values[place])
    if score < _FAR or not low > 0:  # NaN: of one sequence there is no interval
        return
    change = intervene([place], "uniform")
    median = float(np.median(heads.removal_mean.values))
    yield Finding(
        f"The model needs {named_heads([place])} more than any other: replacing its output by "
        f"its mean costs {plain_number(value)} {change.unit}",
        f"{_loss_change(change, 'equal weights in place of its maps')}; the median head costs "
        f"{plain_number(median)}",
        *place,
        "removal_mean",
        score,
        f"Keep {named_heads([place])}, prune others first, and round its weights last",
    )


def _expendable(heads: xr.Dataset, intervene: Intervene, budget: float) -> Iterator[Finding]:
    """Heads that each cost no more than rounding the weights; they are ablated together."""
    if "removal_mean_null" not in heads:
        return
    null = heads.removal_mean_null.values
    places = _where(heads.removal_mean_high.values <= null)
    if not places:
        return
    change = intervene(places, "mean")
    cost = "costs" if len(places) == 1 else "each cost"
    yield Finding(
        f"{len(places)} of {null.size} heads {cost} at most {plain_number(float(null.flat[0]))} "
        f"{change.unit} on this batch, to the upper end of a 95 % interval, as much as rounding "
        f"the weights to bfloat16: {named_heads(places)}",
        "Perturbing every weight of the layers by a random share of at most 1/256, as that "
        "rounding does, changes the loss as much, to the end of its interval. "
        f"{_loss_change(change, 'the outputs of all of these heads replaced by their means')}",
        None,
        None,
        "removal_mean",
        _FAR + len(places) / null.size,
        "After a test on other sequences, remove them together: the means of their outputs, which "
        "are constants, take their place"
        if change.effect(budget) is Effect.CHEAP
        else "Do not remove all of them: what each costs alone does not add up to what they cost "
        "together",
    )


def _uniform(heads: xr.Dataset, intervene: Intervene, budget: float) -> Iterator[Finding]:
    if "entropy" not in heads:
        return
    places = _where(heads.entropy_low.values >= _NEAR_UNIFORM * heads.entropy_null.values)
    if not places:
        return
    change = intervene(places, "uniform")
    verb = "attends" if len(places) == 1 else "attend"
    yield Finding(
        f"{named_heads(places).capitalize()} {verb} almost uniformly: within 2 % of the entropy of "
        "equal weights",
        _loss_change(change, "equal weights in place of the maps"),
        *(places[0] if len(places) == 1 else (None, None)),
        "entropy",
        _FAR + len(places) / heads.entropy.size,
        _without_maps(change.effect(budget)),
    )


def _positional(heads: xr.Dataset, intervene: Intervene, budget: float) -> Iterator[Finding]:
    if "positional_share" not in heads:
        return
    share = heads.positional_share.values
    places = _where(share >= _POSITIONAL)
    if not places:
        return
    change = intervene(places, "uniform")
    offset = int(heads.positional_offset.values[places[0]])
    verb = "looks" if len(places) == 1 else "look"
    yield Finding(
        f"{named_heads(places).capitalize()} {verb} at one relative position ({offset:+d} for the "
        f"first): in at least {100 * _POSITIONAL:.0f} % of the rows more than 0.8 of the weight "
        "is there",
        f"{_loss_change(change, 'equal weights in place of the maps')}; the median head does so in "
        f"{100 * float(np.nanmedian(share)):.0f} % of the rows",
        *(places[0] if len(places) == 1 else (None, None)),
        "positional_share",
        _FAR + float(np.nanmax(share)),
        _without_maps(change.effect(budget)),
    )


def _singular(heads: xr.Dataset, intervene: Intervene, budget: float) -> Iterator[Finding]:
    """Heads that attend to a token that is neither near nor special: by content, not position."""
    if "distant_confidence" not in heads:
        return
    values = heads.distant_confidence.values
    if np.all(np.isnan(values)):  # no sequence is long enough
        return
    scores = robust_score(values)
    places = _where(scores >= _FAR)
    if not places:
        return
    places.sort(key=lambda place: -values[place])
    best = places[0]
    change = intervene(places, "uniform")
    verb, who = ("finds", "it") if len(places) == 1 else ("find", named_heads([best]))
    yield Finding(
        f"{named_heads(places).capitalize()} {verb} one distant token for each token: {who} "
        f"gives {plain_number(float(values[best]))} of the weight, on average, to one more than 4 "
        "places away",
        f"The median head has {plain_number(float(np.nanmedian(values)))}. "
        f"{_loss_change(change, 'equal weights in place of the maps')}",
        *best,
        "distant_confidence",
        float(scores[best]),
        {
            Effect.CHEAP: "Take their maps as a hint only: the loss does not depend on them",
            Effect.NEEDED: "Keep them, and read their maps where you look for tokens that belong "
            "together: the loss depends on where they look",
            Effect.OPEN: f"Take their maps as a hint only: {_UNDECIDED}",
        }[change.effect(budget)],
    )


def _sinks(heads: xr.Dataset, intervene: Intervene, budget: float) -> Iterator[Finding]:
    if "sink_natural" not in heads:
        return
    # on short sequences equal weights alone give the first token this much
    null = heads.sink_natural_null.values
    least = np.maximum(SINK, null)
    places = _where(heads.sink_natural.values > least)
    if not places:
        return
    change = intervene(places, "uniform")
    shuffled = float(np.mean(heads.sink_shuffled.values > least))
    yield Finding(
        f"{len(places)} of {heads.sink_natural.size} heads give the first token more than {SINK} "
        f"of their weight: {named_heads(places)}",
        f"Uniform attention gives it {plain_number(float(np.max(null)))}; with shuffled tokens "
        f"{100 * shuffled:.0f} % of the heads do. "
        f"{_loss_change(change, 'equal weights in place of the maps')}",
        None,
        None,
        "sink_natural",
        _FAR + len(places) / heads.sink_natural.size,
        "Leave the first token out where you read these maps. "
        + _without_maps(change.effect(budget)),
    )


def _doubles(heads: xr.Dataset, intervene: Intervene, budget: float) -> Iterator[Finding]:
    """The head that attends most like another one."""
    if "nearest_distance" not in heads:
        return
    distance = heads.nearest_distance.values
    if np.all(np.isnan(distance)):
        return
    place = tuple(int(k) for k in np.unravel_index(np.nanargmin(distance), distance.shape))
    null = float(heads.nearest_distance_null.values[place])
    if not float(heads.nearest_distance_high.values[place]) < null:
        return
    partner = (int(heads.nearest_layer.values[place]), int(heads.nearest_head.values[place]))
    change = intervene([(place[0], place[1])], "mean")
    first = named_heads([(place[0], place[1])])
    yield Finding(
        f"Heads {place[0]}.{place[1]} and {partner[0]}.{partner[1]} attend alike: the distance of "
        f"their maps is {plain_number(float(distance[place]))}, of at most 1",
        f"Compared at different rows of a sequence the nearest head is {plain_number(null)} away. "
        f"{_loss_change(change, 'the output of the first replaced by its mean')}",
        place[0],
        place[1],
        "nearest_distance",
        _FAR * (1 - float(distance[place]) / null) + 1,
        {
            Effect.CHEAP: f"After a test on other sequences, replace the output of {first} by its "
            "mean, a constant that takes no attention to compute",
            Effect.NEEDED: f"Keep both: the loss depends on how the output of {first} varies",
            Effect.OPEN: f"Keep both: more sequences would decide whether the loss needs {first}",
        }[change.effect(budget)],
    )


def _tight_certificates(heads: xr.Dataset) -> Iterator[Finding]:
    """The head whose certificate an attack comes closest to."""
    if "local_ratio" not in heads:
        return
    ratio = heads.local_ratio.values
    if np.all(np.isnan(ratio)):
        return
    place = tuple(int(k) for k in np.unravel_index(np.nanargmax(ratio), ratio.shape))
    if ratio[place] < _TIGHT:
        return
    attack = float(heads.local_attack.values[place])
    certificate = float(heads.local_certificate.values[place])
    yield Finding(
        f"The certificate of head {place[0]}.{place[1]} is at most "
        f"{plain_number(float(1 / ratio[place]))} times what an attack reaches",
        f"By a proof a small change of what the head reads changes its output by at most "
        f"{plain_number(certificate)} times as much at these tokens, and an attack reaches "
        f"{plain_number(attack)}. The median head's attack reaches "
        f"{100 * float(np.nanmedian(ratio)):.0f} % of its certificate",
        place[0],
        place[1],
        "local_ratio",
        _FAR * float(ratio[place]),
        "Use the certificate of this head where its inputs may be altered: no proof can make it "
        f"smaller than {plain_number(attack)}",
    )
