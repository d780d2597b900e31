import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.models.recurrent_attention import make_recurrent_attention

P = 5


def _reference(model, x, words, dot):
    """The recursion of appendix B, word by word."""
    W_s, W_c = np.asarray(model.W_s), np.asarray(model.W_c)
    state, context, rows = np.zeros(W_s.shape[0]), np.zeros(x.shape[0]), []
    for _ in range(model.steps):
        scores = []
        for j in range(words):
            if dot:
                scores.append(state @ x[:, j])
            else:
                s = model.score
                inner = np.asarray(s.V_s) @ state + np.asarray(s.V_x) @ x[:, j]
                scores.append(np.asarray(s.v) @ np.tanh(inner))
        weights = np.exp(scores) / np.sum(np.exp(scores))
        state = np.tanh(W_s @ state + W_c @ context + np.asarray(model.b))
        context = sum(w * x[:, j] for j, w in enumerate(weights))
        rows.append(np.concatenate([weights, np.zeros(P - words)]))
    hidden = np.maximum(context @ np.asarray(model.network.W1), 0)
    return np.array(rows), hidden @ np.asarray(model.network.w2)


@pytest.mark.parametrize("score_units", [None, 4])
def test_output_and_weights_agree_with_a_plain_computation(score_units):
    r = 3 if score_units is None else 2
    rng = np.random.default_rng(0)
    model = make_recurrent_attention(jax.random.key(0), 3, 6, 4, r, score_units)
    model = dataclasses.replace(model, b=jnp.asarray(rng.normal(size=r)))
    x = rng.normal(size=(3, P))
    mask = jnp.arange(P) < 4
    rows, output = _reference(model, x, 4, score_units is None)
    # Four steps of a few dozen roundings of numbers of size one.
    room = 500 * np.finfo(float).eps
    assert np.max(np.abs(np.asarray(model.attention(jnp.asarray(x), mask)) - rows)) < room
    assert abs(float(model(jnp.asarray(x), mask)) - output) < room
    assert np.ptp(rows[2, :4]) > 0


def test_all_words_are_seen_without_a_mask():
    model = make_recurrent_attention(jax.random.key(1), 3, 2, 3)
    x = jnp.asarray(np.random.default_rng(1).normal(size=(3, P)))
    assert float(model(x)) == float(model(x, jnp.ones(P, bool)))


@pytest.mark.parametrize(
    ("change", "said"),
    [({"steps": 0}, "steps = 0"), ({"state": 2}, "dot product of state 2 and words 3")],
)
def test_bad_sizes_are_refused(change, said):
    with pytest.raises(UserError, match=said):
        make_recurrent_attention(jax.random.key(0), **({"t": 3, "d": 2, "steps": 2} | change))


def test_the_score_starts_within_xaviers_limits():
    """sqrt(6 / (m + n)) bounds each matrix of sizes m and n, and many draws come near it."""
    keys = jax.random.split(jax.random.key(7), 60)
    make = jax.jit(jax.vmap(lambda key: make_recurrent_attention(key, 2, 4, 2, 5, 3)))
    model = make(keys)
    sizes = ((model.W_s, 10), (model.W_c, 7), (model.score.V_s, 8), (model.score.V_x, 5))
    for matrix, size in (*sizes, (model.score.v, 4)):
        limit = np.sqrt(6 / size)
        assert 0.95 * limit < float(abs(matrix).max()) <= limit


def test_matrices_of_one_shape_are_drawn_apart():
    model = make_recurrent_attention(jax.random.key(3), 3, 2, 2, 3, 3)
    score = model.score
    entries = [float(a[0, 0]) for a in (model.W_s, model.W_c, score.V_s, score.V_x)]
    assert len(set(entries)) == 4
