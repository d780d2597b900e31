"""PAC-Bayes with draws: the formula step by step, its account of delta, the split, bad input."""

import math
from decimal import Context, Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special

from attlas.bounds.generalisation import pac_bayes_kl as module
from attlas.bounds.generalisation.gaussian_weights import (
    GaussianPrior,
    GaussianWeights,
    gaussian_kl,
)
from attlas.bounds.generalisation.monte_carlo_losses import monte_carlo_losses
from attlas.bounds.generalisation.pac_bayes_kl import pac_bayes_kl, pac_bayes_of_errors
from attlas.core.errors import UserError

X = jnp.asarray(np.random.default_rng(0).normal(size=(400, 3)))
LAW = GaussianWeights(jnp.array([2.0, 0.1, 0.0]), 0.3)
PRIOR = GaussianPrior(jnp.zeros(3), [0.3, 1.0, 3.0])
KEY = jax.random.key(3)


def error(w):
    return jnp.mean((X @ w > 0) != (X[:, 0] > 0), dtype=X.dtype)


def inverse(q, c):
    """By a root finder on the definition."""

    def excess(p):
        return q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p)) - c

    return optimize.brentq(excess, q, 1 - 1e-12, xtol=1e-15)


def test_the_bound_is_its_formula():
    delta, draws = 0.05, 200
    bound = pac_bayes_kl(error, LAW, PRIOR, 400, delta, KEY, draws=draws, delta_draws=0.02)
    mean = monte_carlo_losses(error, LAW, KEY, draws).mean()
    drawn = inverse(mean, math.log(1 / 0.02) / draws)
    nats = gaussian_kl(LAW, PRIOR).min()
    expected = inverse(drawn, (nats + math.log(2 * 3 * math.sqrt(400) / 0.03)) / 400)
    np.testing.assert_allclose(bound.bound, expected, rtol=1e-9)
    np.testing.assert_allclose([bound.empirical, bound.complexity], [mean, nats], rtol=1e-12)
    np.testing.assert_allclose(bound.at(400.0), bound.bound, rtol=1e-15)
    assert [c.checked for c in bound.conditions] == [False, False, True]


def test_what_is_inverted_is_above_its_formula_by_its_roundings(monkeypatch):
    asked, invert = [], module.kl_upper_inverse
    monkeypatch.setattr(module, "kl_upper_inverse", lambda *a: asked.append(a) or invert(*a))
    nats, eps = float(gaussian_kl(LAW, PRIOR).min()), np.finfo(float).eps
    for k in range(12):
        n, delta = 400 + k, 0.05 + 0.001 * k
        bound = pac_bayes_kl(error, LAW, PRIOR, n, delta, KEY, draws=50)
        (mean, drawn), (limit, cost) = asked[-2:]
        np.testing.assert_allclose(mean, bound.empirical * (1 + 64 * eps), rtol=2 * eps)
        assert limit == invert(mean, drawn)
        second = bound.shares[1][1]
        with localcontext(Context(prec=60)):
            first = Decimal((delta - second) / 3)
            exact = -Decimal(second).ln() / 50
            both = (Decimal(nats) + (2 * Decimal(n).sqrt() / first).ln()) / n
            assert exact <= Decimal(drawn) <= exact * (1 + Decimal(2) ** -49)
            assert both <= Decimal(cost) <= both * (1 + Decimal(2) ** -48)


def test_counted_errors_have_the_bound_of_their_mean():
    bound = pac_bayes_of_errors(300, 1200, LAW, PRIOR, 400, 0.05)
    drawn = inverse(0.25, math.log(1 / 0.01) / 1200)
    nats = gaussian_kl(LAW, PRIOR).min()
    expected = inverse(drawn, (nats + math.log(2 * 3 * math.sqrt(400) / 0.04)) / 400)
    np.testing.assert_allclose(bound.bound, expected, rtol=1e-9)
    assert (bound.empirical, bound.n, bound.delta) == (0.25, 400, 0.05)
    apart = pac_bayes_of_errors(
        300, 1200, LAW, PRIOR, 400, 0.05, split=(np.arange(5), np.arange(5, 405))
    )
    assert (apart.bound, apart.conditions[1].checked) == (bound.bound, True)
    for wrong, draws in ((1, 500), (401, 400), (-1, 400), (0, 0)):
        with pytest.raises(UserError, match="the same number of draws for every example"):
            pac_bayes_of_errors(wrong, draws, LAW, PRIOR, 400, 0.05)


def test_the_limit_of_draws_that_judge_one_example_each_covers_their_mean():
    """Errors with unequal chances: the exact law of their number, by convolution."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        p, level = rng.beta(0.3, 0.5, rng.integers(5, 40)), rng.uniform(0.01, 0.4)
        law = np.ones(1)
        for chance in p:
            law = np.convolve(law, [1 - chance, chance])
        q, cost = p.mean(), -math.log(level) / len(p)
        k = np.arange(len(p)) / len(p)
        kl = special.rel_entr(k, q) + special.rel_entr(1 - k, 1 - q)
        assert law[:-1][(k < q) & (kl > cost)].sum() <= level


def test_losses_of_one_are_no_error():
    bound = pac_bayes_kl(lambda w: 1 + 0 * w[0], LAW, PRIOR, 400, 0.05, KEY, draws=2)
    assert (bound.bound, bound.empirical) == (1.0, 1.0)


def test_all_of_delta_is_accounted_for():
    bound = pac_bayes_kl(error, LAW, PRIOR, 400, 0.05, KEY, draws=50)
    assert math.isclose(sum(share for _, share in bound.shares), 0.05, rel_tol=1e-15)
    assert "PAC-Bayes, 3 prior scales 0.04, 50 draws 0.01" in repr(bound)


def test_a_prior_from_other_examples_is_closer_and_its_split_is_checked():
    far = pac_bayes_kl(error, LAW, PRIOR, 400, 0.05, KEY, draws=50)
    near = pac_bayes_kl(
        error,
        LAW,
        GaussianPrior(LAW.mean, [0.3]),
        400,
        0.05,
        KEY,
        draws=50,
        split=(np.arange(400, 800), np.arange(400)),
    )
    assert near.bound < far.bound
    assert near.conditions[1].checked
    assert near.name.endswith("prior from other examples")


def one(**changes):
    given = {"prior": PRIOR, "n": 400, "delta": 0.05, "draws": 20} | changes
    loss = given.pop("loss", error)
    prior, n, delta = (given.pop(name) for name in ("prior", "n", "delta"))
    return pac_bayes_kl(loss, LAW, prior, n, delta, KEY, **given)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prior": None}, "prior is None: a posterior needs a prior"),
        ({"loss": lambda w: 2 + error(w)}, r"loss = 2\..*: scale or clip the losses into \[0, 1\]"),
        ({"n": 7}, "n = 7: it must be finite and at least 8"),
        ({"delta": 1.5}, "delta = 1.5"),
        ({"delta_draws": 0.05}, "delta_draws = 0.05: it is a part of delta = 0.05"),
        ({"delta_draws": -1.0}, "delta_draws = -1.0: the probability of failure"),
        ({"split": (np.arange(5), np.arange(4, 404))}, "split: example 4 chose the prior"),
        ({"split": (np.arange(5), np.arange(5, 400))}, "split: 395 examples are in the loss"),
    ],
)
def test_bad_input_is_one_line(changes, said):
    with pytest.raises(UserError, match=said) as caught:
        one(**changes)
    assert "\n" not in str(caught.value)
