import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.measures.attention.concentration import streamed_concentration
from attlas.models.networks.translator import AttentionRows, make_translator
from liu2021analyzing.library.data.translation_pairs import SentencePairs
from liu2021analyzing.library.measures import rows as rows_module
from liu2021analyzing.library.measures.rows import (
    KINDS,
    RowPlaces,
    attention_rows,
    draw_rows,
    sharpened_rows,
    uniform_rows,
)

SOURCES, TARGETS = (4, 1, 3, 2, 4), (3, 5, 2, 4, 5)


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    source = np.arange(4) < np.array(SOURCES)[:, None]
    target = np.arange(5) < np.array(TARGETS)[:, None]
    numbers = (rng.integers(1, 6, mask.shape, np.int32) for mask in (source, target))
    one, two = (n * m for n, m in zip(numbers, (source, target), strict=True))
    return SentencePairs(one, source, two, target)


@pytest.fixture(scope="module")
def model():
    return make_translator(jax.random.key(0), (6, 6), width=4, blocks=2, heads=2, hidden=3)


def _every_place(least):
    """(pair, kind, layer, head, query, length) of all rows, by plain loops."""
    for pair, (s, marks) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        t = marks - 1
        for kind, lengths in enumerate(([s] * s, list(range(1, t + 1)), [s] * t)):
            for layer in range(2):
                for head in range(2):
                    for query, length in enumerate(lengths):
                        if length >= least:
                            yield pair, kind, layer, head, query, length


@pytest.mark.parametrize("least", [1, 3])
def test_all_rows_are_found_once(pairs, model, least):
    places = draw_rows(model, pairs, 10_000, jax.random.key(0), least)
    assert list(zip(*(part.tolist() for part in places), strict=True)) == list(_every_place(least))


def test_drawn_rows_are_distinct_sorted_and_of_the_key(pairs, model):
    drawn = [draw_rows(model, pairs, 40, jax.random.key(seed)) for seed in (1, 1, 2)]
    rows = [list(zip(*(part.tolist() for part in places), strict=True)) for places in drawn]
    assert rows[0] == rows[1] != rows[2]
    assert len(set(rows[0])) == 40
    assert rows[0] == sorted(rows[0])
    assert set(rows[0]) <= set(_every_place(1))


@pytest.mark.thorough
def test_rows_are_those_of_the_model_and_measured_as_they_stream(pairs, model):
    places = draw_rows(model, pairs, 60, jax.random.key(3))
    blocks = list(attention_rows(model, pairs, places, chunk=2))
    assert len(blocks) == -(-np.unique(places.pair).size // 2)
    weights, lengths = (np.concatenate(part) for part in zip(*blocks, strict=True))
    assert np.array_equal(lengths, places.length)
    alone = jax.jit(lambda *a: model.attention(*a))
    for pair in range(5):
        maps = alone(
            *(jnp.asarray(a[pair]) for a in pairs[:2]), jnp.asarray(pairs.target[pair, :-1])
        )
        for row in np.flatnonzero(places.pair == pair):
            full = np.asarray(getattr(maps, KINDS[places.kind[row]]))
            expected = full[places.layer[row], places.head[row], places.query[row]]
            # Batched and single products may round differently: some hundred roundings.
            room = 1000 * np.finfo(float).eps
            assert np.max(np.abs(weights[row, : expected.size] - expected)) < room
            assert not np.any(weights[row, lengths[row] :])
    found = streamed_concentration(attention_rows(model, pairs, places, 2))
    assert np.all(found.top_share[lengths <= 1] == 1)
    assert np.all(found.participation <= lengths * (1 + 100 * np.finfo(float).eps))


def test_uniform_rows_have_the_lengths_of_the_places(pairs, model):
    places = draw_rows(model, pairs, 60, jax.random.key(3))
    found = streamed_concentration(uniform_rows(places, block=7))
    # A sum of up to four squares, and its inverse.
    assert np.allclose(found.participation, places.length, rtol=16 * np.finfo(float).eps)


def test_bad_counts_are_refused(pairs, model):
    with pytest.raises(UserError, match="count = 0"):
        draw_rows(model, pairs, 0, jax.random.key(0))
    with pytest.raises(UserError, match="has 9 weights"):
        draw_rows(model, pairs, 5, jax.random.key(0), least=9)
    places = draw_rows(model, pairs, 5, jax.random.key(0))
    with pytest.raises(UserError, match="chunk = 0"):
        next(attention_rows(model, pairs, places, chunk=0))


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_every_place_is_read_from_the_maps_of_its_pair(pairs, model, chunk, monkeypatch):
    """Maps whose entries name their pair, kind, layer, head, query and key; targets are wider."""
    calls = []

    def maps_of(_, source, mask, target):
        calls.append(source[:, 0].tolist())
        assert mask.sum(axis=1).tolist() == [SOURCES[pair] for pair in source[:, 0]]
        assert target.shape == (chunk, 6)
        entries = [np.indices((chunk, 2, 2, *size)) for size in ((4, 4), (6, 6), (6, 4))]
        return AttentionRows(*(
            1e5 * source[index[0], 0] + 1e4 * kind + np.tensordot([1e3, 100, 10, 1], index[1:], 1)
            for kind, index in enumerate(entries)
        ))  # fmt: skip

    monkeypatch.setattr(rows_module, "_maps", maps_of)
    source = np.arange(5, dtype=np.int32)[:, None] * np.ones((1, 4), np.int32)
    target, mask = (np.pad(part, ((0, 0), (0, 2))) for part in pairs[2:])
    every = draw_rows(model, pairs, 10_000, jax.random.key(0))
    # The third pair has no row: pairs 0 and 1, then 3 and 4.
    places = RowPlaces(*(part[every.pair != 2] for part in every))
    wide = SentencePairs(source, pairs.mask, target, mask)
    blocks = list(attention_rows(model, wide, places, chunk))
    assert calls == {1: [[0], [1], [3], [4]], 2: [[0, 1], [3, 4]], 3: [[0, 1, 3], [4, 4, 4]]}[chunk]
    weights, lengths = (np.concatenate(part) for part in zip(*blocks, strict=True))
    np.testing.assert_array_equal(lengths, places.length)
    first = np.array([1e5, 1e4, 1e3, 100, 10]) @ np.stack(places[:5])
    expected = first[:, None] + np.arange(6)
    expected[places.kind != 1, 4:] = 0.0
    np.testing.assert_array_equal(weights, expected)


def test_uniform_rows_come_in_blocks_as_wide_as_their_longest():
    one = np.zeros(5, np.int32)
    places = RowPlaces(one, one, one, one, one, np.array([2, 3, 1, 5, 4]))
    blocks = list(uniform_rows(places, block=3))
    expected = [[0.5, 0.5, 0], [1 / 3] * 3, [1, 0, 0]]
    np.testing.assert_array_equal(blocks[0][0], expected)
    np.testing.assert_array_equal(blocks[1][0], [[0.2] * 5, [0.25] * 4 + [0]])
    assert [lengths.tolist() for _, lengths in blocks] == [[2, 3, 1], [5, 4]]


def test_sharpened_rows_are_the_softmax_of_scaled_logits_and_padding_stays_zero():
    logits = np.array([[0.3, -1.2, 2.0], [1.0, 0.4, -np.inf]])
    rows, expected = (np.exp(r * logits) / np.exp(r * logits).sum(1)[:, None] for r in (1, 2.5))
    np.testing.assert_allclose(sharpened_rows(rows, 2.5), expected, rtol=1e-14)


def test_sharpening_does_not_underflow():
    rows = sharpened_rows(np.array([[0.5, 0.5, 0.0], [0.3, 0.4, 0.3]]), 2000.0)
    np.testing.assert_allclose(rows, [[0.5, 0.5, 0], [0, 1, 0]], atol=1e-200)


def test_no_pair_has_no_row(pairs, model):
    with pytest.raises(UserError, match="no attention row of 0 pairs"):
        draw_rows(model, SentencePairs(*(part[:0] for part in pairs)), 3, jax.random.key(0))
