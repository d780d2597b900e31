"""Whole audits of small models: every statistic once more in NumPy, and uniform attention."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.spatial.distance
from random_transformer import random_transformer

from attlas.audit.data_level.audit_data import audit_data
from attlas.audit.data_level.data_pass import AuditedData
from attlas.audit.data_level.data_quantities import DEPTH_QUANTITIES, HEAD_QUANTITIES, SINKS
from attlas.audit.data_level.data_settings import DataSettings
from attlas.core.errors import UserError

pytestmark = pytest.mark.thorough  # an audit of level data first

SETTINGS = DataSettings(special=(3,), sink_tokens=8, probes=2, local_steps=100, draws=200)
DRAW = np.random.default_rng(11)
SEQUENCES = [DRAW.integers(0, 11, length) for length in (5, 12, 9, 20)]


@pytest.fixture(scope="module")
def causal():
    model = random_transformer(1)
    return model, audit_data(model, SEQUENCES, SETTINGS)


NAMED = (
    *("entropy", "entropy_low", "positional_share", "distant_confidence", "sink_natural"),
    *("sink_shuffled", "nearest_distance", "nearest_distance_high", "nearest_distance_null"),
)
"""What a finding is chosen by."""


@pytest.mark.parametrize("pair_heads", [300, 1])
def test_what_chooses_findings_has_no_part_of_the_sequences_that_test_them(pair_heads):
    model = random_transformer(1)
    settings = SETTINGS._replace(pair_heads=pair_heads, sink_tokens=5)
    data = audit_data(model, SEQUENCES, settings, held_out=[1, 3])
    # Sequences of one length are shuffled alike in both audits, so that only the others differ.
    alone = audit_data(model, [SEQUENCES[0], SEQUENCES[2]], settings)
    for name in set(NAMED) - {"sink_shuffled"}:
        np.testing.assert_allclose(data.choosing[name], alone.heads[name], rtol=1e-9, err_msg=name)
    for name in ("entropy", "sink_natural", "sink_shuffled", "nearest_distance"):
        assert not np.allclose(data.choosing[name], data.heads[name]), name
    whole = audit_data(model, SEQUENCES, settings)
    for name in NAMED:
        np.testing.assert_array_equal(data.heads[name], whole.heads[name], err_msg=name)
        np.testing.assert_array_equal(whole.choosing[name], whole.heads[name], err_msg=name)


def test_sequences_that_are_all_held_out_choose_nothing():
    data = audit_data(random_transformer(1), SEQUENCES, SETTINGS, held_out=[1, 2, 3])
    assert np.isnan(data.choosing.sink_natural).all()  # the first one is shorter than the protocol
    assert np.isfinite(data.choosing.entropy).all()


def test_heads_whose_block_of_the_output_projection_is_zero_are_told():
    model = random_transformer(1)
    read = model.read_layer
    W_O = read(1).attention.W_O.at[0].set(0.0)
    pruned = eqx.tree_at(lambda layer: layer.attention.W_O, read(1), W_O)
    model = dataclasses.replace(model, read_layer=lambda k: pruned if k == 1 else read(k))
    assert audit_data(model, SEQUENCES, SETTINGS).silent == ((1, 0),)


def by_hand(maps, tokens):
    """Some statistics of one sequence's maps [L, H, T, T], each [L, H]."""
    T = tokens.size
    tops = -np.sort(-maps, axis=-1)
    logs = np.log(np.where(maps > 0, maps, 1))
    lower = np.diagonal(maps, -1, 2, 3)
    return {
        "entropy": -(maps * logs).sum(-1).mean(-1),
        "participation": (1 / (maps**2).sum(-1)).mean(-1),
        "confidence": tops[..., 0].mean(-1),
        "top_4": tops[..., :4].sum(-1).mean(-1),
        "previous_mass": lower.sum(-1) / T,
        "first_mass": maps[..., 0].mean(-1),
        "special_mass": maps[..., tokens == 3].sum(-1).mean(-1),
    }


def test_statistics_agree_with_the_models_own_maps(causal):
    model, found = causal
    maps = [np.asarray(model.attention(each)) for each in SEQUENCES]
    known = [by_hand(*pair) for pair in zip(maps, SEQUENCES, strict=True)]
    for name in known[0]:
        each = np.stack([one[name] for one in known])
        # Two float64 forward passes of two layers, some dozens of terms each.
        assert np.allclose(found.heads[name], each.mean(axis=0), rtol=1e-9, atol=1e-12), name
        # A resampled mean of sequences lies between the sequences.
        assert np.all(found.heads[f"{name}_low"] >= each.min(axis=0) - 1e-12)
        assert np.all(found.heads[f"{name}_high"] <= each.max(axis=0) + 1e-12)


def test_sinks_and_their_nulls(causal):
    model, found = causal
    long = [each[:8] for each in SEQUENCES if each.size >= 8]
    maps = np.stack([np.asarray(model.attention(each)) for each in long])
    assert np.allclose(found.heads.sink_natural, maps[..., 0].mean(axis=(0, -1)), rtol=1e-9)
    harmonic = np.sum(1 / np.arange(1, 9)) / 8
    # a floor of the map's norm, which is measured here
    norms = np.linalg.norm(maps, 2, axis=(-2, -1)).mean(axis=0)
    assert np.all(found.heads.sink_gain <= norms)
    assert np.allclose(found.heads.sink_gain, 8**0.5 * found.heads.sink_natural)
    assert np.allclose(found.heads.sink_gain_null, 8**0.5 * harmonic)
    for text in SINKS:
        assert np.allclose(found.heads[f"sink_{text}_null"], harmonic)
    sizes = {"sink_tokens": 8, "sink_sequences": 3, "sink_threshold": 0.3, "draws": 200}
    assert sizes.items() <= found.protocol.items()
    assert found.sinks["sink_share_natural"] == np.mean(maps[..., 0].mean(axis=-1) > 0.3)
    assert found.sinks["sink_share_null"] == (harmonic > 0.3)
    ends = [found.sinks[f"sink_share_natural{end}"] for end in ("_low", "", "_high")]
    assert ends == sorted(ends)


def test_depths_agree_with_the_models_own_rows(causal):
    model, found = causal
    residual = []
    for tokens in SEQUENCES:
        hidden = np.asarray(model.hidden(tokens))
        rest = hidden - hidden.mean(axis=1, keepdims=True)
        sizes = [np.linalg.norm(each, axis=(1, 2)) for each in (rest, hidden)]
        residual.append(sizes[0] / sizes[1])
    assert np.allclose(found.depths.residual_l2, np.mean(residual, axis=0), rtol=1e-9)
    inside = slice(0, model.layers)
    assert np.all(found.depths.largest_token[inside] <= found.depths.certified_token[inside])


def test_bounds_hold_and_attacks_reach_something(causal):
    heads = causal[1].heads
    assert np.all(heads.entropy_floor <= heads.entropy)
    assert np.all((heads.logit_share > 0) & (heads.logit_share <= 1))
    for where in ("local", "ball"):
        assert np.all((heads[f"{where}_ratio"] > 0) & (heads[f"{where}_ratio"] <= 1))
    # the ladder: every text, tokens as long as these, these tokens, reached
    assert np.all(heads.observed_certificate <= heads.ball_certificate)
    assert np.all(heads.local_certificate <= heads.observed_certificate * 1.002)
    assert np.all(heads.local_attack <= heads.observed_certificate)
    # The head's own matrix selects its tokens, but no better than the best matrix does.
    assert np.all(heads.svm_reached > 0)
    assert np.all(heads.svm_reached <= heads.svm_margin)
    assert np.all(heads.svm_reached_null < 0)


def test_distances_agree_with_scipy(causal):
    model, found = causal
    apart = []
    for tokens in SEQUENCES:
        rows = ((np.arange(8) + 0.5) / 8 * tokens.size).astype(int)
        flat = np.asarray(model.attention(tokens)).reshape(-1, tokens.size, tokens.size)[:, rows]
        pair = scipy.spatial.distance.jensenshannon(flat[0], flat[3], base=2, axis=1)
        apart.append(pair.mean())
    assert np.isclose(found.pairs.distance[0, 3], np.mean(apart), atol=1e-6)
    heads = found.heads
    at = (int(heads.nearest_layer[0, 0]), int(heads.nearest_head[0, 0]))
    assert heads.nearest_distance[0, 0] == found.pairs.distance[0, 2 * at[0] + at[1]]


def test_uniform_attention_is_its_own_null_and_attains_its_certificate():
    model = random_transformer(2, causal=False, norm_placement="post-norm")
    still = [
        eqx.tree_at(lambda x: (x.attention.W_Q, x.attention.b_Q), layer, replace_fn=jnp.zeros_like)
        for layer in map(model.layer, range(model.layers))
    ]
    found = audit_data(
        dataclasses.replace(model, read_layer=still.__getitem__), SEQUENCES, SETTINGS
    )
    for quantity in HEAD_QUANTITIES:
        nothing = quantity.name.startswith(("svm", "nearest"))
        if quantity.null and not nothing:
            values = found.heads[quantity.name], found.heads[quantity.null]
            assert np.allclose(*values, rtol=1e-12, atol=1e-15), quantity.name
    # k^{1/512} for norms by squarings, and power iteration's last digits.
    assert np.allclose(found.heads.local_ratio, 1, atol=2e-3)
    assert np.allclose(found.heads.entropy_floor, found.heads.entropy)
    assert np.all(found.heads.nearest_distance < 1e-7)
    assert np.all(found.heads.largest_logit == 0)
    assert np.isnan(found.heads.logit_share).all()
    assert np.allclose(found.heads.sink_natural, 1 / 8)


def test_without_a_norm_tokens_that_were_read_still_have_a_certificate():
    model = random_transformer(2, causal=False, norm_placement="post-norm", layers=1)
    bare = dataclasses.replace(model.embedding, norm=None)
    model = dataclasses.replace(model, read_embedding=lambda: bare)
    heads = audit_data(model, SEQUENCES, SETTINGS).heads
    assert np.isinf(heads.ball_certificate).all()
    assert np.isfinite(heads.observed_certificate).all()
    assert np.all(heads.local_attack <= heads.observed_certificate)
    assert np.all(heads.ball_attack <= heads.observed_certificate)


def test_every_quantity_is_there_and_described(causal):
    found = causal[1]
    assert isinstance(found, AuditedData)
    for table, quantities in ((found.heads, HEAD_QUANTITIES), (found.depths, DEPTH_QUANTITIES)):
        assert len({quantity.name for quantity in quantities}) == len(quantities)
        for quantity in quantities:
            assert table[quantity.name].attrs["title"]
            assert not quantity.null or quantity.null in table


def test_bad_input_is_one_line():
    model = random_transformer(1)
    with pytest.raises(UserError, match="no sequence"):
        audit_data(model, [])
    with pytest.raises(UserError, match="sequence 1: token 99 is outside"):
        audit_data(model, [[1, 2], [99]])
    with pytest.raises(UserError, match="pair_rows = 0: give at least 1"):
        audit_data(model, [[1, 2]], DataSettings(pair_rows=0))
