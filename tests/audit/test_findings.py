"""Each finding appears where it must, and not where it must not; interventions are made up."""

import numpy as np
import pytest
import xarray as xr

from attlas.audit.change import Change, Effect
from attlas.audit.change import tested_change as change_of
from attlas.audit.findings import findings_of, robust_score

FLAT = np.full((2, 3), 0.1)


class Intervention:
    """Notes what is replaced."""

    def __init__(self, unit="nats"):
        self.asked, self.unit = [], unit

    def __call__(self, heads, replacement):
        self.asked.append((list(heads), replacement))
        return Change(2.5, 0.25, 0.125, 0.375, self.unit)


def found_in(**variables):
    """The findings of a data set, and what was replaced."""
    act = Intervention()
    data = xr.Dataset({name: (("layer", "head"), values) for name, values in variables.items()})
    return findings_of(data, act), act.asked


def at(place, value, rest=FLAT):
    """The others' values, and another one at one head."""
    values = np.array(rest, float)
    values[place] = value
    return values


SPREAD = FLAT + np.arange(6.0).reshape(2, 3) / 100


def needed(value, low):
    removal = at((1, 0), value, SPREAD)
    return {"removal_mean": removal, "removal_mean_low": at((1, 0), low, removal - 0.05)} | {
        "removal_mean_high": removal + 0.05
    }


def idle(high):
    return {"removal_mean": SPREAD, "removal_mean_low": SPREAD - 0.05} | {
        "removal_mean_high": at((0, 1), high, SPREAD + 0.05),
        "removal_mean_null": np.full((2, 3), 0.01),
    }


def uniform(low):
    return {"entropy": FLAT, "entropy_low": at((1, 2), low), "entropy_null": np.ones((2, 3))}


def positional(share):
    return {"positional_share": at((0, 2), share), "positional_offset": -np.ones((2, 3))}


def distant(value):
    return {"distant_confidence": at((0, 1), value, SPREAD)}


def sink(value, null=0.02):
    return {
        "sink_natural": at((0, 0), value),
        "sink_natural_null": np.full((2, 3), null),
        "sink_shuffled": FLAT,
    }


def double(high):
    return {
        "nearest_distance": at((1, 1), 0.2, np.full((2, 3), 0.7)),
        "nearest_distance_high": np.full((2, 3), high),
        "nearest_distance_null": np.full((2, 3), 0.6),
        "nearest_layer": np.zeros((2, 3)),
        "nearest_head": np.full((2, 3), 2.0),
    }


def tight(ratio):
    return {
        "local_ratio": at((1, 0), ratio),
        "local_attack": np.full((2, 3), 3.0),
        "local_certificate": np.full((2, 3), 4.0),
    }


@pytest.mark.parametrize(
    ("there", "absent", "said", "place", "replaced"),
    [
        (needed(5.0, 4.0), needed(5.0, -0.1), "needs head 1.0", (1, 0), ([(1, 0)], "uniform")),
        (needed(5.0, 4.0), needed(0.16, 0.1), "costs 5 nats", (1, 0), ([(1, 0)], "uniform")),
        (idle(0.009), idle(0.011), "1 of 6 heads", (None, None), ([(0, 1)], "mean")),
        (uniform(0.985), uniform(0.97), "Head 1.2 attends", (1, 2), ([(1, 2)], "uniform")),
        (positional(0.95), positional(0.85), "Head 0.2 looks", (0, 2), ([(0, 2)], "uniform")),
        (distant(0.9), distant(0.13), "Head 0.1 finds", (0, 1), ([(0, 1)], "uniform")),
        (sink(0.4), sink(0.29), "1 of 6 heads give", (None, None), ([(0, 0)], "uniform")),
        (sink(0.4), sink(0.4, null=0.5), "head 0.0", (None, None), ([(0, 0)], "uniform")),
        (double(0.3), double(0.61), "Heads 1.1 and 0.2", (1, 1), ([(1, 1)], "mean")),
        (tight(0.75), tight(0.45), "is at most 1.33 times what an attack reaches", (1, 0), None),
    ],
)
def test_each_finding_appears_where_it_must_and_only_there(there, absent, said, place, replaced):
    (finding,), asked = found_in(**there)
    assert said in finding.sentence
    assert (finding.layer, finding.head) == place
    assert finding.quantity in there
    if replaced is None:
        assert asked == []
        assert "An attack reaches 3" in finding.effect
    else:
        assert asked == [replaced]
        assert "loss of 2.5 nats changes by 0.25 [0.125, 0.375]" in finding.effect
        assert finding.consequence == 0.125 / 2.5
    assert found_in(**absent) == ((), [])


ACTIONS = {
    "entropy": ("these heads average", "Keep their maps: what", "Keep their maps: more"),
    "positional_share": (
        "these heads average",
        "Keep their maps: what",
        "Keep their maps: more",
    ),
    "distant_confidence": ("as a hint only: the loss", "Keep them, and read", "only: more"),
    "sink_natural": (
        "maps. Let these heads",
        "maps. Keep their maps: what",
        "maps. Keep their maps: more",
    ),
    "nearest_distance": ("Replace the output of", "Keep both: the loss depends", "Keep both: more"),
}
CHANGES = (
    Change(2.5, 0.0, -0.01, 0.02, "nats"),
    Change(2.5, 0.1, 0.05, 0.2, "nats"),
    Change(2.5, 0.1, -0.05, 0.2, "nats"),
)


@pytest.mark.parametrize(
    "variables", [uniform(0.985), positional(0.95), distant(0.9), sink(0.4), double(0.3)]
)
def test_what_to_do_follows_from_the_interval_of_the_test(variables):
    data = xr.Dataset({k: (("layer", "head"), v) for k, v in variables.items()})
    for place, change in enumerate(CHANGES):
        (finding,) = findings_of(data, lambda *_, change=change: change)
        assert ACTIONS[finding.quantity][place] in finding.action
        # within the budget, above 0, or neither
        assert [change.high <= 0.025, change.low > 0, True].index(True) == place
    (finding,) = findings_of(data, lambda *_: CHANGES[1], budget=0.1)
    assert ACTIONS[finding.quantity][0] in finding.action


def test_heads_go_together_only_where_the_joint_test_allows_it():
    data = xr.Dataset({k: (("layer", "head"), v) for k, v in idle(0.009).items()})
    actions = [findings_of(data, lambda *_, c=c: c)[0].action for c in CHANGES]
    assert actions[0].startswith("Remove them together")
    assert {action[:27] for action in actions[1:]} == {"Do not remove all of them: "}


def test_a_change_that_is_no_number_decides_nothing():
    unknown = Change(2.5, *[float("nan")] * 3, "nats")
    assert unknown.effect(0.01) is Effect.OPEN
    assert Change(0.0, 0.0, -0.01, 0.005, "nats").effect(0.01) is Effect.CHEAP


def test_sequences_that_chose_heads_do_not_show_that_these_are_cheap():
    cheap = Change(2.5, 0.0, -0.01, 0.02, "nats")
    assert cheap.effect(0.01) is Effect.CHEAP
    assert cheap._replace(held_out=False).effect(0.01) is Effect.OPEN


def test_a_change_is_read_on_every_second_sequence_alone():
    before = np.arange(1.0, 9.0)
    chosen = np.tile([100.0, 1.0], 4)  # the half that chooses has no say
    change = change_of(before, before + chosen, "nats", "sequences")
    assert (change.loss, change.mean, change.low, change.high) == (5.0, 1.0, 1.0, 1.0)
    assert change.tested == "4 sequences that did not choose it"
    few = change_of(before[:3], before[:3] + chosen[:3], "nats", "texts")
    assert (few.mean, few.held_out) == (67.0, False)


@pytest.mark.parametrize(
    ("variables", "silent"),
    [
        (needed(5.0, 4.0), (1, 0)),
        (idle(0.009), (0, 1)),
        (uniform(0.985), (1, 2)),
        (positional(0.95), (0, 2)),
        (distant(0.9), (0, 1)),
        (sink(0.4), (0, 0)),
        (tight(0.75), (1, 0)),
    ],
)
def test_heads_that_write_nothing_are_not_named(variables, silent):
    data = xr.Dataset({name: (("layer", "head"), array) for name, array in variables.items()})
    assert len(findings_of(data, Intervention())) == 1
    assert findings_of(data, Intervention(), silent=[silent]) == ()


@pytest.mark.parametrize("silent", [(1, 1), (0, 2)])
def test_no_copy_of_a_head_that_writes_nothing_is_named(silent):
    data = xr.Dataset({name: (("layer", "head"), array) for name, array in double(0.3).items()})
    found = findings_of(data, Intervention(), silent=[silent])
    assert all(f"{silent[0]}.{silent[1]}" not in each.sentence for each in found)


def test_a_model_whose_heads_are_all_removed_has_none_to_name():
    every = [(layer, head) for layer in range(2) for head in range(3)]
    cases = (needed(5.0, 4.0), idle(0.009), distant(0.9), sink(0.4), double(0.3), tight(0.75))
    for variables in cases:
        data = xr.Dataset({k: (("layer", "head"), v) for k, v in variables.items()})
        assert findings_of(data, Intervention(), silent=every) == ()


def test_a_removed_head_counts_neither_as_removable_nor_among_all():
    data = xr.Dataset({k: (("layer", "head"), v) for k, v in idle(0.009).items()})
    (finding,) = findings_of(data, Intervention(), silent=[(0, 0)])
    assert finding.sentence.startswith("1 of 5 heads costs at most 0.01 nats")


def test_the_unit_is_that_of_the_loss():
    table = xr.Dataset({k: (("layer", "head"), v) for k, v in needed(5.0, 4.0).items()})
    table["removal_mean_null"] = ("layer", "head"), np.full((2, 3), 0.2)
    found = findings_of(table, Intervention("squared state lengths"))
    assert len(found) == 2  # one is needed, the others are not
    for finding in found:
        assert "nats" not in finding.sentence + finding.effect
        assert "squared state lengths" in finding.sentence
        assert "loss of 2.5 squared state lengths changes by 0.25" in finding.effect


def test_without_a_loss_only_certificates_are_told():
    data = xr.Dataset(
        {name: (("layer", "head"), v) for name, v in {**sink(0.4), **tight(0.75)}.items()}
    )
    assert [each.quantity for each in findings_of(data, None)] == ["local_ratio"]


def test_several_heads_are_replaced_together_and_the_strongest_is_first():
    both = np.where(np.arange(6).reshape(2, 3) < 4, 0.95, 0.1)
    found, asked = found_in(
        positional_share=both, positional_offset=np.ones((2, 3)), **needed(50.0, 40.0)
    )
    assert [each.quantity for each in found] == ["removal_mean", "positional_share"]
    assert "Heads 0.0, 0.1, 0.2, 1.0 look" in found[1].sentence
    assert "(+1 " in found[1].sentence
    assert asked[1] == ([(0, 0), (0, 1), (0, 2), (1, 0)], "uniform")


def test_long_lists_of_heads_are_cut():
    (finding,), _ = found_in(entropy=FLAT, entropy_low=np.ones((2, 3)), entropy_null=FLAT)
    assert "0.0, 0.1, 0.2, 1.0, 1.1, 1.2 attend" in finding.sentence
    wide = np.ones((2, 7))
    (finding,), _ = found_in(entropy=wide, entropy_low=wide, entropy_null=wide)
    assert "0.5 and 8 more attend" in finding.sentence
    wide = np.ones((2, 6))
    (finding,), _ = found_in(entropy=wide, entropy_low=wide, entropy_null=wide)
    assert "1.4, 1.5 attend" in finding.sentence


@pytest.mark.parametrize(
    "variables", [double(0.3) | {"nearest_distance": np.full((2, 3), np.nan)}, {}]
)
def test_what_was_not_measured_is_not_told(variables):
    assert found_in(**variables) == ((), [])
    nothing = np.full((2, 3), np.nan)
    assert found_in(distant_confidence=nothing) == ((), [])
    assert found_in(**{**tight(0.75), "local_ratio": nothing}) == ((), [])


def test_robust_scores():
    scores = robust_score(np.array([0.0, 0.0, 0.0, 1.0, np.nan]))
    assert scores[:4].tolist() == [0, 0, 0, np.inf]
    assert np.isnan(scores[4])
    normal = np.random.default_rng(0).normal(3.0, 2.0, 4001)
    scores = robust_score(normal)
    # the median distance of n normals is off by 1.17 / sqrt(n) of the deviation
    assert abs(np.std(scores) - 1) < 5 * 1.17 / 4001**0.5
