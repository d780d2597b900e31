import numpy as np
import pytest
import xarray as xr

from attlas.core.errors import UserError
from liu2021analyzing.library.measures.rows import RowPlaces
from liu2021analyzing.library.measures.summary import (
    MEASURES,
    attention_dataset,
    attention_summary,
    mean_over_all_rows,
    means_of_short_and_long,
    means_over_rows,
)

TAUS = (0.3, 0.1)
EPS = np.finfo(float).eps


@pytest.fixture(scope="module")
def drawn():
    """Places in 3 kinds, 2 layers and 2 heads, and rows from flat to peaked."""
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, high, 200) for high in (5, 3, 2, 2, 9)]
    places = RowPlaces(*parts, rng.integers(2, 10, 200))
    inside = np.arange(9) < places.length[:, None]
    weights = np.exp(rng.uniform(0.1, 5, (200, 1)) * rng.standard_normal((200, 9))) * inside
    return places, weights / weights.sum(axis=1, keepdims=True)


def _blocks(places, rows, size):
    for start in range(0, rows.shape[0], size):
        yield rows[start : start + size], places.length[start : start + size]


def _plain(row, p):
    """Measures of one row, and s0 in l2 and l1, from their definitions."""
    a = np.sort(row[:p])[::-1]
    top = a[: int(np.sqrt(p))]
    entropy = -sum(x * np.log(x) for x in a if x > 0)
    norm = np.linalg.norm(a)
    values = [np.linalg.norm(top), np.linalg.norm(top) / norm, top.sum(), a[0], entropy,
              np.exp(entropy), norm**-2, np.exp(entropy) / p]  # fmt: skip
    sizes = [
        [next(s for s in range(1, p + 1) if size(a[:s]) >= (1 - tau) * size(a)) for tau in TAUS]
        for size in (np.linalg.norm, np.sum)
    ]
    return values, sizes


def test_means_are_those_of_the_rows_one_by_one(drawn):
    places, rows = drawn
    found = attention_summary(_blocks(places, rows, 64), places, TAUS)
    each = [_plain(row, p) for row, p in zip(rows, places.length, strict=True)]
    values, s0 = (np.array(part) for part in zip(*each, strict=True))
    # Sums of nine terms, then of 200, of numbers up to nine.
    room = 1e4 * EPS
    for kind, layer, head in np.ndindex(3, 2, 2):
        here = (places.kind == kind) & (places.layer == layer) & (places.head == head)
        index = (kind, layer, head)
        assert found.rows[index] == here.sum() > 0
        assert np.allclose(found.mean[index], values[here].mean(axis=0), rtol=room)
        assert np.allclose(found.s0[index], s0[here].mean(axis=0), rtol=room)
        root = np.floor(np.sqrt(places.length[here]))[:, None, None]
        assert np.allclose(found.s0_root[index], (s0[here] / root).mean(axis=0), rtol=room)
    for kind in range(3):
        of_kind = places.kind == kind
        norms = np.linalg.norm(rows[of_kind], axis=1)
        told = [np.mean(norms < 1 - tau) for tau in TAUS]
        assert np.allclose(found.unreached[kind], told, rtol=room)
        for p in range(2, 10):
            here = of_kind & (places.length == p)
            assert found.rows_by_length[kind, p] == here.sum()
            expected = values[here, :3].mean(axis=0) if here.any() else np.zeros(3)
            assert np.allclose(found.by_length[kind, p], expected, rtol=room)
        for mass in range(3):
            counts = np.histogram(values[of_kind, mass].clip(0, 1), np.linspace(0, 1, 41))[0]
            assert np.array_equal(found.histogram[kind, mass], counts)


def test_a_high_norm_forces_one_weight(drawn):
    places, rows = drawn
    share, least = attention_summary(_blocks(places, rows, 200), places, level=0.909).high
    high = [_plain(row, p)[0] for row, p in zip(rows, places.length, strict=True)]
    kept = [values[MEASURES.index("largest weight")] for values in high if values[0] >= 0.909]
    assert share == pytest.approx(len(kept) / 200)
    assert least == pytest.approx(min(kept))
    assert least >= 0.909**2


def test_rows_without_places_are_refused(drawn):
    places, rows = drawn
    with pytest.raises(UserError, match="64 rows at 200 places"):
        attention_summary([(rows[:64], places.length[:64])], places)


def test_means_weigh_every_row_alike():
    rows = np.arange(1.0, 7.0).reshape(3, 1, 2)
    values = np.arange(6.0).reshape(1, 3, 1, 2, 1)
    data = xr.Dataset(
        {
            "mean": (("variant", "kind", "layer", "head", "measure"), values),
            "s0_root": (("variant", "kind", "layer", "head", "norm"), values),
            "unreached": (("variant", "kind"), [[0.0, 0.0, 1.0]]),
            "rows": (("kind", "layer", "head"), rows),
        },
        {"kind": ["encoder", "decoder", "cross"]},
    )
    found = means_over_rows(data)
    whole = found.sel(attention="all")
    assert float(whole["mean"].squeeze()) == pytest.approx(
        np.average(np.arange(6), weights=rows.ravel())
    )
    for name in ("mean", "s0_root", "unreached"):
        assert mean_over_all_rows(data, name).equals(whole[name].drop_vars("attention"))
    assert int(whole.rows) == 21
    assert float(whole.unreached.squeeze()) == pytest.approx(11 / 21)
    assert float(found["mean"].sel(attention="decoder").squeeze()) == pytest.approx(
        (2 * 3 + 3 * 4) / 7
    )


def test_short_and_long_halves_share_no_row():
    counts = xr.DataArray([[0, 2, 4, 2]], dims=("kind", "length"), coords={"length": range(4)})
    masses = xr.DataArray([[[np.nan], [3.0], [2.0], [1.0]]], dims=("kind", "length", "mass"))
    data = xr.Dataset({"rows_by_length": counts, "by_length": masses}, {"mass": ["raw l2"]})
    middle, means = means_of_short_and_long(data, "raw l2")
    assert middle == 2
    np.testing.assert_allclose(means.sel(rows="short"), (2 * 3 + 4 * 2) / 6)
    np.testing.assert_allclose(means.sel(rows="long"), 1.0)


def test_one_hot_rows_stand_in_the_last_bin_and_lengths_end_with_the_longest(drawn):
    places = drawn[0]
    found = attention_summary([(np.eye(9)[np.zeros(200, int)], places.length)], places, bins=7)
    assert found.rows_by_length.shape == (3, 10)
    assert found.by_length.shape[:2] == (3, 10)
    assert found.histogram.shape == (3, 3, 7)
    expected = np.bincount(places.kind)[:, None, None] * np.eye(7)[6]
    np.testing.assert_array_equal(found.histogram, np.broadcast_to(expected, (3, 3, 7)))
    assert found.high.tolist() == [1.0, 1.0]


def test_axes_are_named_and_variants_stacked(drawn):
    places, rows = drawn
    equal = (np.arange(9) < places.length[:, None]) / places.length[:, None]
    own = [attention_summary([(a, places.length)], places, TAUS) for a in (rows, equal)]
    data = attention_dataset({"a": own[0], "b": own[1]}, TAUS)
    assert data.layer.values.tolist() == [1, 2]
    assert data.length.values.tolist() == list(range(10))
    assert data.tau.values.tolist() == list(TAUS)
    for k, name in enumerate("ab"):
        chosen = data.sel(variant=name, kind="decoder", layer=2, head=1)
        np.testing.assert_array_equal(chosen["mean"], own[k].mean[1, 1, 1])
        l1 = data.s0.sel(variant=name, norm="l1", tau=TAUS[0])
        np.testing.assert_array_equal(l1, own[k].s0[..., 1, 0])
        lengths = data.by_length.sel(variant=name, length=4, mass="l1 share")
        np.testing.assert_array_equal(lengths, own[k].by_length[:, 4, 2])
        assert data.high.sel(variant=name, share_and_least="least") == own[k].high[1]
    np.testing.assert_array_equal(data.rows, own[0].rows)
    np.testing.assert_array_equal(data.rows_by_length, own[0].rows_by_length)


def test_lengths_without_a_count_weigh_nothing():
    counts = xr.DataArray([[np.nan, 1.0, 1.0], [np.nan, 3.0, np.nan]], dims=("kind", "length"),
                          coords={"length": range(3)})  # fmt: skip
    masses = xr.DataArray(
        [[[7.0], [3.0], [2.0]], [[7.0], [1.0], [9.0]]], dims=("kind", "length", "mass")
    )
    data = xr.Dataset({"rows_by_length": counts, "by_length": masses}, {"mass": ["raw l2"]})
    middle, means = means_of_short_and_long(data, "raw l2")
    assert middle == 1
    assert means.values.tolist() == [(3 + 3 * 1) / 4, 2.0]


def test_rows_of_a_level_s_norm_reach_it_and_layers_are_counted_by_their_axis():
    """Three layers of two heads, rows that put all weight on one place."""
    zero, lengths = np.zeros(3, int), np.full(3, 2)
    places = RowPlaces(zero, zero, np.arange(3), np.array([0, 1, 0]), zero, lengths)
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    found = attention_summary([(rows, lengths)], places, level=1.0)
    assert found.high.tolist() == [1.0, 1.0]
    data = attention_dataset({"a": found}, [0.1])
    assert data.layer.values.tolist() == [1, 2, 3]
    assert data.sizes["head"] == 2


def test_heads_without_a_count_weigh_nothing():
    data = xr.Dataset(
        {
            "mean": (("kind", "layer", "head"), [[[1.0, 5.0, 9.0]]]),
            "rows": (("kind", "layer", "head"), [[[3.0, np.nan, 1.0]]]),
        }
    )
    assert float(mean_over_all_rows(data, "mean")) == (3 * 1 + 9) / 4


def test_a_row_of_exactly_the_norm_reaches_it_and_none_of_a_high_norm_leaves_one():
    """Four equal weights: an l2 norm of one half."""
    zero, lengths = np.zeros(1, int), np.full(1, 4)
    places = RowPlaces(zero, zero, zero, zero, zero, lengths)
    found = attention_summary([(np.full((1, 4), 0.25), lengths)], places, (0.5, 0.25))
    assert found.unreached[0].tolist() == [0.0, 1.0]
    assert found.high.tolist() == [0.0, 1.0]
