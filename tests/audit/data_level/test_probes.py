"""Where logits are no bilinear function of two tokens there is no SVM to compare with."""

import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_attention

from attlas.audit.data_level.probes import SmoothHeads, selected_by_heads
from attlas.interop.forward import attention_logits

DRAW = np.random.default_rng(17)


def probed(**kind):
    attention = random_attention(DRAW, **kind)
    nothing, tokens = jnp.zeros((2, 2)), jnp.asarray(DRAW.normal(size=(2, 5, 6)))
    return SmoothHeads(nothing, nothing, nothing[0], attention, tokens)


@pytest.mark.parametrize("kind", [{"rotary": True}, {"norms": True}], ids=str)
def test_rotated_or_normalised_heads_have_no_svm(kind):
    found = selected_by_heads(probed(**kind), 2, 3, DRAW)
    assert len(found) == 6
    assert all(values.shape == (2, 2) and np.isnan(values).all() for values in found.values())


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
