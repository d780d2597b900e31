"""Scales that are doubled: what they are, what a decision over them costs, and what is refused."""

import numpy as np
import pytest
from sequence_evidence import evidence

from attlas.claims.claim import Control, Kind
from attlas.claims.kinds.extrapolation import doublings_needed, persistence
from attlas.claims.kinds.trend import Limit, Rate
from attlas.claims.sides import Doubling
from attlas.claims.statement import computed, rate
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.verify.check import check

RULE = Rate(doubled=True)


def draw(rng, count):
    return {"x": rng.uniform(1, 2, size=count)}


def outcomes(rule, law, limit=1.0, first=4):
    """What a law of the scale comes to at 8, 11, 14, ..., 23 scales."""
    decided = []
    for count in range(8, 24, 3):
        n = first * 2.0 ** np.arange(count)
        decided.append(rule.decide(evidence(law(n), limit + 0 * n, n), 64, 1e-3).outcome)
    return decided


@pytest.mark.parametrize("slopes", [2, 3, 4])
def test_the_probability_of_persistence_is_that_of_exponential_slopes(slopes):
    rng = np.random.default_rng(0)
    drawn = rng.exponential(size=(400_000, slopes)) * rng.choice([-1, 1], size=(400_000, slopes))
    rises = np.all(drawn > 0, axis=1) & np.all(drawn[:, 1:] >= 0.95 * drawn[:, :-1], axis=1)
    expected = persistence(slopes)
    assert abs(rises.mean() - expected) < 4 * np.sqrt(expected / len(drawn))


def test_each_look_asks_for_more_doublings_than_the_one_before():
    needed = [doublings_needed(64, 0.005 / 2**look) for look in range(1, 12)]
    assert needed == sorted(needed)
    assert needed[0] < needed[-1]
    risks = [64 * persistence(n) for n in needed]
    assert sum(risks) <= 0.005


@pytest.mark.parametrize("noise", [0.01, 0.1, 1.0])
def test_fluctuations_of_a_bounded_ratio_are_no_growth(noise):
    rng = np.random.default_rng(1)
    for count in (8, 11):
        n = 2.0 ** np.arange(count)
        ratio = np.exp(noise * rng.normal(size=(2000, count)))
        # The error probability of 64 instances, fifty times as many of them.
        verdict = RULE.decide(evidence(ratio, 1 + 0 * n, n), 64, 1e-3 * 2000 / 64)
        assert verdict.outcome is not Outcome.VIOLATED


@pytest.mark.parametrize(
    "law",
    [lambda n: n**0.05, lambda n: n**1.0, lambda n: 1 + n / 100, lambda n: 1 + 100 / n + n**0.5],
)
def test_growth_like_a_power_is_violated_once_it_persists(law):
    decided = outcomes(RULE, law)
    assert decided[-1] is Outcome.VIOLATED
    assert Outcome.SUPPORTED not in decided


@pytest.mark.parametrize(
    "law",
    [np.log, lambda n: np.log(np.log(n)), lambda n: np.log(n) ** 3, lambda n: 1 - 1 / np.log(n),
     lambda n: 2 - n**-0.1, lambda n: 2 + np.sin(np.log(n))],
)  # fmt: skip
def test_growth_that_fades_is_never_violated(law):
    assert Outcome.VIOLATED not in outcomes(RULE, law)


def test_growth_that_ends_beyond_all_scales_looks_like_growth():
    decided = outcomes(RULE, lambda n: n / (n + 1e4))
    assert decided[0] is Outcome.VIOLATED
    assert decided[-1] is Outcome.INCONCLUSIVE


def test_a_ratio_that_is_level_or_vanishes_to_rounding_complies():
    for law in (lambda n: 2 - 1 / n, lambda n: 1 + 1e-3 * np.sin(n)):
        assert outcomes(RULE, law)[-1] is Outcome.SUPPORTED
    n = 2.0 ** np.arange(11)
    stalled = np.exp(-n) * (n < 30) + 1e-17 * (-1.0) ** np.log2(n)
    assert RULE.decide(evidence(stalled, 1 / n, n), 64, 1e-3).outcome is Outcome.SUPPORTED
    # As small as rounding, but not beside a right side that falls as fast.
    verdict = RULE.decide(evidence(stalled, np.exp(-n), n), 64, 1e-3)
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_plateau_is_violated_and_a_slow_limit_is_not():
    rule = Limit(doubled=True)
    for law in (lambda n: 0.1 + 1 / n, lambda n: 0.3 + n**-0.5, lambda n: n**0.1):
        assert outcomes(rule, law, limit=0.0)[-1] is Outcome.VIOLATED
    for law in (lambda n: 1 / n, lambda n: n**-0.5):
        assert outcomes(rule, law, limit=0.0)[-1] is Outcome.SUPPORTED
    for law in (lambda n: 1 / np.log(n), lambda n: 1 / np.sqrt(np.log(n)), lambda n: n**-0.02):
        assert Outcome.VIOLATED not in outcomes(rule, law, limit=0.0)


def test_a_step_away_from_the_limit_is_no_plateau():
    # The last step was called settled whatever its size, if it led away.
    n = 10.0 ** np.arange(1, 5)
    turning = 1 / n + np.array([0, 0, 0, 1e-2])
    assert Limit().decide(evidence(turning, 0 * n, n), 64, 1e-3).outcome is Outcome.INCONCLUSIVE


def test_the_sampler_reads_the_scales_by_their_name():
    def walks(rng, count, *, t):
        steps = rng.uniform(0.5, 1.5, size=(count, t[-1]))
        return {"sums": np.cumsum(steps, axis=1)[:, t - 1]}

    @rate(scales=Doubling("t", 16), sample=walks, controls=[Control("of order 1", power=0)])
    def sums_grow_linearly(sums, t, *, power=1):
        """Sums of t numbers are O(t)."""
        return sums, 1.0 * t**power

    report = check(sums_grow_linearly, challenge=0)
    assert report.defects == ()
    assert report.verdict.applicable == 64


def test_a_computed_rate_takes_its_scales_as_a_keyword():
    @computed(Kind.RATE, scales=Doubling("t", 16), controls=[Control("of order 1/t^2", power=2)])
    def shifted(rng, count, *, t, power=1):
        """1 / (t + x) is O(1 / t)."""
        return 1 / (t + rng.uniform(size=(count, 1))), t ** -float(power)

    assert check(shifted, challenge=0).defects == ()


def test_a_computed_limit_says_how_to_give_scales():
    controls = [Control("to 1", goal=1.0)]
    with pytest.raises(UserError, match=r"give scales=2.0 \*\* np.arange\(4, 12\), or scales=Doub"):

        @computed(Kind.LIMIT, controls=controls)
        def unscaled(rng, count, *, goal=0.0):
            """x / n tends to 0."""
            return rng.normal(size=(count, 1)) / 2.0 ** np.arange(8), goal

    @computed(Kind.LIMIT, scales=2.0 ** np.arange(8), controls=controls)
    def scaled(rng, count, *, goal=0.0):
        """x / n tends to 0."""
        return rng.normal(size=(count, 1)) / 2.0 ** np.arange(8), goal

    assert check(scaled, challenge=0).defects == ()


@pytest.mark.parametrize("spoilt", [("t", 0), ("t", 1.5), (3, 16), ("t", 2**60)])
def test_scales_that_are_none_are_refused(spoilt):
    with pytest.raises(UserError, match="positive whole numbers such as"):
        Doubling(*spoilt)


def test_scales_that_nothing_reads_or_that_do_not_fit_are_refused():
    controls = [Control("no", power=0)]
    with pytest.raises(UserError, match=r"read by no parameter of the function: .*There are T, x"):

        @rate(scales=Doubling("t", 16), sample=draw, controls=controls)
        def misspelt(x, T, *, power=1):
            """x = O(1)."""
            return x * (1.0 * T**power), T

    with pytest.raises(UserError, match=r"the shape \(3,\) and there are 8 scales: the last axis"):

        @rate(scales=Doubling("t", 16), sample=draw, controls=controls)
        def short(x, t, *, power=1):
            """x = O(1)."""
            return x * (1.0 * t[:3] ** power), t[:3]

    with pytest.raises(UserError, match="scales= is for limits and rates"):

        @computed(Kind.INEQUALITY, scales=Doubling("t", 16), controls=controls)
        def unordered(rng, count, *, t, power=1):
            """1 <= 2."""
            return rng.uniform(size=count), 2.0 * power
