"""Concentration of attention rows against loops over rows, and its conventions."""

import math
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.measures.attention.concentration import concentration, streamed_concentration, top_norm


def ragged(seed: int, rows: int, width: int, dtype: str = "float64", scale: float = 3.0):
    """Softmax rows of different lengths, padded by numbers that must not be read."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, width + 1, rows)
    inside = np.arange(width) < lengths[:, None]
    scores = np.where(inside, scale * draw.standard_normal((rows, width)), -np.inf)
    raised = np.exp(scores - scores.max(1, keepdims=True)).astype(dtype)
    weights = raised / raised.sum(1, keepdims=True)
    return np.where(inside, weights, np.array(7.0, dtype)), lengths


def by_hand(row: np.ndarray, tau: float, norm: str) -> int:
    """Smallest s0 by trying each."""
    ordered, order = np.sort(row)[::-1], 1 if norm == "l1" else 2
    goal = (1 - tau) * (1.0 if norm == "raw l2" else float(np.linalg.norm(row, order)))
    reached = [s for s in range(1, row.size + 1) if np.linalg.norm(ordered[:s], order) >= goal]
    return reached[0] if reached else 0


@pytest.mark.parametrize("norm", ["l2", "raw l2", "l1"])
def test_every_statistic_equals_a_loop_over_rows(norm):
    weights, lengths = ragged(0, 200, 37)
    taus = (0.3, 0.1, 0.02)
    found = concentration(weights, lengths, taus, norm)
    for i, p in enumerate(lengths):
        row = weights[i, :p]
        top = np.sort(row)[::-1][: math.isqrt(p)]
        assert found.s0[i].tolist() == [by_hand(row, tau, norm) for tau in taus]
        entropy = -float(row @ np.log(row))
        direct = [
            np.linalg.norm(top),
            np.linalg.norm(top) / np.linalg.norm(row),
            top.sum(),
            entropy,
            math.exp(entropy),
            1 / float(row @ row),
        ]
        # Sums of 37 terms, and exp of an entropy of at most log 37.
        np.testing.assert_allclose(
            [c[i] for c in found[1:]], direct, rtol=200 * 2.3e-16, atol=1e-15
        )


def test_float32_rows_agree_with_float64_up_to_their_rounding():
    weights, lengths = ragged(1, 500, 200, "float32")
    fine = np.where(np.arange(200) < lengths[:, None], weights.astype(float), 0)
    fine /= fine.sum(1, keepdims=True)
    single, double = concentration(weights, lengths), concentration(fine, lengths)
    assert np.mean(single.s0 == double.s0) > 0.99
    tolerance = 200 * np.finfo(np.float32).eps
    np.testing.assert_allclose(single.top_norm, double.top_norm, rtol=tolerance)
    np.testing.assert_allclose(single.entropy, double.entropy, atol=6 * tolerance)


def test_uniform_rows_do_not_concentrate():
    found = concentration(np.full((2, 100), 0.01), taus=(0.5, 0.1))
    # sqrt(s / 100) >= 1 - tau: 25 and 81 weights.
    assert found.s0.tolist() == [[25, 81], [25, 81]]
    np.testing.assert_allclose(found.relative_top_norm, math.sqrt(0.1), rtol=1e-13)
    np.testing.assert_allclose(found.effective_support, 100, rtol=1e-12)


def test_raw_norm_cannot_be_reached_by_flat_rows():
    found = concentration(np.array([[0.5, 0.5], [0.95, 0.05]]), taus=(0.1,), norm="raw l2")
    assert found.s0.tolist() == [[0], [1]]


def test_raw_norm_forces_one_large_weight():
    weights, lengths = ragged(2, 2000, 50, scale=6.0)
    found = concentration(weights, lengths, taus=(0.091,), norm="raw l2")
    largest = np.where(np.arange(50) < lengths[:, None], weights, 0).max(1)
    reached = found.s0[:, 0] > 0
    assert reached.any()
    assert not reached.all()
    assert np.all(largest[reached] >= 0.909**2)


def test_blocks_are_asked_for_one_at_a_time():
    weights, lengths = ragged(3, 60, 20)
    whole, alive = concentration(weights, lengths), []

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        for start in range(0, 60, 25):
            alive.append(start)
            yield weights[start : start + 25], lengths[start : start + 25]

    parts = streamed_concentration(blocks())
    assert alive == [0, 25, 50]
    for one, other in zip(whole, parts, strict=True):
        # Another padding groups the terms of a sum otherwise.
        np.testing.assert_allclose(one, other, rtol=20 * np.finfo(float).eps)


def test_top_norm_against_a_sort():
    weights, lengths = ragged(4, 50, 30)
    lengths = np.maximum(lengths, 3)
    weights = np.where(weights == 7.0, 0.01, weights)
    rows = [np.sort(w[:p])[::-1][:3] for w, p in zip(weights, lengths, strict=True)]
    expected = [np.linalg.norm(row) for row in rows]
    np.testing.assert_allclose(top_norm(weights, 3, lengths), expected, rtol=1e-14)


def test_a_coarser_arithmetic_is_allowed_its_rounding():
    row = np.full((1, 8), 0.125 * (1 + 2e-3), np.float32)
    with pytest.raises(UserError, match=r"sums to 1\.00"):
        concentration(row)
    assert concentration(row, eps=2.0**-8).s0.tolist() == [[7]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: concentration(np.array([[0.5, 0.4]])), "attention row 0 sums to 0.9 "),
        (lambda: concentration(np.array([[1.5, -0.5]])), "least weight -0.5"),
        (lambda: concentration(np.array([[np.nan, 1.0]])), "sums to nan"),
        (lambda: concentration(np.ones((1, 1)), np.array([2])), "give 1 to 1"),
        (lambda: concentration(np.ones((2, 3, 1)), np.ones(2, int)), r"lengths of shape \(2,\)"),
        (lambda: concentration(np.ones((2, 1)), np.ones((3, 2), int)), r"for rows \(2,\)"),
        (lambda: concentration(np.ones((2, 1)), np.ones(2)), "type float64 for rows"),
        (lambda: concentration(1.0), r"weights of shape \(\)"),
        (lambda: concentration([[1, 0]]), "type int64: give floating numbers"),
        (lambda: concentration([[1.0], []]), "weights has rows of different lengths"),
        (lambda: concentration(np.full((2, 3, 2), 0.4)), r"attention row \(0, 0\) sums to 0.8"),
        (lambda: concentration(np.ones((1, 1)), taus=(1.0,)), "between 0 and 1"),
        (lambda: top_norm(np.ones((1, 1)), 2), "s0 = 2 of p = 1 weights"),
        (lambda: streamed_concentration([]), "no attention rows"),
    ],
)
def test_bad_rows_are_refused_in_one_line(call, message):
    with pytest.raises(UserError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("norm", "tau", "s0"), [("l1", 1 / 10, 9), ("l2", 1 - math.sqrt(7 / 10), 7)]
)
def test_a_threshold_that_rounding_misses_counts_as_reached(norm, tau, s0):
    # s0 of ten equal weights have exactly the norm asked for.
    assert concentration(np.full((1, 10), 0.1), taus=(tau,), norm=norm).s0.item() == s0


@pytest.mark.parametrize(("excess", "s0"), [(5, 4), (8, 5)])
def test_the_rounding_allowed_is_that_of_a_sum_of_the_row(excess, s0):
    # The sum is 1 + e; the least weight may go if 1/8 + e <= (1 + e) / 8 + 5 eps, e <= 5.7 eps.
    row = np.r_[0.125 + excess * np.finfo(float).eps, np.full(4, 7 / 32)]
    assert concentration(row, taus=(0.125,), norm="l1").s0.tolist() == [s0]


def test_a_level_next_to_one_leaves_one_weight():
    for width in (4, 16, 40):
        row = np.full(width, 1 / width)
        assert concentration(row, taus=(1 - 2.0**-53,)).s0.tolist() == [1]


ALL_SETS = (np.arange(2**9)[:, None] >> np.arange(9)) % 2 == 1


def nine_weights(seed: int, rows: int) -> np.ndarray:
    """Softmax rows of nine weights from nearly uniform to nearly one-hot."""
    draw = np.random.default_rng(seed)
    logits = 10 ** draw.uniform(-1.5, 1, (rows, 1)) * draw.standard_normal((rows, 9))
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def smallest_set(row: np.ndarray, tau: float, norm: str, sets: np.ndarray) -> int:
    """Size of the smallest of some sets of weights that holds all but tau; 0 where none does."""
    powers = row if norm == "l1" else row**2
    kept = 1 - tau if norm == "l1" else (1 - tau) ** 2
    goal = kept * (1.0 if norm == "raw l2" else powers.sum())
    sizes = sets.sum(axis=1)[sets @ powers >= goal]
    return int(sizes.min(initial=10)) % 10


@pytest.mark.parametrize("norm", ["l2", "raw l2", "l1"])
def test_s0_is_the_size_of_the_smallest_of_all_sets(norm):
    weights, taus = nine_weights(5, 48), (0.1, 0.3, 0.01)
    prefixes = np.tril(np.ones((9, 9), bool))
    found = concentration(weights, taus=taus, norm=norm).s0.tolist()
    of_all, of_prefixes = (
        [[smallest_set(row, tau, norm, sets) for tau in taus] for row in weights]
        for sets in (ALL_SETS, prefixes)
    )
    assert found == of_all
    assert found != of_prefixes


def test_the_top_weights_are_the_best_of_all_triples():
    weights = nine_weights(6, 48)
    triples = ALL_SETS[ALL_SETS.sum(axis=1) == 3]
    found = concentration(weights)
    norms = np.sqrt((weights**2 @ triples.T).max(axis=1))
    np.testing.assert_allclose(found.top_norm, norms, rtol=1e-14)
    own = np.linalg.norm(weights, axis=1)
    np.testing.assert_allclose(found.relative_top_norm, norms / own, rtol=1e-14)
    np.testing.assert_allclose(found.top_share, (weights @ triples.T).max(axis=1), rtol=1e-14)
    assert np.any(found.top_share > weights[:, :3].sum(axis=1) * 1.01)


def causal_maps(dtype="float64"):
    """Softmax maps [n, H, T, T] of causal attention, in float64 and in a type."""
    scores = np.random.default_rng(7).normal(size=(2, 3, 5, 5))
    raised = np.tril(np.exp(scores))
    exact = raised / raised.sum(axis=-1, keepdims=True)
    return exact, jnp.asarray(exact, dtype)


def test_maps_give_the_numbers_of_their_rows_bit_for_bit():
    maps, _ = causal_maps()
    lengths = np.arange(1, 6)
    whole = concentration(maps, lengths, taus=(0.1, 0.01))
    flat = concentration(maps.reshape(-1, 5), np.tile(lengths, 6), taus=(0.1, 0.01))
    for name, column in whole._asdict().items():
        assert column.shape == (2, 3, 5, *([2] if name == "s0" else []))
        np.testing.assert_array_equal(column.ravel(), getattr(flat, name).ravel())
    np.testing.assert_array_equal(
        top_norm(maps, 1, lengths).ravel(), top_norm(maps.reshape(-1, 5), 1, np.tile(lengths, 6))
    )
    one = concentration(maps[0, 0, 4])
    assert one.entropy.shape == ()
    assert one.entropy == whole.entropy[0, 0, 4]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_narrow_types_are_widened_and_keep_their_rounding_unit(dtype):
    exact, narrow = causal_maps(dtype)
    found, wide = (concentration(maps, np.arange(1, 6)) for maps in (narrow, exact))
    # each of at most five weights is off by half a unit of itself
    unit = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(found.participation, wide.participation, rtol=8 * unit)


def test_tensors_and_lists_are_rows(torch_like):
    exact, narrow = causal_maps("bfloat16")
    tensor = torch_like(np.asarray(narrow, np.float32), "torch.bfloat16")
    found = concentration(tensor, [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(found.entropy, concentration(narrow, np.arange(1, 6)).entropy)
    assert concentration(exact.tolist(), [1, 2, 3, 4, 5]).s0.shape == (2, 3, 5, 1)


def test_more_rows_than_a_block_holds_are_all_measured():
    first = np.random.default_rng(9).uniform(size=20_000)
    found = concentration(np.stack([first, 1 - first], axis=1))
    np.testing.assert_allclose(found.participation, 1 / (first**2 + (1 - first) ** 2), rtol=1e-14)
