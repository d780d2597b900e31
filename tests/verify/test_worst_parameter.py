"""Probabilities for every p: the worst p is searched, and fresh trials at it decide."""

import jax.numpy as jnp
import numpy as np
import pytest

import attlas as at
from attlas.claims.domains.trials import TrialSampler
from attlas.claims.domains.vectors import Box
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.verify.challenge import challenge, replay
from attlas.verify.check import check

N = 50
CENTRE = 1.959963984540054
"""The quantile of the normal law at 97.5 %."""


def successes(rng, count, *, p):
    """Binomial counts."""
    return {"x": rng.binomial(N, p)}


def uniforms(rng, count):
    """Uniform numbers, of which those below p are successes."""
    return {"u": rng.uniform(size=(count, N))}


def proportions(**details):
    return {
        "parameters": [Box("p", 0.001, 0.999, shape=())],
        "independent": "the trials",
        "controls": [at.Control("a tenth of the width", width=0.1)],
        **details,
    }


@at.probability(level=0.8, sample=successes, **proportions())
def wald_at_a_low_level(x, p, *, width=1.0):
    r"""$$P(|X/n - p| \le 1.96 \sqrt{X(n-X)/n^3}) \ge 0.8$$ for every p: false near 0 and 1."""
    mean = x / N
    return jnp.abs(mean - p) <= width * CENTRE * jnp.sqrt(mean * (1 - mean) / N)


@at.probability(level=0.8, sample=uniforms, **proportions())
def wald_by_uniforms(u, p, *, width=1.0):
    r"""The same, with trials that do not know p."""
    mean = jnp.sum(jnp.where(u < p, jnp.ones_like(u), 0)) / N
    return jnp.abs(mean - p) <= width * CENTRE * jnp.sqrt(mean * (1 - mean) / N)


@at.probability(level=0.95, sample=successes, **proportions())
def hoeffding(x, p, *, width=1.0):
    r"""$$P(|X/n - p| \le \sqrt{\log(40) / (2n)}) \ge 0.95$$"""
    return jnp.abs(x / N - p) <= width * jnp.sqrt(jnp.log(40.0) / (2 * N))


@at.probability(level=0.83, sample=successes, **proportions())
def wilson(x, p, *, width=1.0):
    r"""$$P(|X/n - p| \le 1.96 \sqrt{p(1-p)/n}) \ge 0.83$$: the least is 0.839 at p = 0.0035."""
    return jnp.abs(x / N - p) <= width * CENTRE * jnp.sqrt(p * (1 - p) / N)


@pytest.mark.parametrize("claim", [wald_at_a_low_level, wald_by_uniforms])
def test_an_interval_that_fails_near_the_ends_is_refuted_there(claim):
    report = challenge(claim, evaluations=2**12)
    assert report.violated
    p = float(report.verdict.witness["p"])
    assert min(p, 1 - p) < 0.05
    assert report.verdict.reason.startswith("at p = ")
    assert replay(claim, dict(report.verdict.witness)).outcome is Outcome.VIOLATED


def test_a_check_searches_for_the_worst_parameter():
    assert check(wald_at_a_low_level, count=64, challenge=0).verdict.outcome is not Outcome.VIOLATED
    report = check(wald_at_a_low_level, count=64, challenge=0.01)
    assert report.challenge.violated
    assert report.defects


def test_an_interval_that_holds_for_every_p_is_not():
    report = challenge(hoeffding, evaluations=2**14)
    assert not report.violated
    assert report.evaluations >= 2**14


def test_drawn_parameters_support_an_average_alone():
    verdict = check(hoeffding, challenge=0).verdict
    assert verdict.outcome is Outcome.SUPPORTED
    assert verdict.reason.endswith("on average over the drawn p")


def test_the_least_coverage_of_many_true_levels_is_refuted_no_more_often_than_its_level():
    # A level just below the least coverage of all p: each search meets what looks worse by chance.
    refuted = [challenge(wilson, evaluations=2**13, seed=seed).violated for seed in range(5)]
    assert not any(refuted)


def test_copies_of_one_trial_refute_nothing():
    def copies(rng, count):
        return {"u": np.tile(rng.uniform(size=(1, N)), (count, 1))}

    @at.probability(level=0.5, sample=copies, **proportions())
    def copied(u, p, *, width=1.0):
        """$$|\\bar u - p| \\le 0.1$$"""
        return jnp.abs(jnp.mean(u) - p) <= width * 0.1

    assert not challenge(copied, evaluations=2**12).violated


def test_a_sampler_that_draws_the_parameter_is_refused():
    with pytest.raises(UserError, match="draws the parameter 'p'"):

        @at.probability(
            level=0.5, sample=lambda rng, n: {"p": rng.uniform(size=n)}, **proportions()
        )
        def twice(p, *, width=1.0):
            """A number is below one."""
            return p < width


def test_a_sampler_takes_the_parameters_that_it_names():
    sample = TrialSampler((Box("q", 0, 1, shape="k"),), uniforms, (("k", 3),))
    assert sample(np.random.default_rng(0), 4)["q"].shape == (4, 3)
    ones = {"p": np.ones(4)}
    sample = TrialSampler((Box("p", 0, 1, shape=()),), successes)
    assert sample(np.random.default_rng(0), 4, selected=ones)["x"].tolist() == [N] * 4
