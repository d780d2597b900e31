"""The network of characters: its averages by hand, and heads that look at one place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas_bounds.library.models.character_attention import make_character_attention


@pytest.mark.thorough
def test_logits_by_hand():
    model = make_character_attention(jax.random.key(1), 5, 3, 2, 4, 6)
    before = np.array([4, 0, 2, 2])
    x = np.asarray(model.letters)[before]
    hidden = np.asarray(model.bias).copy()
    for h in range(2):
        score = (
            np.array([np.asarray(model.keys)[h] @ each for each in x]) + np.asarray(model.ages)[h]
        )
        weight = np.exp(score) / np.exp(score).sum()
        hidden += (weight @ x) @ np.asarray(model.up)[h]
    expected = np.maximum(hidden, 0) @ np.asarray(model.down) + np.asarray(model.readout)
    np.testing.assert_allclose(model(jnp.asarray(before, jnp.int8)), expected, rtol=1e-5)


def test_a_head_of_large_age_sees_one_place():
    model = make_character_attention(jax.random.key(0), 5, 3, 1, 4, 6)
    model = jax.tree.map(lambda a: a, model)
    sharp = jax.tree.map(lambda a: 1e3 * a if a.shape == (1, 4) else a, model)
    one, other = (sharp(jnp.array([3, *rest], jnp.int8)) for rest in ((0, 1, 2), (4, 4, 4)))
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_more_heads_than_places_are_refused():
    with pytest.raises(UserError):
        make_character_attention(jax.random.key(0), 5, 3, 5, 4, 6)
