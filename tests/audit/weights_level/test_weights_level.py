"""Level weights in blocks of heads, against dense products."""

import dataclasses

import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.audit.weights_level import weights_level as module
from attlas.audit.weights_level.weights_level import (
    DIGEST,
    layer_digest,
    layer_weights,
    weights_level,
)
from attlas.transformers.folding import folded_attention
from attlas.transformers.layer_reader import LayerReader

MODEL = random_transformer(d=6, H=4, k=2)


@pytest.mark.thorough
@pytest.mark.parametrize("heads", [1, 2])
def test_blocks_of_heads_give_what_all_heads_together_give(heads, monkeypatch):
    together = layer_weights(MODEL, 1, 7)
    # one head's factors have 4 x 8 x 6 x 2 bytes
    monkeypatch.setattr(module, "_BLOCK", heads * 4 * 8 * 6 * 2)
    apart = layer_weights(MODEL, 1, 7)
    assert apart.keys() == together.keys()
    assert apart.pop(DIGEST) == together.pop(DIGEST) == layer_digest(MODEL, 1)
    assert layer_digest(MODEL, 0) != layer_digest(MODEL, 1)
    for name, values in together.items():
        # the same sums in other programs: factors of ten numbers, a core of two by two
        np.testing.assert_allclose(apart[name], values, rtol=1e-12, err_msg=name)


@pytest.mark.thorough
def test_spectra_are_those_of_the_dense_products():
    found = weights_level(MODEL, 7)
    for index in range(MODEL.layers):
        folded = folded_attention(MODEL.layer(index).attention, *MODEL.input_norm(index))
        for head, group in enumerate(folded.group):
            product = folded.scale * folded.W_Q[head] @ folded.W_K[group].T
            singular = np.linalg.svd(np.asarray(product), compute_uv=False)
            size = singular[0] * 6 * np.finfo(np.float64).eps
            one = found.isel(layer=index, head=head)
            assert abs(float(one.qk_norm) - singular[0]) <= 20 * size
            assert abs(float(one.qk_nuclear) - singular.sum()) <= 100 * size


def test_a_layer_moves_no_more_than_its_heads_together():
    found = weights_level(MODEL, 7)
    added = found.lipschitz_bound.sum("head")
    for head in range(4):
        one = found.layer_lipschitz_bound.isel(head=head)
        assert np.all(one >= added)
        np.testing.assert_allclose(one, added, rtol=1e-12)


def test_the_feedforward_units_are_not_read():
    def unread(stored):
        raise AssertionError(f"the units of {stored} are read")

    reader = LayerReader(MODEL.stored_block, unread)
    lean = dataclasses.replace(MODEL, read_layer=reader, read_embedding=unread, read_readout=unread)
    found, want = weights_level(lean, 7), weights_level(MODEL, 7)
    for name in want:
        np.testing.assert_array_equal(found[name], want[name])


def test_random_heads_do_not_overlap_beyond_chance_and_equal_ones_do():
    found = layer_weights(MODEL, 0, 7)
    np.testing.assert_allclose(found["read_overlap_null"], 2 / 6, rtol=1e-15)
    # a mean of three overlaps, each of deviation 1 in these units
    assert np.all(np.abs(found["read_overlap_z"]) < 5)
    attention = MODEL.layer(0).attention
    twin = dataclasses.replace(attention, W_O=attention.W_O.at[1:].set(attention.W_O[:1]))
    layer = dataclasses.replace(MODEL.layer(0), attention=twin)
    twins = layer_weights(dataclasses.replace(MODEL, read_layer=lambda _: layer), 0, 7)
    np.testing.assert_allclose(twins["write_overlap"], 1, rtol=1e-12)


def test_heads_as_wide_as_the_model_overlap_in_everything():
    found = layer_weights(random_transformer(layers=1, d=3, k=3), 0, 4)
    assert np.isnan(found["read_overlap_z"]).all()
    np.testing.assert_array_equal(found["read_overlap_null"], 1.0)
    assert np.isfinite(found["qk_norm"]).all()
    assert np.isfinite(found["logit_bound"]).all()
