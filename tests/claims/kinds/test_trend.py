"""Limits and rates: decay, plateau, transient, and the resolution that is stated."""

import numpy as np
import pytest

from attlas.claims.kinds.trend import Limit, Rate, stays_bounded, vanishes
from attlas.claims.sides import Evidence
from attlas.claims.verdict import Outcome

N = 10.0 ** np.arange(1, 5)


def evidence(left, right):
    left, right = (np.tile(side, (40, 1)) for side in (left, right))
    size = np.maximum(abs(left), abs(right))
    return Evidence(left, right, size, 0 * size, np.ones(40, bool), scales=np.tile(N, (40, 1)))


@pytest.mark.parametrize(
    ("distance", "tends"),
    [(1 / N, True), (N**-0.5, True), (np.log(N) / N, True), (1 / N + 5 / N**2, True),
     (1 / N + 1e-4, False), (0.3 + 1 / N, False), (N**0.0, False), (1 / np.log(N), False)],
)  # fmt: skip
def test_decay_is_told_from_a_plateau(distance, tends):
    assert vanishes(distance[None]).tolist() == [tends]


@pytest.mark.parametrize(
    ("ratio", "bounded"),
    [(N**0.0, True), (2 - 1 / N, True), (2 + 1 / N, True), (1 / N, True), (N**0.2, False),
     (100 / N + 1e-3 * N, False), (1 + 1000 / N + 1e-4 * N, False), (np.log(N), False)],
)  # fmt: skip
def test_a_bounded_ratio_is_told_from_growth_and_from_a_transient(ratio, bounded):
    assert stays_bounded(ratio[None], N[None]).tolist() == [bounded]


def test_the_resolution_is_the_disturbance_that_would_be_noticed():
    found = Limit().decide(evidence(1 / N, 0 * N), 0, 1e-3)
    plateau = found.statistics["resolution"]
    assert found.outcome is Outcome.SUPPORTED
    assert f"a plateau above {plateau:.2g} would be detected" in found.reason
    worse = Limit().decide(evidence(1 / N + plateau, 0 * N), 0, 1e-3)
    assert worse.outcome is Outcome.VIOLATED
    assert plateau < 0.5 / N[-1]
    settled = Rate().decide(evidence(1 / N, 1 / N), 64, 1e-3)
    part = settled.statistics["resolution"]
    assert 0 < part < 1
    growing = Rate().decide(evidence(1 / N + part / N[-1], 1 / N), 64, 1e-3)
    assert growing.outcome is Outcome.VIOLATED


def test_one_instance_is_one_trial():
    both = evidence(1 / N, 0 * N)
    rows = {name: np.stack([getattr(both, name)] * 3, axis=1)
            for name in ("left", "right", "magnitude", "error", "scales")}  # fmt: skip
    found = Limit().decide(Evidence(**rows, applicable=both.applicable), 0, 1e-3)
    assert found.statistics["successes"] == 40
