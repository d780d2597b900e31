import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.models.lstm_reader import make_lstm_reader


def _last_state(W, U, b, words):
    cell, state = np.zeros(U.shape[1]), np.zeros(U.shape[1])
    for word in words:
        i, f, g, o = np.split(W @ word + U @ state + b, 4)
        i, f, o = (1 / (1 + np.exp(-z)) for z in (i, f, o))
        cell = f * cell + i * np.tanh(g)
        state = o * np.tanh(cell)
    return state


def test_logit_agrees_with_a_plain_computation():
    rng = np.random.default_rng(0)
    model = make_lstm_reader(jax.random.key(0), t=3, cell=4, hidden=(5, 2))
    biases = tuple(jnp.asarray(rng.normal(size=n)) for n in (5, 2, 1))
    model = dataclasses.replace(model, b=jnp.asarray(rng.normal(size=(2, 16))), biases=biases)
    x = rng.normal(size=(3, 6))
    words = x.T[:4]
    W, U, b = (np.asarray(a) for a in (model.W, model.U, model.b))
    ends = [_last_state(W[k], U[k], b[k], words[:: 1 - 2 * k]) for k in range(2)]
    z = np.concatenate(ends)
    for place, (matrix, bias) in enumerate(zip(model.layers, biases, strict=True)):
        z = (np.maximum(z, 0) if place else z) @ np.asarray(matrix) + np.asarray(bias)
    # Four steps and three layers, some hundred roundings of numbers of size one.
    room = 500 * np.finfo(float).eps
    read = jax.jit(lambda *arrays: model(*arrays))
    assert abs(float(read(x, np.arange(6) < 4)) - z[0]) < room
    assert abs(float(read(x[:, :4])) - z[0]) < room


def test_sizes_of_the_paper_and_of_none():
    model = make_lstm_reader(jax.random.key(0), t=100)
    assert model.U.shape == (2, 128, 32)
    assert [matrix.shape for matrix in model.layers] == [(64, 64), (64, 20), (20, 1)]
    with pytest.raises(UserError, match="cell = 0"):
        make_lstm_reader(jax.random.key(0), t=3, cell=0)


def test_the_start_is_xaviers_and_forget_gates_begin_with_one():
    """Deviations sqrt(2 / (m + n)) within five errors of that of a uniform law."""
    model = make_lstm_reader(jax.random.key(3), t=30, cell=20, hidden=(50, 40))
    fans = [(model.W, 80 + 30), (model.U, 80 + 20)]
    fans += [(matrix, sum(matrix.shape)) for matrix in model.layers[:2]]
    for matrix, fan in fans:
        values = np.asarray(matrix) / np.sqrt(2 / fan)
        # A uniform law of variance 1 has fourth moment 9/5.
        assert abs(np.mean(values**2) - 1) < 5 * np.sqrt(0.8 / values.size)
        assert np.sqrt(3) * 0.97 < np.abs(values).max() <= np.sqrt(3) * (1 + 1e-12)
    expected = np.zeros((2, 80))
    expected[:, 20:40] = 1
    np.testing.assert_array_equal(model.b, expected)
    assert [bias.tolist() for bias in model.biases] == [[0.0] * 50, [0.0] * 40, [0.0]]
