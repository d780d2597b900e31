"""Attention SVMs live between tokens or, where no matrix is there, between queries and keys."""

import jax.numpy as jnp
import numpy as np
import pytest
from random_checkpoints import random_checkpoint
from random_transformer import random_attention

from attlas.audit.audit import audit
from attlas.audit.data_level.normalised_tokens import normalised_tokens
from attlas.audit.data_level.probes import (
    QUERY_KEY_SPACE,
    TOKEN_SPACE,
    SmoothHeads,
    head_tokens,
    selected_by_heads,
    svm_space,
)
from attlas.audit.data_level.selected_tokens import HeadTokens, random_selection, selected_tokens
from attlas.transformers import load_model
from attlas.transformers.folding import folded_attention
from attlas.transformers.forward import attention_input, attention_logits, placed, projections

DRAW = np.random.default_rng(17)
ROWS = np.arange(1, 8)


def probed(**kind):
    attention = random_attention(DRAW, **kind)
    nothing, tokens = jnp.zeros((2, 2)), jnp.asarray(DRAW.normal(size=(2, 5, 6)))
    return SmoothHeads(nothing, nothing, nothing[0], attention, tokens)


def test_the_margin_reached_is_that_of_the_models_logits():
    """Its sign is that of the smallest gap of a row's two largest logits, and the head's own."""
    layer = probed(causal=False)
    found = selected_by_heads(layer, 1, 5, DRAW)
    assert found["svm_margin"].shape == (1, 2)
    logits = np.sort(np.asarray(attention_logits(layer.folded, layer.tokens[0])), axis=-1)
    gap = (logits[..., -1] - logits[..., -2]).min(axis=-1)
    # All rows and tokens are taken, and they span what the head reads: 5 of 6 dimensions.
    tokens = np.asarray(layer.tokens[0])
    queries = np.concatenate([tokens, np.ones((5, 1))], axis=1)
    group = np.array(layer.folded.group)
    for head in range(2):
        a = layer.folded
        right = np.concatenate([a.W_Q[head].T, a.b_Q[head][:, None]], axis=1)
        W = a.scale * np.asarray(a.W_K[group[head]]) @ right
        inside = [np.linalg.pinv(rows) @ rows for rows in (tokens, queries)]
        size = np.linalg.norm(inside[0] @ W @ inside[1])
        assert np.isclose(found["svm_reached"][0, head], gap[head] / size, rtol=1e-9)


@pytest.mark.parametrize("kind", [{"rotary": True}, {"norms": True}], ids=str)
def test_rotated_or_normalised_heads_select_between_queries_and_keys(kind):
    layer = probed(**kind)
    assert svm_space(layer.folded) == QUERY_KEY_SPACE
    found = selected_by_heads(layer, 2, 5, DRAW)
    # All rows are taken: queries and keys span the head's 3 dimensions, where |I| = 3^(1/2).
    gaps = np.full((2, 2), np.inf)
    for s, h, i in np.ndindex(2, 2, 4):
        seen = attention_logits(layer.folded, layer.tokens[s])[h, i + 1, : i + 2]
        last = np.sort(np.asarray(seen))[-2:]
        gaps[s, h] = min(gaps[s, h], last[1] - last[0])
    np.testing.assert_allclose(
        found["svm_reached"], gaps / (layer.folded.scale * 3**0.5), rtol=1e-9
    )
    assert np.all(found["svm_reached"] <= found["svm_margin"] * (1 + 1e-7))
    assert np.all((found["svm_cosine"] > 0) & (found["svm_cosine"] <= 1))
    assert np.all(found["svm_reached_null"] < found["svm_margin_null"] + 1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gpt_neox", "gpt2"])
def test_the_spaces_hold_the_models_own_logits(architecture):
    config, tensors = random_checkpoint(architecture)
    model, words = load_model(tensors, config=config, dtype="float64"), np.arange(8)
    for index in range(model.layers):
        layer = model.layer(index)
        norm, projection = model.input_norm(index, layer)
        read = attention_input(layer, model.hidden(words)[index])
        folded = folded_attention(layer.attention, norm, projection)
        tokens = np.asarray(normalised_tokens(read, norm, projection))
        one = head_tokens(folded, tokens, ROWS)
        assert svm_space(folded) == (TOKEN_SPACE if architecture == "gpt2" else QUERY_KEY_SPACE)
        W = np.stack([left @ right for left, right in one.matrices])
        found = one.queries @ np.swapaxes(W, 1, 2) @ np.swapaxes(one.tokens, -1, -2)
        known = np.asarray(attention_logits(layer.attention, read))[:, ROWS]
        # a softmax does not see what it adds to a row: the bias of keys, which tokens leave out
        found, known = (a - a[..., :1] for a in (found, known))
        np.testing.assert_allclose(found, known, rtol=0, atol=1e-10)


@pytest.mark.thorough
def test_what_queries_and_keys_can_select_tokens_can():
    """M of size k x k is the matrix W_K M [W_Q', b_Q] between tokens; the converse is not so."""
    attention = random_attention(DRAW, d=6, H=2, k=2, causal=False)
    rows, group = np.arange(6), np.array(attention.group)
    seen_infeasible = seen_feasible = 0
    for _ in range(4):
        tokens = DRAW.normal(size=(6, 6))
        between = head_tokens(attention, tokens, rows)
        raw = projections(attention, jnp.asarray(tokens))
        queries, keys = (np.asarray(a) for a in placed(attention, raw.queries, raw.keys))
        own = [(attention.scale * np.eye(2), np.eye(2))] * 2
        within = HeadTokens(keys, queries, own, between.seen)
        chosen = random_selection(between.seen, 2, DRAW)
        for selection in (None, chosen):
            wide, narrow = (selected_tokens(each, selection) for each in (between, within))
            np.testing.assert_array_equal(wide.selection, narrow.selection)
            # the smallest gap of the same logits, over the size of either matrix
            np.testing.assert_array_equal(wide.reached > 0, narrow.reached > 0)
            for h in range(2):
                W_Q = np.concatenate([attention.W_Q[h], attention.b_Q[h][None]])
                sizes = [np.linalg.norm(W, 2) for W in (attention.W_K[group[h]], W_Q)]
                least = narrow.margin[h] / (sizes[0] * sizes[1])
                assert wide.margin[h] >= least * (1 - 1e-7)
            seen_feasible += np.sum(narrow.margin > 0)
            seen_infeasible += np.sum((narrow.margin == 0) & (wide.margin > 0))
        assert np.all(selected_tokens(within).reached > 0)
    assert seen_feasible >= 8  # a head's own selection always is
    assert seen_infeasible > 0


@pytest.mark.thorough
def test_a_trained_model_with_rotated_heads_has_every_number(data_dir):
    draw = np.random.default_rng(0)
    found = audit(data_dir / "stories260k", [draw.integers(3, 500, 24) for _ in range(2)])
    assert found.protocol["svm_space"] == QUERY_KEY_SPACE
    assert any("in the space of queries and keys" in note for note in found.notes)
    for name in ("margin", "reached", "cosine", "margin_null", "reached_null"):
        assert np.isfinite(found.heads[f"svm_{name}"]).all(), name
    assert np.all(found.heads.svm_reached > 0)
    assert np.all(found.heads.svm_reached <= found.heads.svm_margin)
