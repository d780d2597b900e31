"""Known maps, and a second computation by another route."""

import jax
import numpy as np
import pytest
import scipy.special

from attlas.core.errors import UserError
from attlas.measures.attention.concentration import concentration
from attlas.measures.attention.map_statistics import map_statistics

H, T = 3, 20


def random_maps(causal):
    logits = 3 * np.random.default_rng(0).normal(size=(H, T, T))
    if causal:
        logits = np.where(np.tri(T, dtype=bool), logits, -np.inf)
    return scipy.special.softmax(logits, axis=-1)


@pytest.mark.parametrize("causal", [pytest.param(True, marks=pytest.mark.thorough), False])
def test_agrees_with_the_concentration_of_rows(causal):
    maps, rows = random_maps(causal), np.arange(T) < T - 3
    special = np.isin(np.arange(T), (0, 7))
    found = jax.jit(map_statistics)(maps, rows, special)
    # `concentration` sorts on the host and takes the logarithm of other numbers.
    known = concentration(maps)
    used = maps[:, rows]
    tops = np.sort(used, axis=-1)[..., ::-1]
    expected = {
        "entropy": known.entropy[:, rows],
        "effective_support": known.effective_support[:, rows],
        "participation": known.participation[:, rows],
        "top_1": tops[..., 0],
        "top_4": tops[..., :4].sum(-1),
        "top_16": tops[..., :16].sum(-1),
        "log_top_1": np.log(tops[..., 0]),
        "distant": [
            [
                max(a[i, j] for j in range(T) if abs(i - j) > 4 and not special[j])
                for i in range(T - 3)
            ]
            for a in maps
        ],
        "previous": [[a[i, i - 1] if i else 0 for i in range(T - 3)] for a in maps],
        "next": [[a[i, i + 1] for i in range(T - 3)] for a in maps],
        "own": [[a[i, i] for i in range(T - 3)] for a in maps],
        "first": used[..., 0],
        "special": used[..., special].sum(-1),
    }
    # Sums of T numbers below log T and means of T rows of numbers up to T.
    size = 8 * T * T * np.finfo(float).eps
    for name in found._fields:
        assert np.allclose(getattr(found, name), np.mean(expected[name], axis=1), 0, size), name


@pytest.mark.thorough
def test_equal_weights_and_one_weight_are_the_two_ends():
    every = np.ones(4, bool)
    even = map_statistics(np.full((1, 4, 4), 0.25), every, ~every)
    one = map_statistics(np.eye(4)[None], every, ~every)
    assert np.isclose(even.entropy, np.log(4))
    assert even.participation == 4
    assert even.special == 0
    assert one.entropy == 0
    assert one.effective_support == one.participation == one.own == 1
    assert one.log_top_1 == 0
    assert one.previous == one.next == 0
    assert one.first == 0.25


def test_padding_does_not_count_whatever_it_holds():
    maps = random_maps(causal=True)
    spoilt = maps.copy()
    spoilt[:, T - 3 :] = np.nan
    rows = np.arange(T) < T - 3
    program = jax.jit(map_statistics)
    clean, padded = program(maps, rows, rows), program(spoilt, rows, rows)
    assert all(np.array_equal(a, b) for a, b in zip(clean, padded, strict=True))


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(UserError, match="rows has shape"):
        map_statistics(random_maps(causal=True), np.ones(3, bool), np.ones(T, bool))
