import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.models.self_attention_mlp import make_self_attention_mlp
from liu2021analyzing.library.models.two_layer import TwoLayer, make_two_layer
from liu2021analyzing.library.models.word_classifier import WordClassifier, make_word_classifier

TOKENS = jnp.array([3, 1, 3, 0])
MASK = TOKENS > 0


@pytest.mark.thorough
def test_networks_see_word_vectors_and_zeros_for_padding():
    networks = {
        "baseline": make_two_layer(jax.random.key(0), 4 * 2, 5),
        "attention": make_self_attention_mlp(jax.random.key(0), p=4, t=2, d_q=2, d_v=3, d=5),
        "other": lambda x, mask: jnp.sum(jnp.where(mask, x[0], 9)),
    }
    for name, network in networks.items():
        model = make_word_classifier(jax.random.key(1), 6, 2, network)
        vectors = np.asarray(model.embedding)[np.asarray(TOKENS)]
        vectors[3] = 0
        given = {"baseline": (vectors.ravel(),), "attention": (vectors.T,)}
        expected = network(*map(jnp.asarray, given.get(name, (vectors.T, np.asarray(MASK)))))
        assert float(model(TOKENS, MASK)) == float(expected), name


def test_two_layers_read_the_words_one_after_another_and_padding_is_zero():
    rng = np.random.default_rng(2)
    embedding, W1, w2 = (rng.standard_normal(n) for n in ((6, 2), (8, 5), 5))
    vectors = np.concatenate([embedding[3], embedding[1], embedding[3], [0.0, 0.0]])
    expected = np.maximum(vectors @ W1, 0) @ w2
    model = WordClassifier(jnp.asarray(embedding), TwoLayer(jnp.asarray(W1), jnp.asarray(w2)))
    np.testing.assert_allclose(model(TOKENS, MASK), expected, rtol=1e-12)
    weights = rng.standard_normal((2, 4))
    columns = WordClassifier(
        model.embedding, lambda x, mask: jnp.sum(weights * jnp.where(mask, x, 7))
    )
    expected = np.sum(weights * vectors.reshape(4, 2).T) + 7 * np.sum(weights[:, 3])
    np.testing.assert_allclose(columns(TOKENS, MASK), expected, rtol=1e-12)


def test_bad_sizes_are_refused():
    with pytest.raises(UserError, match="vocabulary = 0"):
        make_word_classifier(jax.random.key(0), 0, 2, lambda x, mask: x)
