import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.data.sparse_majority import (
    MajorityDesign,
    make_sparse_majorities,
    make_sparse_majority,
    sinusoidal_positions,
)

EPS = float(np.finfo(float).eps)
KEY = jax.random.key(3)
SMALL = MajorityDesign(train=40, validation=60, indices=5, dimension=16)


def test_tokens_are_the_released_loop_written_out():
    data = make_sparse_majority(KEY, 11, SMALL, "float64")
    e, d = data.embedding, 16
    found = np.asarray(jax.vmap(e)(data.bits))
    for i in (0, 7):
        for j in range(12):
            content = e.cls if j == 11 else (e.one if data.bits[i, j] else e.zero)
            wave = [
                np.sin(j / 10000 ** (c / d)) if c % 2 == 0 else np.cos(j / 10000 ** (c / d))
                for c in range(d)
            ]
            np.testing.assert_allclose(found[i, j], np.asarray(content) + wave, atol=16 * EPS)


def test_contents_are_orthogonal_with_norm_one():
    for order in (1.0, 2.0):
        design = SMALL._replace(embedding_order=order)
        e = make_sparse_majority(KEY, 11, design, "float64").embedding
        rows = np.stack([e.zero, e.one, e.cls])
        np.testing.assert_allclose(np.linalg.norm(rows, order, axis=1), 1, atol=16 * EPS)
        # Twice cleared of vectors that are no shorter than a tenth of the draw.
        assert np.abs(rows @ rows.T - np.diag(np.diag(rows @ rows.T))).max() < 1e3 * EPS


def test_labels_are_the_majority_of_the_hidden_bits():
    data = make_sparse_majority(KEY, 11, SMALL)
    assert np.unique(data.indices).size == 5
    for bits, labels in (
        (data.bits, data.labels),
        (data.validation_bits, data.validation_labels),
    ):
        ones = np.asarray(bits)[:, np.asarray(data.indices)].sum(axis=1)
        assert np.array_equal(labels, ones >= 3)
    # 1100 fair bits: five standard deviations of their mean.
    both = np.concatenate([data.bits, data.validation_bits])
    assert abs(both.mean() - 0.5) < 5 * 0.5 / both.size**0.5


def test_deviations_change_what_they_name():
    plain = make_sparse_majority(KEY, 11, SMALL)
    bare = make_sparse_majority(KEY, 11, SMALL._replace(position_scale=0.0))
    assert not jnp.any(bare.embedding.positions)
    assert jnp.array_equal(bare.bits, plain.bits)
    distinct = make_sparse_majority(KEY, 8, SMALL._replace(distinct=True))
    both = np.concatenate([distinct.bits, distinct.validation_bits])
    assert np.unique(both, axis=0).shape == both.shape
    angles = np.outer(np.arange(5), 10000.0 ** (-np.arange(4) / 4))
    paired = sinusoidal_positions(5, 8, paired=True)
    np.testing.assert_allclose(paired[:, ::2], np.sin(angles), atol=4 * EPS)
    np.testing.assert_allclose(paired[:, 1::2], np.cos(angles), atol=4 * EPS)


def test_runs_differ_in_everything():
    keys = jax.random.split(KEY, 2)
    runs = make_sparse_majorities(keys, 11, SMALL)
    assert jnp.array_equal(runs.bits[1], make_sparse_majority(keys[1], 11, SMALL).bits)
    assert not jnp.array_equal(runs.bits[0], runs.bits[1])
    assert not jnp.array_equal(runs.embedding.zero[0], runs.embedding.zero[1])


@pytest.mark.parametrize(
    ("T", "change", "said"),
    [
        (11, {"indices": 4}, "odd number"),
        (4, {}, "at most T"),
        (11, {"train": 0}, "at least one of each"),
        (11, {"dimension": 2}, "at least 3"),
        (11, {"embedding_order": 0.5}, "must be at least 1"),
        (7, {"distinct": True}, "over half"),
    ],
)
def test_bad_designs_are_refused(T, change, said):
    with pytest.raises(UserError, match=said):
        make_sparse_majority(KEY, T, SMALL._replace(**change))


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0])
def test_draws_are_those_of_the_generator(order):
    """Positions, then bits, then three uniform vectors, each cleared of those before."""
    data = make_sparse_majority(KEY, 11, SMALL._replace(embedding_order=order), "float64")
    draw = generator(KEY)
    assert np.array_equal(data.indices, draw.choice(11, 5, replace=False))
    bits = draw.integers(0, 2, (100, 11), dtype=np.int8)
    assert np.array_equal(data.bits, bits[:40])
    assert np.array_equal(data.validation_bits, bits[40:])
    raw = draw.uniform(-1, 1, (3, 16))
    # Gram and Schmidt by least squares on the vectors before.
    for k, found in enumerate((data.embedding.zero, data.embedding.one, data.embedding.cls)):
        before = raw[:k].T
        free = raw[k] - before @ np.linalg.lstsq(before, raw[k])[0] if k else raw[0]
        norm = np.sum(np.abs(free) ** order) ** (1 / order)
        np.testing.assert_allclose(found, free / norm, rtol=0, atol=64 * EPS)
    scaled = make_sparse_majority(KEY, 11, SMALL._replace(position_scale=0.25), "float64")
    np.testing.assert_array_equal(scaled.embedding.positions, sinusoidal_positions(12, 16) / 4)
