"""A changed map is one of the model's own kind: its rows sum to one and stay under the mask."""

import jax.numpy as jnp
import numpy as np
from random_transformer import random_attention

from attlas.audit.deep_level.changed_maps import LayerChange, changed_weights
from attlas.transformers.forward import attention_weights

DRAW = np.random.default_rng(0)
X = jnp.asarray(DRAW.normal(size=(6, 6)))
PRESENT = jnp.asarray([True] * 5 + [False])
NOBODY = jnp.zeros(3, bool)


def test_maps_stay_maps_and_only_those_that_hide_change():
    attention = random_attention(DRAW, H=3, rotary=False, window=3)
    before = attention_weights(attention, X, PRESENT)
    hides = jnp.asarray([False, True, False])
    change = LayerChange(hides, jnp.asarray(0), jnp.arange(3))
    after = changed_weights(attention, X, PRESENT, change)
    np.testing.assert_array_equal(after[jnp.asarray([0, 2])], before[jnp.asarray([0, 2])])
    np.testing.assert_allclose(after.sum(axis=-1), 1, rtol=1e-6)
    assert np.all(np.asarray(after)[np.asarray(before) == 0] == 0)
    assert np.all(np.asarray(after)[1, 1:5, 0] == 0)
    assert after[1, 0, 0] == 1  # the first row sees nothing else


def test_a_map_is_shared_as_it_is():
    attention = random_attention(DRAW, H=3)
    change = LayerChange(NOBODY, jnp.asarray(0), jnp.asarray([0, 0, 2]))
    before = attention_weights(attention, X, PRESENT)
    after = changed_weights(attention, X, PRESENT, change)
    np.testing.assert_array_equal(after, before[jnp.asarray([0, 0, 2])])


def test_rounded_logits_change_weights_by_their_rounding():
    attention = random_attention(DRAW, H=3)
    change = LayerChange(NOBODY, jnp.asarray(0), jnp.arange(3), "bfloat16")
    ratio = changed_weights(attention, X, PRESENT, change) / attention_weights(
        attention, X, PRESENT
    )
    moved = np.abs(np.log(np.asarray(ratio)[np.isfinite(ratio)]))
    assert 0 < moved.max() < 0.5
