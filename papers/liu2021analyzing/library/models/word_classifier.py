r"""Trained word vectors before a network on p words: the IMDB models of liu2021analyzing.

Padding is the zero vector ("we zero-pad all our sentences"), and words of a self-attention network
attend to it as to any other, as the paper prints it.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from attlas.core.errors import UserError
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP
from liu2021analyzing.library.models.two_layer import TwoLayer


class WordClassifier(eqx.Module):
    r"""One logit for a text: a network on the word vectors x, one column per word.

    Attributes:
        embedding: word vectors, one row per word of the vocabulary.
        network: a `TwoLayer` reads vec(x), a `SelfAttentionMLP` reads x; any other network is
            called with x and the mask of the words.

    Examples:
        >>> model = WordClassifier(jnp.array([[9.0], [1.0], [2.0]]), TwoLayer(jnp.ones((2, 1)),
        ...                        jnp.ones(1)))
        >>> float(model(jnp.array([2, 0]), jnp.array([True, False])))
        2.0
    """

    embedding: Float[Array, "V t"]
    network: Callable[..., Array]

    def __call__(
        self, tokens: Int[Array, " p"], mask: Bool[Array, " p"], key: PRNGKeyArray | None = None
    ) -> Float[Array, ""]:
        """The logit of class 1.

        Args:
            mask: True where a word is, False where padding is.
            key: not used; classifiers are called with a key for their dropout.
        """
        del key
        x = jnp.where(mask[None, :], self.embedding[tokens].T, 0)
        if isinstance(self.network, TwoLayer):
            return self.network(x.T.reshape(-1))
        if isinstance(self.network, SelfAttentionMLP):
            return self.network(x)
        return self.network(x, mask)


def make_word_classifier(
    key: PRNGKeyArray, vocabulary: int, t: int, network: Callable[..., Array], dtype: Any = None
) -> WordClassifier:
    """Word vectors with Xavier's uniform start before a given network.

    Args:
        network: network on the word vectors, see `WordClassifier`.
        dtype: floating type; JAX's default when None.

    Examples:
        >>> make_word_classifier(jax.random.key(0), 5, 3, lambda x, mask: x[0, 0]).embedding.shape
        (5, 3)
    """
    if vocabulary < 1 or t < 1:
        raise UserError(f"vocabulary = {vocabulary}, t = {t}: both must be at least 1")
    start = jax.nn.initializers.glorot_uniform()(key, (vocabulary, t), dtype)
    return WordClassifier(start, network)
