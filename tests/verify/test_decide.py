"""Each kind of claim has one rule: here it must say each of its verdicts."""

from dataclasses import replace

import numpy as np
import pytest

from attlas.claims.claim import Claim, Control, Kind, Source, Status
from attlas.claims.sides import Evidence
from attlas.claims.verdict import Outcome
from attlas.verify.evidence import decide


def zeros(rng, count):
    return {"left": np.zeros(count), "right": np.zeros(count)}


def toy(kind, **changes):
    """A claim whose sides are stored in its instances."""

    def stored(left, right, *, more=0.0):
        return left + more, right

    settings = {
        "name": "toy/claim",
        "paper": "toy",
        "locator": "Fact",
        "statement": "0 = 0",
        "remark": "",
        "kind": kind,
        "status": Status.NEW,
        "source": Source.DERIVED,
        "function": stored,
        "sample": zeros,
        "controls": (Control("one more", more=1.0),),
    }
    return Claim(**(settings | changes))


def evidence(left, right, scales=None, applicable=None, spread=None):
    """Evidence from plain arrays; the magnitude is the larger side."""
    left, right = np.broadcast_arrays(np.asarray(left, float), np.asarray(right, float))
    return Evidence(
        left,
        right,
        magnitude=np.maximum(abs(left), abs(right)),
        error=np.zeros_like(left),
        applicable=np.ones(len(left), bool) if applicable is None else np.asarray(applicable),
        scales=None if scales is None else np.broadcast_to(scales, left.shape),
        range=None if spread is None else np.broadcast_to(spread, left.shape),
        failed_assumption="it holds",
    )


ONES = np.ones(40)


@pytest.mark.parametrize(
    ("kind", "left", "right", "outcome"),
    [
        (Kind.INEQUALITY, ONES, 2 * ONES, Outcome.SUPPORTED),
        (Kind.INEQUALITY, ONES * (1 + 1e-15), ONES, Outcome.SUPPORTED),
        (Kind.INEQUALITY, ONES * (1 + 1e-12), ONES, Outcome.VIOLATED),
        (Kind.INEQUALITY, ONES[:10], 2 * ONES[:10], Outcome.INCONCLUSIVE),
        (Kind.INEQUALITY, np.full(40, np.nan), ONES, Outcome.INCONCLUSIVE),
        (Kind.IDENTITY, ONES, ONES, Outcome.SUPPORTED),
        (Kind.IDENTITY, ONES, ONES * (1 + 1e-12), Outcome.VIOLATED),
        (Kind.EXISTENCE, ONES, 0 * ONES, Outcome.VIOLATED),
        (Kind.PROBABILITY, ONES, 0.5 * ONES, Outcome.SUPPORTED),
        (Kind.PROBABILITY, 0 * ONES, 0.5 * ONES, Outcome.VIOLATED),
        (Kind.PROBABILITY, np.arange(40) % 2, 0.5 * ONES, Outcome.INCONCLUSIVE),
        (Kind.EXPECTATION, 0 * ONES, ONES, Outcome.SUPPORTED),
        (Kind.EXPECTATION, ONES, 0 * ONES, Outcome.VIOLATED),
        (Kind.EXPECTATION, np.arange(40) % 2, 0.5 * ONES, Outcome.INCONCLUSIVE),
    ],
)
def test_verdict_of_each_kind(kind, left, right, outcome):
    # Differences of these sides lie in an interval of length 1.
    assert decide(toy(kind), evidence(left, right, spread=1.0)).outcome is outcome


SCALES = np.array([10.0, 100.0, 1000.0, 10000.0])


@pytest.mark.parametrize(
    ("law", "outcome"),
    [
        (SCALES**-1.0, Outcome.SUPPORTED),
        (np.log(SCALES) / SCALES, Outcome.SUPPORTED),
        (0.2 + SCALES**-1.0, Outcome.VIOLATED),
        (SCALES**0.5, Outcome.VIOLATED),
        (1e-30 * SCALES, Outcome.VIOLATED),
        (np.zeros(4), Outcome.SUPPORTED),
    ],
)
def test_limit_tells_decay_from_plateau(law, outcome):
    found = evidence(np.tile(law, (40, 1)), 0.0, scales=SCALES)
    assert decide(toy(Kind.LIMIT), found).outcome is outcome


@pytest.mark.parametrize(
    ("value", "rate", "outcome"),
    [
        (SCALES**-2.0, SCALES**-1.0, Outcome.SUPPORTED),
        (SCALES**-1.0, SCALES**-2.0, Outcome.VIOLATED),
        (2 - 1 / SCALES, 1 + 0 * SCALES, Outcome.SUPPORTED),
        (-SCALES, SCALES, Outcome.INCONCLUSIVE),
    ],
)
def test_rate_is_an_upper_bound(value, rate, outcome):
    found = evidence(np.tile(value, (40, 1)), np.tile(rate, (40, 1)), scales=SCALES)
    assert decide(toy(Kind.RATE), found).outcome is outcome


def test_one_bad_instance_violates_a_limit():
    good, bad = SCALES**-1.0, 0.2 + SCALES**-1.0
    mixed = np.stack([good if k else bad for k in range(40)])
    found = evidence(mixed, 0.0, scales=SCALES)
    assert decide(toy(Kind.LIMIT), found).outcome is Outcome.VIOLATED


def test_a_limit_may_have_several_rows_in_one_instance():
    both = np.tile(np.stack([SCALES**-1.0, SCALES**-2.0]), (40, 1, 1))
    found = evidence(both, 0.0, scales=SCALES)
    assert decide(toy(Kind.LIMIT), found).statistics["complying"] == 40


def test_assumptions_exclude_and_are_named():
    nowhere = evidence(2 * ONES, ONES, applicable=np.zeros(40, bool))
    verdict = decide(toy(Kind.INEQUALITY), nowhere)
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert "it holds" in verdict.reason
    some = np.arange(40) < 35
    left = np.where(some, 1.0, 9.0)
    verdict = decide(toy(Kind.INEQUALITY), evidence(left, 2 * ONES, applicable=some))
    assert verdict.outcome is Outcome.SUPPORTED
    assert (verdict.applicable, verdict.slack) == (35, 1.0)
    # The 64 roundings of the right side are taken off.
    np.testing.assert_allclose(verdict.tightness, 0.5, rtol=1e-13)


def test_a_side_may_not_be_excused_by_a_broken_allowance():
    """NaN or infinity as magnitude or error would make every comparison with it come out well."""
    for part in ("magnitude", "error"):
        for value in (np.nan, np.inf):
            broken = replace(evidence(2 * ONES, ONES), **{part: value * ONES})
            assert decide(toy(Kind.INEQUALITY), broken).outcome is Outcome.INCONCLUSIVE


def test_two_sides_that_are_rounding_have_no_ratio():
    """Such a ratio can be anything, also above one on a claim that holds."""
    noise = replace(evidence(1.8e-15 * ONES, 1e-15 * ONES), magnitude=ONES)
    verdict = decide(toy(Kind.INEQUALITY), noise)
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.tightness is None
    attained = decide(toy(Kind.INEQUALITY), evidence(ONES * (1 + 1e-15), ONES))
    assert 1 - 1e-13 < attained.tightness <= 1


def test_exhaustive_claims_need_no_thirty():
    few = evidence(ONES[:4], 2 * ONES[:4])
    claim = toy(Kind.INEQUALITY, enumerates=4)
    assert decide(claim, few).outcome is Outcome.SUPPORTED


def test_tolerance_is_rounding_plus_certified_error():
    found = evidence(ONES, 3 * ONES)
    eps = np.finfo(float).eps
    allowed = Kind.IDENTITY.rule.tolerance(found, 10)
    np.testing.assert_allclose(allowed, 3 * 10 * eps / (1 - 10 * eps))


def test_limits_need_four_geometric_scales():
    for kind in (Kind.LIMIT, Kind.RATE):
        three = decide(toy(kind), evidence(np.ones((40, 3)), 1.0, scales=SCALES[:3]))
        assert three.outcome is Outcome.INCONCLUSIVE
        assert "4 scales: 3 are given" in three.reason
    uneven = evidence(np.ones((40, 4)), 0.0, scales=np.array([1.0, 2.0, 4.0, 100.0]))
    with pytest.raises(ValueError, match="geometric"):
        decide(toy(Kind.LIMIT), uneven)


def test_an_excess_as_small_as_rounding_says_what_to_declare():
    left = ONES.copy()
    left[3] = 1e-9
    right = left.copy()
    right[3] -= 1e-16
    for kind, said in ((Kind.IDENTITY, "differ"), (Kind.INEQUALITY, "exceed the right side")):
        found = decide(toy(kind), evidence(left, right))
        assert found.outcome is Outcome.VIOLATED
        assert found.reason.startswith(
            f"1 of 40 instances {said} beyond rounding, by at most 1e-16"
        )
        assert "Sides(left, right, magnitude=...)" in found.reason
    found = decide(toy(Kind.IDENTITY), evidence(left, right - 1e-9))
    assert found.reason == "40 of 40 instances differ beyond rounding"
