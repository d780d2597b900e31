"""Luong's attention over an LSTM: what padding, one word and equal scores do to it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from liu2021analyzing.library.models.luong_reader import make_luong_reader


@pytest.fixture
def model():
    return make_luong_reader(jax.random.key(1), t=3, cell=2, hidden=(5,))


@pytest.fixture
def x():
    return jax.random.normal(jax.random.key(2), (3, 6))


def test_words_after_the_text_change_nothing(model, x):
    seen = jnp.arange(6) < 4
    other = x.at[:, 4:].set(7.0)
    assert np.allclose(model(x, seen), model(other, seen), rtol=1e-6)
    assert np.allclose(model(x[:, :4]), model(x, seen), rtol=1e-5)
    assert model.attention(x, seen)[0, 4:].tolist() == [0.0, 0.0]


def test_without_a_score_all_words_have_equal_weights(model, x):
    flat = eqx.tree_at(lambda m: m.W_a, model, jnp.zeros_like(model.W_a))
    assert np.allclose(flat.attention(x), 1 / 6)


def test_the_context_is_read_beside_the_last_states(model, x):
    h, _ = model.lstm.states(x)
    alone = eqx.tree_at(lambda m: m.W_c, model, model.W_c.at[:, :4].set(0))
    assert np.allclose(alone(x), model.lstm.logit(jnp.tanh(model.W_c[:, 4:] @ h)), rtol=1e-6)
    assert not np.allclose(alone(x), model(x))


def test_weights_follow_the_score_of_the_last_states(model, x):
    h, states = model.lstm.states(x)
    powers = np.exp(np.asarray(states @ model.W_a.T @ h, float))
    assert np.allclose(model.attention(x)[0], powers / powers.sum(), rtol=1e-5)
