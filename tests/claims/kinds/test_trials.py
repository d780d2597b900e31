"""Expectations under a range, a sub-Gaussian deviation or a variance."""

import jax.numpy as jnp
import numpy as np
import pytest

import attlas as at
from attlas.claims.kinds.kind import Expectation
from attlas.claims.sides import Evidence
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.verify.check import looks

LAWS = {
    "range": (lambda rng, n: rng.uniform(size=n) - 0.5, 1.0),
    "deviation": (lambda rng, n: rng.normal(size=n), 1.0),
    "variance": (lambda rng, n: rng.standard_t(3, size=n), 3.0),
}


def evidence(values, **condition):
    zero = np.zeros(len(values))
    shaped = {name: np.full(len(values), bound) for name, bound in condition.items()}
    return Evidence(values, zero, abs(values), zero, np.ones(len(values), dtype=bool), **shaped)


def gaussians(rng, count):
    return {"z": rng.normal(size=(count, 16))}


@pytest.mark.parametrize("name", LAWS)
def test_the_interval_keeps_its_level_and_shrinks(name):
    law, bound = LAWS[name]
    rng, half = np.random.default_rng(0), {}
    for n in (64, 256):
        misses = 0
        for _ in range(400):
            verdict = Expectation().decide(evidence(law(rng, n), **{name: bound}), 8, 0.05)
            low, high = verdict.statistics["low"], verdict.statistics["high"]
            misses += not low <= 0 <= high
            half[n] = (high - low) / 2
        assert misses <= 32  # 20 of 400 and three deviations
    assert half[256] < 0.55 * half[64]


@pytest.mark.parametrize("name", LAWS)
def test_a_sample_that_spreads_too_far_decides_nothing(name):
    law, bound = LAWS[name]
    values = 100 * law(np.random.default_rng(0), 64) * (100 if name == "variance" else 1)
    verdict = Expectation().decide(evidence(values, **{name: bound}), 8, 0.05)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "beyond the stated" in verdict.reason


@pytest.mark.parametrize("condition", [{"deviation": 1.0}, {"variance": 1.0}])
def test_the_maximum_of_sixteen_gaussians_is_decided(condition):
    @at.expectation(**condition, independent="a vector", sample=gaussians,
                    controls=[at.Control("half of the right side", c=0.5)])  # fmt: skip
    def largest_of_sixteen(z, *, c=1.0):
        r"""$$E \max_i z_i \le \sqrt{2 \log 16}$$"""
        return jnp.max(z), c * jnp.sqrt(2 * jnp.log(16.0))

    report = at.check(largest_of_sixteen, challenge=0)
    assert not report.defects, str(report)


@pytest.mark.parametrize("conditions", [{}, {"range": 1.0, "variance": 1.0}])
def test_one_condition_is_needed(conditions):
    with pytest.raises(UserError, match="needs one condition"):
        at.expectation(**conditions, sample=gaussians, independent="a vector")


@pytest.mark.parametrize(
    ("level", "outcome", "trials"),
    [(0.3, "SUPPORTED", 64), (0.65, "SUPPORTED", 1024), (0.85, "VIOLATED", 256)],
)
def test_more_trials_are_drawn_until_a_statement_is_decided(level, outcome, trials):
    @at.probability(level=level, sample=lambda rng, n: {"t": rng.uniform(size=n)},
                    independent="a number", controls=[at.Control("never", most=0.0)])  # fmt: skip
    def often(t, *, most=0.75):
        r"""$$P(t < 3/4) \ge c$$"""
        return t < most

    verdict = at.check(often, challenge=0).verdict
    assert (verdict.outcome, verdict.applicable) == (outcome, trials)
    alone = at.check(often, count=64, challenge=0).verdict
    assert alone.outcome == (outcome if trials == 64 else "INCONCLUSIVE")


def test_the_error_probabilities_of_all_looks_sum_to_that_of_the_check():
    assert sum(share for _, share in looks(64, 1e-3)) <= 1e-3
