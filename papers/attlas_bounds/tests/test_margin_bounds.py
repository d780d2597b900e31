"""Margin bounds of attention: outputs by hand, the ledger's order, formulas, what is refused."""

import math
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse
from attlas.core.errors import UserError
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas_bounds.library.bounds.linear_attention import LinearAttention, measure_margins
from attlas_bounds.library.bounds.margin_bounds import (
    GRID,
    cover_coefficient,
    cover_margin_bound,
    ramp_margin_bound,
)
from attlas_bounds.library.bounds.pac_bayes_margin import (
    Lengths,
    Noise,
    noise_threshold,
    pac_bayes_margin,
)
from attlas_bounds.library.bounds.sample_complexity import sample_complexity, tokens_met


@pytest.fixture(scope="module")
def separated():
    """A layer that reads the first of three signs, on 4000 sequences."""
    rng = np.random.default_rng(0)
    bits = rng.choice([-1.0, 1.0], (4000, 3))
    X = np.concatenate([np.broadcast_to(np.eye(3), (4000, 3, 3)), bits[..., None]], axis=2)
    X = np.pad(X / math.sqrt(2), ((0, 0), (0, 0), (0, 1)))
    M = np.zeros((5, 5))
    M[0, 4] = 6.0
    return measure_margins(LinearAttention(np.eye(5)[3], M), X, np.eye(5)[4], bits[:, 0])


def test_margins_are_those_of_the_network():
    rng = np.random.default_rng(1)
    a, M, X, x = (rng.normal(size=s) for s in ((2, 3), (2, 3, 3), (6, 4, 3), (6, 3)))
    y = rng.choice([-1.0, 1.0], 6)
    sample = measure_margins(LinearAttention(a, M), X, x, y)
    eye = jnp.eye(3)
    for i in range(6):
        out = sum(
            SingleLayerTransformer(
                jnp.asarray(a[h]), jnp.asarray(M[h])[None], eye[None], eye[None], lambda z: z
            )(jnp.asarray(X[i]), jnp.asarray(x[i]))
            for h in range(2)
        )
        assert math.isclose(sample.margins[i], y[i] * float(out), rel_tol=1e-12)
    fixed = measure_margins(LinearAttention(a, M), X, x[0], y)
    again = measure_margins(LinearAttention(a, M), X, np.tile(x[:1], (6, 1)), y)
    np.testing.assert_allclose(fixed.margins, again.margins, rtol=1e-10)
    assert np.sum(fixed.query_keys**2) < np.sum(again.query_keys**2)


def test_steps_of_the_ledger_are_in_order(separated):
    ramp = [ramp_margin_bound(separated, 0.05, step=s) for s in ("corrected", "sharp", "linear")]
    hinge = ramp_margin_bound(separated, 0.05, step="linear", loss="hinge")
    ledger = [*ramp, ramp_margin_bound(separated, 0.05)]
    ledger += [cover_margin_bound(separated, 1.0, 0.05, deviation=d) for d in ("Hoeffding", "kl")]
    at = [bound.at(1e7) for bound in ledger]
    assert at == sorted(at, reverse=True)
    assert hinge.at(1e7) >= ledger[2].at(1e7)
    assert pac_bayes_margin(separated, 0.05).at(1e7) < at[0]
    assert ledger[-1].bound < 0.99 < ledger[0].bound


def test_tokens_met_by_their_definition(separated):
    met = tokens_met(separated)
    # half the square of the largest range, sqrt 2, and of the distance of tokens of other signs
    distance = separated.diameter
    assert math.isclose(met.atom**2, np.mean((separated.span * distance / 4) ** 2))
    assert sample_complexity(met, 2.0, 1e6) < sample_complexity(met, 2.0, 1e6, step="linear")
    sharp, linear = (sample_complexity(met, 2.0, 1e6, step=s) for s in ("sharp", "linear"))
    assert math.isclose(sharp, 2 * linear)


def test_cover_bound_is_its_formula(separated):
    found, gamma = [], cover_coefficient(1.0, float(GRID[GRID >= 6.0][0]), 1, 5)
    for margin in GRID:
        cost = (4 * gamma / margin**2 + math.log(len(GRID) ** 2 / 0.05)) / 4000
        share = float(np.mean(separated.margins <= margin))
        found.append(1.0 if share == 1 else kl_upper_inverse(share, cost))
    bound = cover_margin_bound(separated, 1.0, 0.05).bound
    assert math.isclose(bound, min(found), rel_tol=1e-9)


def test_noise_stays_below_its_threshold_as_often_as_stated():
    X, x = np.array([[[1.0, 0.0], [-1.0, 0.0]]]), np.array([1.0, 0.0])
    noise = Noise(1e-9, 0.3, 0.2)
    rng = np.random.default_rng(2)
    own = Lengths(np.ones(1), np.full(1, 2.0), np.ones(1))
    t = noise_threshold(own, 1, 2, noise)[0]
    M = rng.normal(size=(4000, 2, 2)) * noise.attention
    z = np.einsum("ntd,kde,e->kt", X, M, x)
    moved = jax.nn.softmax(jnp.asarray(z)) @ X[0, :, 0]
    expected = 2.0 * math.tanh(0.3 * 2.0 * -NormalDist().inv_cdf(0.05) / 4)
    assert math.isclose(t, expected, rel_tol=1e-6)
    # two tokens: each side has a quarter of eta, and the other half is the readout's
    assert abs(float(jnp.mean(moved > t)) - 0.05) < 0.015


def test_bounds_stand_in_the_table_of_all(separated):
    own = (cover_margin_bound(separated, 1.0, 0.05), pac_bayes_margin(separated, 0.05))
    weights = TransformerWeights(((Head(np.eye(2), np.eye(2), np.eye(2)),),), np.ones(2))
    table = compare_bounds(weights, np.eye(2)[None], 4000, 0.05, model="plain", certificates=own)
    entries = {entry.name: entry for entry in table.entries}
    assert table.best.name in {bound.name for bound in own}
    for bound in own:
        assert not entries[bound.name].vacuous
        needed = entries[bound.name].samples_until_nonvacuous
        assert needed <= 4000
        assert bound.at(needed) < 1


def test_what_is_refused(separated):
    X, y = np.ones((2, 1, 2)), np.ones(2)
    own = LinearAttention(np.ones(2), np.eye(2))
    for bad in (
        lambda: measure_margins(own, X, np.ones(3), y),
        lambda: measure_margins(own, X, np.ones(2), np.zeros(2)),
        lambda: measure_margins(LinearAttention(np.zeros(2), np.eye(2)), X, np.ones(2), y),
        lambda: measure_margins(own, X * np.nan, np.ones(2), y),
        lambda: cover_margin_bound(separated, 0.5, 0.05),
        lambda: cover_margin_bound(separated, 1.0, 1.5),
        lambda: pac_bayes_margin(measure_margins(own, X, np.ones(2), y), 0.05),
    ):
        with pytest.raises(UserError):
            bad()
