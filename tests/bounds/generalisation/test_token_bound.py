"""Token-level bounds: the published ranges, the formula, coverage of streams with memory."""

import math

import numpy as np
import pytest

from attlas.bounds.generalisation import token_bound as module
from attlas.bounds.generalisation.token_bound import (
    SLOPES,
    bernstein_exponent,
    running_spread,
    smoothed_losses,
    token_bound,
)
from attlas.core.errors import UserError


def test_ranges_of_smoothed_losses_are_the_published_ones():
    widths = [smoothed_losses(np.ones(1), 50304, a)[2] for a in (1e-4, 0.01, 0.1, 0.5)]
    np.testing.assert_allclose(widths, [28.91, 22.25, 18.79, 15.62], atol=5e-3)
    assert f"{token_bound(np.full(9, 0.5), 50304, 0, 0.1).trivial:.3f}" == "15.618"


def test_scaled_losses_and_spread_by_their_definitions():
    p = np.array([0.9, 0.01, 0.3, 0.0, 1.0])
    Z, least, width = smoothed_losses(p, 10, 0.2)
    loss = -np.log2(0.8 * p + 0.02)
    np.testing.assert_allclose(least + width * Z, loss, rtol=1e-12)
    assert (Z[3], Z[4]) == (1.0, 0.0)
    means = [np.mean([0.5, *Z[:k]]) for k in range(5)]
    np.testing.assert_allclose(running_spread(Z), np.sum((Z - means) ** 2), rtol=1e-12)


def test_the_bound_is_its_formula():
    p, delta, bits = np.random.default_rng(0).beta(5, 1, 4000), 0.05, 300
    Z, least, width = smoothed_losses(p, 7, 0.1)
    cost = bits * math.log(2) + math.log(len(SLOPES) + 1) + math.log(1 / delta)
    forms = [(bernstein_exponent(s) * running_spread(Z) + cost) / (s * 4000) for s in SLOPES]
    forms.append(math.sqrt(cost / 8000))
    found = token_bound(p, 7, bits, delta, smoothings=[0.1])
    np.testing.assert_allclose(found.bound, least + width * (Z.mean() + min(forms)), rtol=1e-10)
    np.testing.assert_allclose(found.at(4000.0), found.bound, rtol=1e-15)
    assert min(forms) < forms[-1]
    more = token_bound(p, 7, bits, delta, smoothings=[0.1, 0.2])
    assert more.bound < found.bound * (1 + math.log(2) / cost)


def test_the_best_smoothing_and_what_roundings_add(monkeypatch):
    monkeypatch.setattr(module, "_SAFE", 1.01)
    p, delta, bits, words, grid = (
        np.random.default_rng(1).beta(5, 1, 900),
        0.05,
        40,
        11,
        (0.4, 0.02),
    )
    choices = len(grid) * (len(SLOPES) + 1)
    cost = (bits * math.log(2) + math.log(choices / delta)) * 1.01
    for N in (900, 9000, 60):
        bounds = []
        for alpha in grid:
            loss = -np.log2((1 - alpha) * p + alpha / words)
            least, worst = -math.log2(1 - alpha + alpha / words), -math.log2(alpha / words)
            Z = (loss - least) / (worst - least)
            V = sum((z - np.mean([0.5, *Z[:k]])) ** 2 for k, z in enumerate(Z)) / 900
            psi = {s: -math.log(1 - s) - s for s in SLOPES}
            forms = [(psi[s] * V + cost / N) / s for s in SLOPES] + [math.sqrt(cost / N / 2)]
            bounds.append((least + (worst - least) * min(1, Z.mean() + 1.01 * min(forms)), loss))
        found = token_bound(p, words, bits, delta, smoothings=grid)
        best = min(bounds, key=lambda pair: pair[0])
        np.testing.assert_allclose(found.at(float(N)), best[0], rtol=1e-12)
        if N == 900:
            np.testing.assert_allclose(found.empirical, best[1].mean(), rtol=1e-12)
            np.testing.assert_allclose(found.complexity, bits * math.log(2), rtol=1e-14)
            np.testing.assert_allclose(found.trivial, math.log2(words), rtol=1e-14)
            assert f"{choices} choices" in found.shares[0][0]


def test_it_holds_on_streams_with_memory_about_as_often_as_it_says():
    """A chain whose next bit follows the last one: the conditional mean is known at each step."""
    rng, delta, failed, N = np.random.default_rng(0), 0.3, 0, 60
    for _ in range(300):
        stay = rng.uniform(0.5, 0.95)
        stays = rng.random(N) < stay
        # the model predicts 0.9 for the last bit again
        bound = token_bound(np.where(stays, 0.9, 0.1), 2, 0, delta, smoothings=[0.1])
        Z, least, width = smoothed_losses(np.array([0.9, 0.1]), 2, 0.1)
        failed += least + width * (stay * Z[0] + (1 - stay) * Z[1]) > bound.bound
    assert failed <= 300 * delta


def test_a_stream_that_is_predicted_well_needs_few_tokens():
    few, many = (token_bound(np.full(n, 0.97), 100, 5000, 0.05) for n in (2000, 200_000))
    assert few.bound > many.bound
    needed = many.samples_until_nonvacuous
    assert many.at(needed) < many.trivial <= many.at(needed - 1)
    assert not many.vacuous


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([0.5, 1.5], 4, 1, 0.1), "probabilities hold 1.5"),
        (([0.5], 1, 1, 0.1), "vocabulary = 1"),
        (([0.5], 4, -1, 0.1), "bits = -1"),
        (([0.5], 4, 1, 0.0), "delta = 0.0"),
        (([[0.5]], 4, 1, 0.1), "probabilities has shape"),
    ],
)
def test_bad_input_is_one_line(arguments, said):
    with pytest.raises(UserError, match=said):
        token_bound(*arguments)
    with pytest.raises(UserError, match="smoothings"):
        token_bound([0.5], 4, 1, 0.1, smoothings=[1.0])
