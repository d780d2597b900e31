r"""The review classifiers of section 6 of liu2021analyzing: variants of a model as one ensemble.

The variants of a model differ in the factor of the l1 penalty and the temperature of the softmax,
which are arrays of the model that are not learnt. So all variants and replications run through one
compiled program.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key, PRNGKeyArray

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.core.errors import UserError
from attlas.data.token_sequences import TokenSequences
from attlas.training.sequence_classifiers import Sets, accuracy, train_classifiers
from attlas.training.trajectory import Trajectory
from liu2021analyzing.library.data.distinct_words import distinct_words
from liu2021analyzing.library.losses import l1_penalty
from liu2021analyzing.library.models.lstm_reader import LstmReader, make_lstm_reader
from liu2021analyzing.library.models.luong_reader import LuongReader, make_luong_reader
from liu2021analyzing.library.models.recurrent_attention import (
    RecurrentAttention,
    make_recurrent_attention,
)
from liu2021analyzing.library.models.self_attention_mlp import (
    SelfAttentionMLP,
    make_self_attention_mlp,
)
from liu2021analyzing.library.models.two_layer import TwoLayer, make_two_layer
from liu2021analyzing.library.models.word_classifier import WordClassifier, make_word_classifier
from liu2021analyzing.library.reviews.distinct_word_training import (
    train_word_classifiers,
    word_accuracies,
)

_FIXED = ("strength", "temperature")


class ReviewSizes(NamedTuple):
    """Sizes of all models.

    Attributes:
        length: words p of a review.
        t: dimension of a word vector, a query, a key and a value.
        hidden: hidden units d of the two layers.
        state: state of each LSTM.
        steps: steps of the recurrent attention.
        readers: hidden units of the network after the LSTMs.
    """

    vocabulary: int
    length: int
    t: int
    hidden: int
    state: int
    steps: int
    readers: tuple[int, ...]


class ReviewModel(WordClassifier):
    """A classifier with the factor of its penalty, which is not learnt.

    Attributes:
        strength: factor of the l1 norm.
    """

    strength: Float[Array, ""]


class _Attention(SelfAttentionMLP):
    """Self-attention whose temperature is a number of the model, not of the program."""

    temperature: Any = 1.0


def make_review_model(
    key: PRNGKeyArray,
    kind: str,
    sizes: ReviewSizes,
    strength: Float[Array, ""],
    temperature: Float[Array, ""],
) -> ReviewModel:
    """One model at its start, in single precision; word vectors start alike for all kinds.

    Args:
        kind: "mlp", "attention", "lstm", "luong" or "recurrent".
        strength: factor of the l1 penalty.
        temperature: divisor of the attention logits; for "attention" and "luong" only.

    Examples:
        >>> sizes = ReviewSizes(5, 3, 2, 4, 2, 2, (3,))
        >>> zero, one = jnp.float32(0), jnp.float32(1)
        >>> make_review_model(jax.random.key(0), "mlp", sizes, zero, one).network.W1.shape
        (6, 4)
    """
    p, t, d, f32 = sizes.length, sizes.t, sizes.hidden, np.dtype("float32")
    first, second = jax.random.split(key)
    if kind == "mlp":
        network: Any = make_two_layer(second, p * t, d, biases=True, dtype=f32)
    elif kind == "attention":
        plain = make_self_attention_mlp(second, p, t, t, t, d, biases=True, dtype=f32)
        arrays = (plain.W_Q, plain.W_K, plain.W_V, plain.W1, plain.w2, plain.b1, plain.b2)
        # Set afterwards: the model looks at a temperature that it is made with.
        network = eqx.tree_at(lambda m: m.temperature, _Attention(*arrays), temperature)
    elif kind == "lstm":
        network = make_lstm_reader(second, t, sizes.state, sizes.readers, f32)
    elif kind == "luong":
        reader = make_luong_reader(second, t, sizes.state, sizes.readers, f32)
        network = eqx.tree_at(lambda m: m.temperature, reader, temperature)
    elif kind == "recurrent":
        network = make_recurrent_attention(second, t, d, sizes.steps, score_units=t, dtype=f32)
    else:
        choices = "mlp, attention, lstm, luong or recurrent"
        raise UserError(f"no review model '{kind}': choose {choices}")
    classifier = make_word_classifier(first, sizes.vocabulary, t, network, f32)
    return ReviewModel(classifier.embedding, network, strength)


def train_reviews(
    models: Any,
    rate: float,
    train: TokenSequences,
    validation: TokenSequences,
    test: TokenSequences,
    keys: Key[Array, " e"],
    batch: int,
    epochs: int,
) -> tuple[Trajectory, Float[np.ndarray, " e"]]:
    r"""Train stacked review models by Adam on the mean logistic loss plus their penalties.

    The penalty is on W1 and w2 of a network on words, on all weights of the recurrent attention or
    the LSTMs, and on the attention layer of Luong's structure.

    Args:
        models: stacked `ReviewModel`s of one kind.
        rate: step size of Adam.
        validation: reviews that choose the epoch.
        test: reviews that are read once, after the training.
        keys: one key per member, for the order of the batches.

    Returns:
        The epochs, and the test accuracy of each member at its selected epoch.

    Source: section 6 of liu2021analyzing.

    Examples:
        >>> sizes, keys = ReviewSizes(3, 1, 2, 8, 2, 2, (3,)), jax.random.split(jax.random.key(0))
        >>> zero, one = jnp.float32(0), jnp.float32(1)
        >>> make = lambda key: make_review_model(key, "mlp", sizes, zero, one)
        >>> data = TokenSequences(np.tile([[1], [2]], (8, 1)), np.ones((16, 1), bool),
        ...                       np.tile([0.0, 1.0], 8))
        >>> train_reviews(jax.vmap(make)(keys), 0.1, data, data, data, keys, 4, 10)[1].tolist()
        [1.0, 1.0]
    """
    names = _penalised(models.network)

    def penalty(model: ReviewModel) -> Array:
        return model.strength * l1_penalty(model, names, 1.0)

    fixed = optax.masked(optax.set_to_zero(), _is_given)
    optimizer = optax.chain(optax.adam(rate), fixed)
    with jax.numpy_dtype_promotion("standard"):  # Adam's step count is an integer
        if isinstance(models.network, TwoLayer | SelfAttentionMLP):
            training, validating, tested = (
                distinct_words(part) for part in (train, validation, test)
            )
            path = train_word_classifiers(
                models, optimizer, training, validating, keys, batch, epochs, penalty
            )
            return path, word_accuracies(path.selected, tested)
        training, validating, tested = (_single(part) for part in (train, validation, test))
        # Of the test set only its first review is read before the end.
        sets = Sets(training, validating, jax.tree.map(lambda a: a[:1], tested))
        path = train_classifiers(
            models, optimizer, sets, keys, batch, epochs, 2.0, penalty=penalty, mean=True
        )
        return path, np.asarray(_accuracies(path.selected, jax.tree.map(jnp.asarray, tested)))


def _penalised(network: Any) -> tuple[str, ...]:
    if isinstance(network, RecurrentAttention):
        return "W_s", "W_c", "V_s", "V_x", "v"
    if isinstance(network, LuongReader):
        return "W_a", "W_c"
    return ("W", "U") if isinstance(network, LstmReader) else ("W1", "w2")


def _is_given(parameters: Any) -> Any:
    """True at the numbers that belong to the variant."""

    def belongs(path: Any, _: Array) -> bool:
        return jax.tree_util.keystr(path[-1:], simple=True) in _FIXED

    return jax.tree_util.tree_map_with_path(belongs, parameters)


def _single(data: TokenSequences) -> TokenSequences:
    return TokenSequences(data.tokens, data.mask, np.asarray(data.labels, np.float32))


@eqx.filter_jit
def _accuracies(models: Any, data: TokenSequences) -> Array:
    return eqx.filter_vmap(accuracy, in_axes=(eqx.if_array(0), None))(models, data)


def make_review_ensemble(
    keys: Key[Array, " members"],
    kind: str,
    sizes: ReviewSizes,
    variants: Sequence[tuple[float, float]],
) -> tuple[ReviewModel, Key[Array, " e"]]:
    """Every variant at the start of every key: differences between variants are paired.

    Args:
        keys: one key per replication.
        kind: "mlp", "attention", "lstm", "luong" or "recurrent".
        variants: factor of the l1 penalty and temperature of the softmax.

    Returns:
        The stacked models, the replications of the first variant first; and their keys.

    Raises:
        UserError: if there is no variant, or no such kind of model.

    Examples:
        >>> keys = jax.random.split(jax.random.key(0), 2)
        >>> sizes = ReviewSizes(5, 3, 2, 4, 2, 2, (3,))
        >>> models, own = make_review_ensemble(keys, "mlp", sizes, [(0.0, 1.0), (0.5, 1.0)])
        >>> models.strength.tolist(), own.shape
        ([0.0, 0.0, 0.5, 0.5], (4,))
    """
    if not variants:
        raise UserError("no variant of the review model: give at least one pair of numbers")
    numbers = np.repeat(np.array(variants, np.float32), len(keys), axis=0)
    repeated = jnp.tile(keys, len(variants))

    def start(key: Array, numbers_of_member: Array) -> ReviewModel:
        return make_review_model(key, kind, sizes, numbers_of_member[0], numbers_of_member[1])

    models = jax.jit(jax.vmap(start), compiler_options=CHEAP_COMPILATION)(repeated, numbers)
    return models, repeated
