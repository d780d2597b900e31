"""Limits and rates: decay, plateau, transient, and the resolution that is stated."""

import numpy as np
import pytest

from attlas.claims.claim import Control
from attlas.claims.kinds.extrapolation import keeps_growing, stays_away, stays_bounded, vanishes
from attlas.claims.kinds.trend import Limit, Rate
from attlas.claims.sides import Evidence
from attlas.claims.statement import limit
from attlas.claims.verdict import Outcome
from attlas.verify.check import check

N = 10.0 ** np.arange(1, 5)


def evidence(left, right, error=0.0):
    """Forty instances that are alike, or those in the rows of the left side."""
    left, right = (np.broadcast_to(np.atleast_2d(side), (40, 4)) for side in (left, right))
    size = np.maximum(abs(left), abs(right))
    error = error + np.zeros_like(size)
    return Evidence(left, right, size, error, np.ones(40, bool), scales=np.tile(N, (40, 1)))


@pytest.mark.parametrize(
    ("distance", "tends"),
    [(1 / N, True), (N**-0.5, True), (np.log(N) / N, True), (1 / N + 5 / N**2, True),
     (1 / N + 1e-4, False), (0.3 + 1 / N, False), (N**0.0, False), (1 / np.log(N), False),
     (np.array([1.003, 1.0019, 1.0009, 1]), False)],
)  # fmt: skip
def test_decay_is_told_from_a_plateau(distance, tends):
    assert vanishes(distance[None]).tolist() == [tends]


@pytest.mark.parametrize(
    ("ratio", "bounded"),
    [(N**0.0, True), (2 - 1 / N, True), (2 + 1 / N, True), (1 / N, True), (N**0.2, False),
     (100 / N + 1e-3 * N, False), (1 + 1000 / N + 1e-4 * N, False), (np.log(N), False),
     (1 / (N * np.log(N) ** 2), True), (1 / N + 1e-8 * N, False), (1 / N + 3e-6 * N, False)],
)  # fmt: skip
def test_a_bounded_ratio_is_told_from_growth_and_from_a_transient(ratio, bounded):
    assert stays_bounded(ratio[None], N[None]).tolist() == [bounded]


def test_the_resolution_is_the_disturbance_that_would_be_noticed():
    found = Limit().decide(evidence(1 / N, 0 * N), 0, 1e-3)
    plateau = found.statistics["resolution"]
    assert found.outcome is Outcome.SUPPORTED
    assert f"a plateau above {plateau:.2g} would be detected" in found.reason
    worse = Limit().decide(evidence(1 / N + plateau, 0 * N), 0, 1e-3)
    assert worse.outcome is Outcome.INCONCLUSIVE
    settled = Limit().decide(evidence(1 / N + 100 * plateau, 0 * N), 0, 1e-3)
    assert settled.outcome is Outcome.VIOLATED
    assert plateau < 0.5 / N[-1]
    bounded = Rate().decide(evidence(1 / N, 1 / N), 64, 1e-3)
    part = bounded.statistics["resolution"]
    assert 0 < part < 1
    growing = Rate().decide(evidence(1 / N + part / N[-1], 1 / N), 64, 1e-3)
    assert growing.outcome is Outcome.VIOLATED


def test_one_instance_is_one_trial():
    both = evidence(1 / N, 0 * N)
    rows = {name: np.stack([getattr(both, name)] * 3, axis=1)
            for name in ("left", "right", "magnitude", "error", "scales")}  # fmt: skip
    found = Limit().decide(Evidence(**rows, applicable=both.applicable), 0, 1e-3)
    assert found.statistics["complying"] == 40


@pytest.mark.parametrize("share", [0.3, 1 / 64])
def test_a_limit_that_is_false_on_a_few_instances_is_not_supported(share):
    def draws(rng, count):
        plateau = rng.permutation(np.arange(count) < max(1, round(share * count)))
        return {"a": rng.uniform(1, 2, size=count), "c": 1.0 * plateau}

    @limit(scales=N, sample=draws, controls=[Control("on all", more=1.0)])
    def with_a_plateau(a, c, *, more=0.0):
        r"""$$a/n + c \to 0$$"""
        return a / N + c + more, np.zeros(4)

    verdict = check(with_a_plateau, challenge=0).verdict
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.statistics["contradicting"] == round(share * 64)
    assert verdict.reason.endswith(f"on {round(share * 64)} of 64 instances")


def test_one_instance_at_which_the_ratio_grows_violates_a_rate():
    rows = np.tile(1 / N, (40, 1))
    rows[7] = 1 / N + 1e-3
    found = Rate().decide(evidence(rows, 1 / N), 64, 1e-3)
    assert found.outcome is Outcome.VIOLATED
    assert found.statistics["contradicting"] == 1


def test_scales_that_do_not_suffice_leave_a_claim_open():
    slow = np.tile(1 / N, (40, 1))
    slow[3] = 1 / np.log(N)
    assert not vanishes(slow[3:4]).any()
    assert not stays_away(slow[3:4]).any()
    found = Limit().decide(evidence(slow, 0 * N), 0, 1e-3)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.reason == (
        "the scales do not suffice on 1 of 40 instances: give larger ones, ones farther apart, or "
        "scales=Doubling(name, first)"
    )
    transient = 1 + 1000 / N + 1e-5 * N
    assert not stays_bounded(transient[None], N[None]).any()
    assert not keeps_growing(transient[None], N[None]).any()
    found = Rate().decide(evidence(transient, 0 * N + 1), 64, 1e-3)
    assert found.outcome is Outcome.INCONCLUSIVE


def test_an_error_of_the_sides_may_have_either_sign_at_each_scale():
    noisy = 1 / N * np.array([1, 1, 1, 1.5])
    exact = Limit().decide(evidence(1 / N, 0 * N), 0, 1e-3)
    within = Limit().decide(evidence(noisy, 0 * N, 0.5 / N[-1]), 0, 1e-3)
    assert within.outcome is Outcome.SUPPORTED
    assert within.statistics["resolution"] > exact.statistics["resolution"]
    # The plateau stands out from an error of 1 % of it, not from one that is as large as itself.
    plateau = 0.3 + 1 / N
    assert Limit().decide(evidence(plateau, 0 * N, 0.003), 0, 1e-3).outcome is Outcome.VIOLATED
    assert Limit().decide(evidence(plateau, 0 * N, 0.3), 0, 1e-3).outcome is Outcome.INCONCLUSIVE
    growing = Rate().decide(evidence(N**0.2, 0 * N + 1, 0.01), 64, 1e-3)
    assert growing.outcome is Outcome.VIOLATED
    hidden = Rate().decide(evidence(N**0.2, 0 * N + 1, 2.0), 64, 1e-3)
    assert hidden.outcome is Outcome.INCONCLUSIVE


def test_an_error_hides_no_sequence_that_stays_where_it_is():
    still = evidence(0.3 + 0 * N, 0 * N, 1.0)
    assert Limit().decide(still, 0, 1e-3).outcome is Outcome.INCONCLUSIVE


def test_a_sequence_within_rounding_has_a_finite_resolution():
    # Noise on a plateau may look like a linear fall, which extrapolates to anything.
    rounded = Limit().decide(evidence(1e-20 + 0 * N, 0 * N + 1e-20, 1e-22), 64, 1e-3)
    assert rounded.outcome is Outcome.SUPPORTED
    assert np.isfinite(rounded.statistics["resolution"])
    raised = Limit().decide(evidence(1e-12 + 0 * N, 0 * N, 1e-13), 64, 1e-3)
    assert raised.outcome is not Outcome.SUPPORTED
