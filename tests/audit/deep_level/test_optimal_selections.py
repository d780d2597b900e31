"""Locally optimal selections: scores against finite differences, shares against a loop."""

import dataclasses

import jax
import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.audit.data_level.normalised_tokens import normalised_tokens
from attlas.audit.data_level.probes import head_tokens
from attlas.audit.data_level.selected_tokens import selected_tokens
from attlas.audit.deep_level.optimal_selections import optimal_selections
from attlas.audit.sequence_loss import judged_batch
from attlas.transformers.canonical import Readout
from attlas.transformers.folding import folded_attention
from attlas.transformers.forward import (
    attended,
    attention_input,
    attention_weights,
    complete_layer,
    read_out,
)

DRAW = np.random.default_rng(5)
TOKENS = DRAW.integers(11, size=5)
MODEL = random_transformer(2, causal=True)
TURNED = random_transformer(3, rotary=True, norms=True)


def loss_with(model, index, head, i, j, step):
    """The loss of the next word when a step more of row i's weight lies on token j."""
    x = model.embed(TOKENS)
    for place in range(model.layers):
        layer = model.layer(place)
        read = attention_input(layer, x)
        weights = attention_weights(layer.attention, read)
        if place == index:
            weights = weights.at[head, i, j].add(step)
        x = complete_layer(layer, x, attended(layer.attention, weights, read))
    logs = np.asarray(jax.nn.log_softmax(read_out(model.readout, x), axis=-1))
    return -np.mean(logs[np.arange(TOKENS.size - 1), TOKENS[1:]])


@pytest.mark.thorough
@pytest.mark.parametrize("model", [MODEL, TURNED], ids=["tokens", "queries and keys"])
def test_shares_are_those_of_scores_by_finite_differences(model):
    found = optimal_selections(model, judged_batch(model, [TOKENS]), rows=10)
    chosen = np.arange(1, 4)  # the first row sees one token, the last has no next word
    assert found.rows == 3
    assert found.share.shape == found.null.shape == (1, 2, 2)
    x = model.embed(TOKENS)
    for index in range(2):
        layer = model.layer(index)
        norm, projection = model.input_norm(index, layer)
        read = attention_input(layer, x)
        folded = folded_attention(layer.attention, norm, projection)
        tokens = np.asarray(normalised_tokens(read, norm, projection))
        svm = selected_tokens(head_tokens(folded, tokens, chosen))
        for head in range(2):
            good, share = [], []
            for place, i in enumerate(chosen):
                score = [
                    loss_with(model, index, head, i, j, -1e-5)
                    - loss_with(model, index, head, i, j, 1e-5)
                    for j in range(TOKENS.size)
                ]
                margins = svm.margins[head, place]
                support = [j for j in range(i + 1) if 0 < margins[j] <= 1 + 1e-6]
                own = score[svm.selection[head, place]]
                good.append(all(own > score[j] for j in support))
                share.append(1 / (1 + len(support)))
            np.testing.assert_allclose(found.share[0, index, head], np.mean(good))
            np.testing.assert_allclose(found.null[0, index, head], np.mean(share))
        own = attended(layer.attention, attention_weights(layer.attention, read), read)
        x = complete_layer(layer, x, own)


def test_there_is_none_without_a_slope():
    model = dataclasses.replace(MODEL, read_readout=Readout)
    assert optimal_selections(model, judged_batch(model, [TOKENS])) is None
