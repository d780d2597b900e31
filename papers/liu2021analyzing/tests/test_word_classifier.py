import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.models.self_attention_mlp import make_self_attention_mlp
from liu2021analyzing.library.models.two_layer import make_two_layer
from liu2021analyzing.library.models.word_classifier import make_word_classifier

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


def test_bad_sizes_are_refused():
    with pytest.raises(UserError, match="vocabulary = 0"):
        make_word_classifier(jax.random.key(0), 0, 2, lambda x, mask: x)
