"""Level weights: spectra against dense products, overlaps, and what is described."""

import dataclasses

import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.audit.weights_level.weights_level import (
    WEIGHT_QUANTITIES,
    layer_weights,
    weights_level,
)
from attlas.interop.folding import folded_attention

MODEL = random_transformer(4, H=4, norms=False)


@pytest.fixture(scope="module")
def found():
    told = []
    table = weights_level(MODEL, 8, lambda done, all_: told.append((done, all_)))
    assert told == [(1, 2), (2, 2)]
    return table


def test_every_quantity_is_there_with_its_description(found):
    assert {quantity.name for quantity in WEIGHT_QUANTITIES} <= set(found.data_vars)
    assert found.sizes == {"layer": 2, "head": 4}
    assert found.qk_norm.attrs["standing"] == "checked on instances"
    assert found.logit_bound.attrs["standing"] == "proved"


def test_spectra_are_those_of_the_folded_products(found):
    for layer in range(2):
        folded = folded_attention(MODEL.layer(layer).attention, MODEL.input_norm(layer)[0])
        raw = MODEL.layer(layer).attention
        for head, group in enumerate(folded.group):
            at = {"layer": layer, "head": head}
            product = folded.scale * np.asarray(folded.W_Q[head]) @ np.asarray(folded.W_K[group]).T
            values = np.linalg.svd(product, compute_uv=False)
            assert np.isclose(found.qk_norm.sel(at), values[0], rtol=1e-10)
            assert np.isclose(found.qk_nuclear.sel(at), values.sum(), rtol=1e-10)
            assert np.isclose(found.qk_stable_rank.sel(at), (values**2).sum() / values[0] ** 2)
            written = np.asarray(folded.W_V[group]) @ np.asarray(folded.W_O[head])
            assert np.isclose(found.ov_norm.sel(at), np.linalg.norm(written, 2), rtol=1e-10)
            eigen = np.linalg.eigvals(written)
            positivity = eigen.sum().real / np.abs(eigen).sum()
            assert np.isclose(found.ov_positivity.sel(at), positivity, rtol=1e-6, atol=1e-8)
            unfolded = np.asarray(raw.W_V[group]) @ np.asarray(raw.W_O[head])
            assert np.isclose(found.ov_norm_raw.sel(at), np.linalg.norm(unfolded, 2), rtol=1e-10)


def test_random_heads_do_not_overlap_beyond_chance(found):
    np.testing.assert_array_equal(found.read_overlap_null, 0.5)
    assert np.all(np.abs(found.read_overlap_z) < 5)
    attention = MODEL.layer(0).attention
    doubled = dataclasses.replace(attention, W_O=attention.W_O.at[1].set(attention.W_O[0]))
    layer = dataclasses.replace(MODEL.layer(0), attention=doubled)
    twins = layer_weights(dataclasses.replace(MODEL, read_layer=lambda _: layer), 0, 8)
    assert twins["write_overlap"][0] > found.write_overlap.values[0, 0]


def test_heads_as_wide_as_the_model_overlap_in_everything():
    wide = random_transformer(4, layers=1, d=3, k=3)
    values = layer_weights(wide, 0, 4)
    assert np.isnan(values["read_overlap_z"]).all()
    np.testing.assert_array_equal(values["read_overlap_null"], 1.0)
    assert np.isfinite(values["qk_norm"]).all()
    assert np.isfinite(values["logit_bound"]).all()


def test_kept_layers_are_not_computed_again():
    kept = []

    def keep(index, compute):
        kept.append(index)
        return compute() if len(kept) == 1 else first[0]

    first = [layer_weights(MODEL, 0, 8)]
    table = weights_level(MODEL, 8, keep=keep)
    assert kept == [0, 1]
    np.testing.assert_array_equal(table.qk_norm[0], table.qk_norm[1])
