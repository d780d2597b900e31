"""Margin bounds of attention: outputs by hand, the ledger's order, formulas, what is refused."""

import math
from statistics import NormalDist

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.covering.dudley import dudley_chain
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas.core.errors import UserError
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas_bounds.library.bounds import linear_attention
from attlas_bounds.library.bounds.linear_attention import LinearAttention, measure_margins
from attlas_bounds.library.bounds.margin_bounds import (
    GRID,
    cover_coefficient,
    cover_margin_bound,
    norm_radius,
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


SAFE = 1 + 2**-40  # by which what was rounded is raised


@pytest.fixture(scope="module")
def two_heads():
    """Two heads on 40 sequences of four tokens of three entries, three of them wrong."""
    rng = np.random.default_rng(3)
    a, M = rng.normal(size=(2, 3)), 0.3 * rng.normal(size=(2, 3, 3))
    X, x = 0.4 * rng.normal(size=(40, 4, 3)) + 0.2, rng.normal(size=3) / 3
    X[:, :, 1] *= 0.5
    X /= np.maximum(1, np.linalg.norm(X, axis=2))[..., None]
    f = measure_margins(LinearAttention(a, M), X, x, np.ones(40)).margins
    y = np.where(np.arange(40) < 3, -1, 1) * np.sign(f)
    return measure_margins(LinearAttention(a, M), X, x, y), X, x


def test_norms_of_a_sample_by_their_definitions(two_heads):
    sample, X, x = two_heads
    for k in range(40):
        pairs = [np.linalg.norm(X[k, s] - X[k, t]) for s in range(4) for t in range(4)]
        assert sample.diameter[k] == pytest.approx(max(pairs), rel=1e-14)
        ranges = [X[k, :, j].max() - X[k, :, j].min() for j in range(3)]
        assert sample.span[k] == pytest.approx(max(ranges), rel=1e-14)
        longest = max(math.sqrt(sum(X[k, t] ** 2)) for t in range(4))
        assert sample.length[k] == pytest.approx(longest, rel=1e-14)
        assert sample.entries[k] == max(abs(float(v)) for v in X[k].ravel())
        middle = [(X[k, :, j].max() + X[k, :, j].min()) / 2 for j in range(3)]
        np.testing.assert_allclose(sample.centres[k], middle, rtol=1e-13)
        np.testing.assert_array_equal(sample.cls[k], x)
    assert (sample.tokens, sample.fixed_cls, sample.error) == (4, True, 3 / 40)
    zero = measure_margins(
        LinearAttention(np.ones(2), np.eye(2)), np.array([[[1.0, -1.0]]]), x[:2], [1]
    )
    assert zero.error == 1.0


@pytest.mark.parametrize("block", [40, 130])
def test_diameters_are_the_same_in_blocks_of_one_or_two_sequences(two_heads, block, monkeypatch):
    """A sequence has 4 x 4 differences of three entries."""
    sample, X, x = two_heads
    monkeypatch.setattr(linear_attention, "_BLOCK", block)
    own = LinearAttention(sample.readouts, sample.query_keys)
    found = measure_margins(own, X[:5], x, np.ones(5)).diameter
    np.testing.assert_allclose(found, sample.diameter[:5], rtol=1e-15)


def test_scores_of_thousands_pick_one_token():
    M, X = np.diag([9e3, 0.0]), np.array([[[0.5, 0.25], [0.25, 1.0]]])
    sample = measure_margins(LinearAttention([1.0, 2.0], M), X, [1.0, 0.0], [-1])
    assert sample.margins.tolist() == [-1.0]


def test_tokens_met_are_root_mean_squares_over_the_sample(two_heads):
    sample, X, x = two_heads
    met = tokens_met(sample)
    weights = [s * D / 4 for s, D in zip(sample.span, sample.diameter, strict=True)]
    atom = max(math.sqrt(sum((w * x[b]) ** 2 for w in weights) / 40) for b in range(3))
    assert met.dimension == 3
    assert met.atom == pytest.approx(atom, rel=1e-13, abs=0)
    assert met.entry == pytest.approx(math.sqrt(sum(sample.entries**2) / 40), rel=1e-13, abs=0)
    assert met.half_span == pytest.approx(math.sqrt(sum(sample.span**2) / 160), rel=1e-13, abs=0)
    centre = max(math.sqrt(sum(sample.centres[:, j] ** 2) / 40) for j in range(3))
    assert met.centre == pytest.approx(centre, rel=1e-13, abs=0)
    assert met.worst_entry == np.abs(X).max()
    assert met.worst_token == sample.length.max()
    assert met.worst_cls == pytest.approx(math.sqrt(x @ x), rel=1e-14)


@pytest.mark.parametrize(("radius", "factor"), [(0.5, 1.0), (40.0, 1.0), (0.5, 20.0)])
def test_complexity_of_the_tokens_met_is_the_smaller_of_two_chains(two_heads, radius, factor):
    met, m = tokens_met(two_heads[0])._replace(centre=0.03 * factor), 1e4
    with jax.enable_x64(True):

        def cover(epsilon):
            steps = np.maximum(np.ceil((radius * met.atom / np.asarray(epsilon)) ** 2) - 1, 0)
            return math.log(6) + steps * math.log(19)

        entries, spans = (float(dudley_chain(cover, m, r)) for r in (met.entry, met.half_span))
    around = met.centre * math.sqrt(2 * math.log(6) / m) + spans
    assert (entries < around) == (factor == 20)
    assert sample_complexity(met, radius, m) == pytest.approx(min(entries, around), rel=1e-12)
    nothing = met._replace(half_span=0.0)
    alone = nothing.centre * math.sqrt(2 * math.log(6) / m)
    assert sample_complexity(nothing, radius, m) == pytest.approx(min(entries, alone), rel=1e-12)


@pytest.mark.parametrize("step", ["printed", "corrected", "sharp", "linear"])
def test_complexity_of_the_steps_before_is_that_of_theorem_4_1(two_heads, step):
    met = tokens_met(two_heads[0])
    constants = "sharp" if step == "linear" else step
    C = trauger2023_cover("1,1", 0.7, met.worst_cls, 3, 3)
    for m in (50.0, 1e5):
        expected = float(
            trauger2023_single(
                1.0, C, met.worst_token, 3, m, constants=constants, largest_entry=met.worst_entry
            )
        )
        expected = expected / 2 if step == "linear" else max(expected, 0.0)
        assert sample_complexity(met, 0.7, m, step=step) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", ["ramp", "hinge"])
def test_ramp_bound_is_the_least_over_the_margins(two_heads, loss):
    sample, m = two_heads[0], 1e7
    bound = ramp_margin_bound(sample, 0.03, step="linear", loss=loss)
    norms = [sum(abs(v) for v in M.ravel()) for M in sample.query_keys]
    radius = min(g for g in GRID if g >= max(norms))
    R = sample_complexity(tokens_met(sample), float(radius), m, step="linear")
    tail, found = 3 * math.sqrt(math.log(2 * 81**2 / 0.03) / (2 * m)), []
    for margin in GRID:
        u = sample.margins / np.abs(sample.readouts).sum() / margin
        losses = [max(0.0, 1 - each) for each in u]
        losses = losses if loss == "hinge" else [min(1.0, each) for each in losses]
        c = 1 + sample.entries.max() / margin if loss == "hinge" else 1.0
        found.append(sum(losses) / 40 + 2 * R / margin + c * tail)
    assert min(found) < 1
    assert bound.at(m) == pytest.approx(min(found) * SAFE, rel=1e-13, abs=0)
    assert bound.bound == bound.at(40.0) == 1.0
    assert bound.complexity == pytest.approx(2 * math.log(81))
    assert (bound.n, bound.empirical, bound.delta) == (40, 3 / 40, 0.03)


def test_norms_above_the_grid_and_samples_without_a_margin_have_no_bound(two_heads):
    sample = two_heads[0]
    large = sample._replace(query_keys=1e4 * sample.query_keys)
    wrong = sample._replace(margins=-np.abs(sample.margins))
    for own in (large, wrong):
        assert ramp_margin_bound(own, 0.05).at(1e300) == 1.0 or own is wrong
        for deviation in ("kl", "Hoeffding"):
            assert cover_margin_bound(own, 1.0, 0.05, deviation=deviation).at(1e9) == 1.0
    assert math.isinf(norm_radius(large, total=True))
    norms = np.abs(sample.query_keys).sum(axis=(1, 2))
    assert norm_radius(sample, total=True) == min(g for g in GRID if g >= sum(norms))
    assert norm_radius(sample, total=False) == min(g for g in GRID if g >= max(norms))
    low, exact = sample.query_keys * 0 + 1 / 18, sample.query_keys * 0 + 2 / 9
    assert norm_radius(sample._replace(query_keys=low), total=True) == 2**0.25
    assert norm_radius(sample._replace(query_keys=exact), total=False) == 2**1.25


def test_coefficient_of_the_cover_by_hand():
    """H B^2 ln(2 H d + 1) = 1.62 ln 13 and B^6 r^2 ln(2 H d^2 + 1) = 0.531441 r^2 ln 37."""
    expected = (np.cbrt(1.62 * np.log(13)) + np.cbrt(0.531441 * 1.7**2 * np.log(37))) ** 3
    assert cover_coefficient(0.9, 1.7, 2, 3) == pytest.approx(expected * SAFE, rel=1e-13, abs=0)


@pytest.mark.parametrize("deviation", ["kl", "Hoeffding"])
def test_cover_bound_of_two_heads_is_its_formula(two_heads, deviation):
    sample, m = two_heads[0], 1e7
    norm = sum(abs(v) for v in sample.query_keys.ravel())
    gamma = cover_coefficient(1.25 * SAFE, float(min(g for g in GRID if g >= norm)), 2, 3)
    f = sample.margins / np.abs(sample.readouts).sum()
    found, by_mean = [], []
    for margin in GRID:
        share = sum(each <= margin for each in f) / 40
        cost = (4 * gamma / margin**2 + math.log(81**2 / 0.03)) / m * SAFE
        by_mean.append(share + math.sqrt(4 * gamma / margin**2 / 40))
        if deviation == "Hoeffding":
            found.append(share + math.sqrt(cost / 2))
        else:
            found.append(1.0 if share == 1 else kl_upper_inverse(share, cost))
    bound = cover_margin_bound(sample, 1.25, 0.03, deviation=deviation)
    assert min(found) < 1
    assert bound.at(m) == pytest.approx(min(found) * SAFE, rel=1e-13, abs=0)
    assert bound.complexity == pytest.approx(
        4 * gamma / GRID[np.argmin(by_mean)] ** 2, rel=1e-13, abs=0
    )


def test_a_margin_on_the_grid_counts_as_below_it():
    own = LinearAttention([1.0, 0.0], np.zeros((2, 2)))
    X = np.tile(np.array([[[0.25, 0.0]]]), (9, 1, 1))
    sample = measure_margins(own, X, [0.0, 0.5], np.ones(9))
    gamma = cover_coefficient(SAFE, float(GRID[0]), 1, 2)
    cost = (4 * gamma * 16 * 2**0.5 + math.log(81**2 / 0.05)) / 1e5 * SAFE
    expected = kl_upper_inverse(0.0, cost) * SAFE
    assert cover_margin_bound(sample, 1.0, 0.05).at(1e5) == pytest.approx(
        expected, rel=1e-13, abs=0
    )


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
