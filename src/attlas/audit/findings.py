r"""What stands out among the heads, each against a reference and with a test that was run.

A head is tested by ablating it and computing the loss of sequences again that had no part in naming
it, a certificate by attacking it. What was tested in neither way is not reported. What to do about
it follows from the effect of the test.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from attlas.audit.change import Effect, Heads, Intervene
from attlas.audit.data_level.data_quantities import SINK
from attlas.audit.finding import Finding
from attlas.audit.halves import BUDGET
from attlas.display.numbers import plain_number

_FAR = 4.0
_POSITIONAL = 0.9
_NEAR_UNIFORM = 0.98
_TIGHT = 0.5
_NAMED = 12
"""Heads up to which a sentence names all."""


def findings_of(
    heads: xr.Dataset,
    intervene: Intervene | None,
    budget: float = BUDGET,
    silent: Heads = (),
) -> tuple[Finding, ...]:
    """What stands out, furthest first.

    Args:
        heads: variables [layer, head] of the audit, on the sequences that choose.
        intervene: replaces heads and reads the loss of other sequences again; None where there is
            no loss.
        budget: share of the loss that an action may cost.
        silent: heads that write nothing, which are removed already and not named.

    Returns:
        Findings; none at level weights, where nothing can be ablated.
    """
    if silent:
        heads = _without(heads, silent)
    findings = list(_tight_certificates(heads))
    if intervene is not None:
        for search in (_needed, _expendable, _uniform, _positional, _singular, _sinks, _doubles):
            findings.extend(search(heads, intervene, budget))
    findings.sort(key=lambda finding: -finding.strength)
    return tuple(findings)


def _without(heads: xr.Dataset, silent: Heads) -> xr.Dataset:
    """The variables with no number for some heads, and for those that are nearest to these."""
    speaks = np.ones(tuple(heads.sizes[dim] for dim in ("layer", "head")), bool)
    speaks[tuple(zip(*silent, strict=True))] = False
    left = heads.where(xr.DataArray(speaks, dims=("layer", "head")))
    if "nearest_distance" in left:
        nearest = np.stack([left.nearest_layer.values, left.nearest_head.values], axis=-1)
        beside = np.array([[tuple(pair) in set(silent) for pair in row] for row in nearest])
        left = left.assign(nearest_distance=left.nearest_distance.where(~beside))
    return left


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


_UNDECIDED = "more sequences would decide whether the loss needs them"


def _without_maps(effect: Effect) -> str:
    """What to do about heads whose maps were replaced by equal weights."""
    return {
        Effect.CHEAP: "Let these heads average the values of all tokens: their queries, keys and "
        "attention weights need not be computed then",
        Effect.NEEDED: "Keep their maps: what distinguishes them from equal weights counts",
        Effect.OPEN: f"Keep their maps: {_UNDECIDED}",
    }[effect]


_EQUAL = "equal weights in place of the maps"
_MAPS = 0.5
"""Share of a head that its queries and keys are, beside its values and outputs."""


def _number(values: np.ndarray) -> int:
    """How many heads have a number."""
    return int(np.sum(~np.isnan(values)))


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
    if "removal_mean" not in heads or _number(heads.removal_mean.values) == 0:
        return
    place, score, value = _single(heads.removal_mean)
    low = float(heads.removal_mean_low.values[place])
    if score < _FAR or not low > 0:  # NaN: of one sequence there is no interval
        return
    change = intervene([place], "uniform")
    median = float(np.nanmedian(heads.removal_mean.values))
    yield Finding(
        f"The model needs {named_heads([place])} more than any other: replacing its output by "
        f"its mean costs {plain_number(value)} {change.unit}",
        f"The median head costs {plain_number(median)}",
        *place,
        "removal_mean",
        score,
        f"Keep {named_heads([place])}, prune others first, and round its weights last",
        change.sentence("equal weights in place of its maps"),
        change.consequence(budget, 0.0),
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
    size, reference = _number(null), float(np.nanmax(null))
    cost = "costs" if len(places) == 1 else "each cost"
    yield Finding(
        f"{len(places)} of {size} heads {cost} at most {plain_number(reference)} "
        f"{change.unit}, to the upper end of a 95 % interval, as much as rounding "
        f"the weights to bfloat16: {named_heads(places)}",
        "Perturbing every weight of the layers by a random share of at most 1/256, as that "
        "rounding does, changes the loss as much, to the end of its interval",
        None,
        None,
        "removal_mean",
        _FAR + len(places) / size,
        "Remove them together: the means of their outputs, which are constants, take their place"
        if change.effect(budget) is Effect.CHEAP
        else "Do not remove all of them: what each costs alone does not add up to what they cost "
        "together",
        change.sentence("the outputs of all of these heads replaced by their means"),
        change.consequence(budget, len(places) / size),
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
        "The lower end of the interval of their entropy is that near to it",
        *(places[0] if len(places) == 1 else (None, None)),
        "entropy",
        _FAR + len(places) / _number(heads.entropy.values),
        _without_maps(change.effect(budget)),
        change.sentence(_EQUAL),
        change.consequence(budget, _MAPS * len(places) / _number(heads.entropy.values)),
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
        f"The median head does so in {100 * float(np.nanmedian(share)):.0f} % of the rows",
        *(places[0] if len(places) == 1 else (None, None)),
        "positional_share",
        _FAR + float(np.nanmax(share)),
        _without_maps(change.effect(budget)),
        change.sentence(_EQUAL),
        change.consequence(budget, _MAPS * len(places) / _number(share)),
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
        f"The median head has {plain_number(float(np.nanmedian(values)))}",
        *best,
        "distant_confidence",
        float(scores[best]),
        {
            Effect.CHEAP: "Take their maps as a hint only: the loss does not depend on them",
            Effect.NEEDED: "Keep them, and read their maps where you look for tokens that belong "
            "together: the loss depends on where they look",
            Effect.OPEN: f"Take their maps as a hint only: {_UNDECIDED}",
        }[change.effect(budget)],
        change.sentence(_EQUAL),
        change.consequence(budget, 0.0),
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
    size = _number(heads.sink_natural.values)
    shuffled = float(np.sum(heads.sink_shuffled.values > least)) / size
    yield Finding(
        f"{len(places)} of {size} heads give the first token more than {SINK} "
        f"of their weight: {named_heads(places)}",
        f"Uniform attention gives it {plain_number(float(np.nanmax(null)))}; with shuffled tokens "
        f"{100 * shuffled:.0f} % of the heads do",
        None,
        None,
        "sink_natural",
        _FAR + len(places) / size,
        "Leave the first token out where you read these maps. "
        + _without_maps(change.effect(budget)),
        change.sentence(_EQUAL),
        change.consequence(budget, _MAPS * len(places) / size),
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
        f"Compared at different rows of a sequence the nearest head is {plain_number(null)} away",
        place[0],
        place[1],
        "nearest_distance",
        _FAR * (1 - float(distance[place]) / null) + 1,
        {
            Effect.CHEAP: f"Replace the output of {first} by its mean, a constant that takes no "
            "attention to compute",
            Effect.NEEDED: f"Keep both: the loss depends on how the output of {first} varies",
            Effect.OPEN: f"Keep both: more sequences would decide whether the loss needs {first}",
        }[change.effect(budget)],
        change.sentence("the output of the first replaced by its mean"),
        change.consequence(budget, 1 / _number(distance)),
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
        f"{plain_number(certificate)} times as much at these tokens",
        place[0],
        place[1],
        "local_ratio",
        _FAR * float(ratio[place]),
        "Use the certificate of this head where its inputs may be altered: no proof can make it "
        f"smaller than {plain_number(attack)}",
        f"An attack reaches {plain_number(attack)}; the median head's attack reaches "
        f"{100 * float(np.nanmedian(ratio)):.0f} % of its certificate",
    )
