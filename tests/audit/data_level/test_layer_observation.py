"""Observing a layer leaves its output as it is, padding or not."""

import jax.numpy as jnp
import numpy as np
from random_transformer import random_transformer

from attlas.audit.data_level.layer_observation import (
    observe_columns,
    observe_hidden_states,
    observe_layer,
)

DRAW = np.random.default_rng(16)


def test_hidden_rows_and_picked_rows_are_the_models_own():
    model = random_transformer(3, layers=1, causal=False)
    sequences = [DRAW.integers(0, 11, length) for length in (4, 7)]
    tokens = np.zeros((2, 7), np.int32)
    for row, each in enumerate(sequences):
        tokens[row, : each.size] = each
    present = jnp.asarray(np.arange(7)[None] < np.array([[4], [7]]))
    x, picked = model.embed_batch(tokens), jnp.asarray([[0, 3], [0, 6]])
    leaving, seen = observe_layer(model.layer(0), x, present, present, picked)
    other, columns = observe_columns(model.layer(0), x, present)
    residual = observe_hidden_states(leaving, present)
    for row, each in enumerate(sequences):
        own = slice(0, each.size)
        known = np.asarray(model.hidden(each)[1])
        maps = np.asarray(model.attention(each)[0])
        # One layer twice, in sums of a few terms each.
        assert np.allclose(leaving[row, own], known, rtol=1e-11, atol=1e-12)
        assert np.allclose(other[row, own], known, rtol=1e-11, atol=1e-12)
        assert np.allclose(seen.rows[row, ..., own], maps[:, picked[row]], atol=1e-13)
        assert not np.asarray(seen.rows)[row, ..., each.size :].any()
        assert np.allclose(columns[row, :, own], maps.mean(axis=1), atol=1e-13)
        rest = known - known.mean(axis=0)
        assert np.isclose(residual.l2[row], np.linalg.norm(rest) / np.linalg.norm(known))
