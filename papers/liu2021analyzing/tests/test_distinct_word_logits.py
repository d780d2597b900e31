import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.token_sequences import TokenSequences
from liu2021analyzing.library.data.distinct_words import distinct_words
from liu2021analyzing.library.models.distinct_word_logits import distinct_word_logits
from liu2021analyzing.library.models.self_attention_mlp import make_self_attention_mlp
from liu2021analyzing.library.models.two_layer import make_two_layer
from liu2021analyzing.library.models.word_classifier import make_word_classifier

P, V, T = 7, 9, 3


def _texts():
    draw = np.random.default_rng(0)
    tokens = draw.integers(1, V, (4, P))
    mask = np.arange(P)[None, :] < np.array([7, 3, 1, 6])[:, None]
    return TokenSequences(np.where(mask, tokens, 0), mask, np.zeros(4))


def _model(kind):
    """Biases are not zero after training: the test draws some."""
    plain, draw = _start(kind), np.random.default_rng(3)
    b1, b2 = jnp.asarray(draw.normal(size=5)), jnp.asarray(draw.normal())
    return dataclasses.replace(plain, network=dataclasses.replace(plain.network, b1=b1, b2=b2))


def _start(kind):
    key = jax.random.key(2)
    if kind == "baseline":
        return make_word_classifier(key, V, T, make_two_layer(key, P * T, 5, biases=True))
    options = {"temperature": 0.2} if kind == "cold" else {"equal_weights": kind == "equal"}
    network = make_self_attention_mlp(key, P, T, d_q=2, d_v=4, d=5, biases=True, **options)
    return make_word_classifier(key, V, T, network)


@pytest.mark.parametrize("kind", ["baseline", "attention", "cold", "equal"])
def test_logits_and_gradients_are_those_of_the_plain_model(kind):
    model, data = _model(kind), _texts()
    short = distinct_words(data, np.float64)
    table = jnp.asarray(np.unique(np.concatenate([[0, 0], np.ravel(short.words)])))
    tokens, mask = jnp.asarray(data.tokens), jnp.asarray(data.mask)
    arrays = [jnp.asarray(a) for a in (short.words, short.counts, short.places)]

    def plain(model):
        logits = jax.vmap(model)(tokens, mask)
        return jnp.sum(jnp.sin(logits)), logits

    def fast(model):
        logits = distinct_word_logits(model, table, *arrays)
        return jnp.sum(jnp.sin(logits)), logits

    slope, logits = jax.jit(jax.grad(plain, has_aux=True))(model)
    found, close = jax.jit(jax.grad(fast, has_aux=True))(model)
    # About p t = 21 products after a softmax of logits of size one, a few hundred roundings.
    room = 500 * np.finfo(float).eps
    assert np.max(np.abs(np.asarray(close - logits))) < room
    for one, other in zip(jax.tree.leaves(slope), jax.tree.leaves(found), strict=True):
        assert np.max(np.abs(np.asarray(one - other))) < room


def test_logits_of_any_size_have_weights():
    """Attention logits of thousands either way, whose exponentials no floating number holds.

    The first text fills all its slots but one, whose logit zero is the highest by far.
    """
    model, data = _model("cold"), _texts()
    model = dataclasses.replace(model, embedding=60 * model.embedding)
    short = distinct_words(data, np.float64)
    table = jnp.arange(V)
    arrays = [jnp.asarray(a) for a in (short.words, short.counts, short.places)]

    def summed(model):
        logits = distinct_word_logits(model, table, *arrays)
        return jnp.sum(logits), logits

    slope, found = jax.jit(jax.grad(summed, has_aux=True))(model)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slope))
    plain = jax.jit(jax.vmap(lambda *text: model(*text)))(data.tokens, data.mask)
    x = np.asarray(model.embedding)[1:]
    assert np.max(x @ np.asarray(model.network.W_K.T @ model.network.W_Q) @ x.T) > 1e3
    np.testing.assert_allclose(found, plain, rtol=1e-8)


def test_networks_that_see_the_order_are_refused():
    model = make_word_classifier(jax.random.key(0), V, T, lambda x, mask: x[0, 0])
    ones = jnp.ones((1, 2), jnp.int32)
    with pytest.raises(UserError, match="sees the order of words"):
        distinct_word_logits(model, ones[0], ones, jnp.ones((1, 2)), ones)
