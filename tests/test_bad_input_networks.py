"""Bad input of the networks of words, cells and reviews and of their data: one clear line each."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.splits import Split
from attlas.data.word_pieces import train_word_pieces
from attlas.models.networks.translator import make_translator
from liu2021analyzing.library.data.translation_pairs import load_translation_pairs, number_pairs
from liu2021analyzing.library.models.deep_self_attention import (
    SelfAttentionLayer,
    make_deep_self_attention,
)
from liu2021analyzing.library.models.lstm_reader import make_lstm_reader
from liu2021analyzing.library.models.recurrent_attention import make_recurrent_attention
from liu2021analyzing.library.models.self_attention_mlp import (
    SelfAttentionMLP,
    make_self_attention_mlp,
)
from liu2021analyzing.library.models.two_layer import (
    AttendedTwoLayer,
    MaskedTwoLayer,
    TwoLayer,
    make_two_layer,
)
from liu2021analyzing.library.noisy_grid.data import enlarge, load_noisy_grids, place_in_grid
from liu2021analyzing.library.noisy_grid.grid_cnn import make_attention_cnn, make_grid_cnn
from liu2021analyzing.library.reviews.review_words import (
    frequent_words,
    generated_reviews,
    load_review_words,
    number_words,
)

KEY, NAN, INF = jax.random.key(0), float("nan"), float("inf")


def ones(*shape):
    return jax.device_put(np.ones(shape))


def filled(make):
    """A model of ones: nothing is drawn, nothing compiled."""
    return jax.tree.map(lambda leaf: ones(*leaf.shape), jax.eval_shape(make, KEY))


NETWORK = TwoLayer(ones(3, 4), ones(4))
ATTENTION = filled(lambda key: make_self_attention_mlp(key, 4, 3, 2, 2, 5))
DEEP = filled(lambda key: make_deep_self_attention(key, 4, (3, 2), 2, 2, 5))
RECURRENT = filled(lambda key: make_recurrent_attention(key, 3, 4, 2))
LSTM = filled(lambda key: make_lstm_reader(key, 3, 2, (4,)))
CNN = filled(lambda key: make_grid_cnn(key, 6, (2, 2), 4, 3))
CELLS = filled(lambda key: make_attention_cnn(key, 6, (2, 2), 3, 4, 3))
TRANSLATOR = filled(lambda key: make_translator(key, (7, 9), 4, 1, 2, 8))
IDS, SEEN = jax.device_put(np.arange(3)), jax.device_put(np.ones(3, bool))
WORDS, PIECES = ("[PAD]", "[UNK]", "a"), tuple(train_word_pieces(["a b a b"], 20) for _ in "ab")
DRAW = np.random.default_rng(0)


def labelled(texts, labels, length=3):
    return number_words(WORDS, Split(np.array(texts, object), np.array(labels)), length)


def reviews(sizes=(1, 1, 1), **settings):
    return load_review_words(sizes=sizes, stand_in=True, **settings)


def pairs(sizes=(3, 1), **settings):
    return load_translation_pairs(sizes=sizes, stand_in=True, **settings)


def grids(sizes=(1, 1, 1), **settings):
    return load_noisy_grids(sizes=sizes, stand_in=True, **settings)


REFUSED = {
    "features": (lambda: NETWORK(ones(4)), r"x has shape \(4,\), the network reads \(3,\)"),
    "a matrix for features": (lambda: NETWORK(ones(3, 3)), r"x has shape \(3, 3\), .* \(3,\)"),
    "no unit": (lambda: make_two_layer(KEY, 3, 0), "d = 0: .* both at least 1"),
    "sharpness": (lambda: TwoLayer(ones(3, 4), ones(4), sharpness=0.0)(ones(3)), "tau_0 > 0"),
    "mask of one entry": (
        lambda: MaskedTwoLayer(NETWORK, ones(1))(ones(3)),
        r"weights of shape \(1,\) for x of shape \(3,\)",
    ),
    "one attention weight": (
        lambda: AttendedTwoLayer(NETWORK, lambda x: x[:1])(ones(3)),
        r"weights of shape \(1,\) for x of shape \(3,\)",
    ),
    "entries of a word": (
        lambda: ATTENTION(ones(2, 4)),
        r"x has shape \(2, 4\), the model reads \(3, 4\): words as columns",
    ),
    "number of words": (lambda: ATTENTION(ones(3, 5)), r"\(3, 5\), the model reads \(3, 4\)"),
    "words as rows": (lambda: ATTENTION.attention(ones(4, 3)), r"reads \(3, p\): words as columns"),
    "no word dimension": (lambda: make_self_attention_mlp(KEY, 4, 0, 2, 2, 5), "t = 0 .* 1 or up"),
    "temperature": (
        lambda: SelfAttentionMLP(*(ones(1, 1),) * 4, ones(1), temperature=0.0),
        "temperature = 0.0 is not positive",
    ),
    "temperature of a layer": (
        lambda: SelfAttentionLayer(*(ones(1, 1),) * 5, temperature=NAN),
        "temperature = nan is not positive",
    ),
    "entries, deep": (lambda: DEEP(ones(2, 4)), r"\(2, 4\), the model reads \(3, p\)"),
    "words, deep": (lambda: DEEP(ones(3, 5)), r"\(2, 5\), the model reads \(2, 4\)"),
    "no layer": (lambda: make_deep_self_attention(KEY, 4, (), 2, 2, 5), "at least one layer"),
    "entries, recurrent": (lambda: RECURRENT(ones(2, 4)), r"\(2, 4\), the model reads \(3, p\)"),
    "mask, recurrent": (
        lambda: RECURRENT(ones(3, 4), SEEN[:1]),
        r"mask has shape \(1,\) for 4 words: give one entry per word",
    ),
    "no step": (lambda: make_recurrent_attention(KEY, 3, 4, 0), "steps = 0.* at least 1"),
    "entries, LSTM": (lambda: LSTM(ones(2, 4)), r"\(2, 4\), the model reads \(3, p\)"),
    "mask, LSTM": (lambda: LSTM(ones(3, 4), SEEN), r"mask has shape \(3,\) for 4 words"),
    "no hidden unit, LSTM": (lambda: make_lstm_reader(KEY, 3, 2, (0,)), r"hidden = \(0,\)"),
    "images of another size": (
        lambda: CNN(ones(16, 64)),
        "images of side 32 have 392 features, the network reads 200: .* size it was made for",
    ),
    "cells of another size": (
        lambda: CELLS(ones(16, 64)),
        "images of side 8 have 8 features, .* 2",
    ),
    "cells below the filters": (lambda: CELLS.weights(ones(16, 4)), "images of side 2 have 0"),
    "15 cells": (lambda: CNN(ones(15, 36)), r"\(15, 36\): give 16 cells of square pixels"),
    "cells that are not squares": (lambda: CNN(ones(16, 35)), "give 16 cells of square pixels"),
    "cells too small to make": (lambda: make_attention_cnn(KEY, 5), "side 5: .* at least 6"),
    "no filter": (lambda: make_grid_cnn(KEY, 6, (0, 2)), "filters = 0 .* at least 1"),
    "no class": (lambda: make_grid_cnn(KEY, 6, classes=0), "classes = 0 .* at least 1"),
    "no source word": (lambda: make_translator(KEY, (0, 9), 4, 1, 2, 8), "at least 1"),
    "odd width": (lambda: make_translator(KEY, (7, 9), 5, 1, 1, 8), "width = 5: choose an even"),
    "mask of a sentence": (
        lambda: TRANSLATOR(IDS, SEEN[:1], IDS),
        r"mask of shape \(1,\) for source \(3,\)",
    ),
    "no image": (lambda: grids(sizes=(1, 0, 1)), r"sizes \(1, 0, 1\): .* at least one image"),
    "images beyond": (
        lambda: grids(sizes=(10**6, 1, 1)),
        "1000000 train images requested, .* request fewer",
    ),
    "cells without pixels": (lambda: grids(cell=0), "side = 0 .* at least 1"),
    "oblong images": (lambda: enlarge(np.ones((2, 3, 4)), 4), r"\(2, 3, 4\) .* square"),
    "pixels with NaN": (lambda: enlarge(np.full((1, 2, 2), NAN), 4), "not finite"),
    "odd edge": (lambda: place_in_grid(np.ones((1, 3, 3)), DRAW), "with an even edge"),
    "no pixel": (lambda: place_in_grid(np.ones((1, 0, 0)), DRAW), "with an even edge"),
    "whole pixels": (lambda: place_in_grid(np.ones((1, 2, 2), int), DRAW), "int64: .* floating"),
    "placed NaN": (lambda: place_in_grid(np.full((1, 2, 2), NAN), DRAW), "finite floating"),
    "no review": (lambda: reviews(sizes=(1, 0, 1)), r"sizes \(1, 0, 1\): .* at least one review"),
    "no room for words": (lambda: reviews(vocabulary=2), "vocabulary of 2 .* at least 3"),
    "length 0": (lambda: reviews(length=0), "length = 0, .* at least 1"),
    "no text": (lambda: frequent_words([], 5), "give at least one"),
    "empty text": (lambda: labelled(["a", ""], [0, 1]), "text 1 has no word: leave it out"),
    "text that is none": (lambda: labelled([None], [0]), "text 0 is None: give a string"),
    "label 2": (lambda: labelled(["a"], [2]), "label 2 is unknown: label reviews 0 .* or 1"),
    "label of letters": (lambda: labelled(["a"], ["pos"]), "label pos is unknown"),
    "label NaN": (lambda: labelled(["a"], [NAN]), "label nan is unknown"),
    "a label too few": (
        lambda: labelled(["a", "a"], [1]),
        "2 texts, 1 labels: .* one label per text",
    ),
    "fewer than no reviews": (lambda: generated_reviews((-1, 1, 1)), "sizes"),
    "no pair": (lambda: pairs(sizes=(3, 0)), "both sets need at least one pair"),
    "no piece": (lambda: pairs(vocabulary=3), "vocabulary = 3, .* at least 4 pieces"),
    "pairs without length": (lambda: pairs(length=0), "length = 0: .* at least 1"),
    "pairs too long": (lambda: pairs(length=2, vocabulary=90), "short enough: request fewer"),
    "empty sentence": (
        lambda: number_pairs(PIECES, [("a", "")], 3),
        "pair 0 has an empty sentence",
    ),
    "sentence too long": (lambda: number_pairs(PIECES, [("a", "a a a a")], 3), "over 3 pieces"),
    "sentence that is none": (lambda: number_pairs(PIECES, [("a", None)], 3), "give two texts"),
    "three sentences": (lambda: number_pairs(PIECES, [("a", "b", "a")], 3), "give two texts"),
}


@pytest.fixture
def as_users_run():
    """Shapes are compared with their annotations in tests alone; here what users see counts."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_line(case):
    act, words = REFUSED[case]
    with pytest.raises(UserError, match=words) as caught:
        act()
    assert "\n" not in str(caught.value)


@jax.jit
def without_words(none):
    translator = eqx.tree_at(
        lambda m: m.source_words, TRANSLATOR, jnp.arange(28.0).reshape(7, 4) ** 2
    )
    maps = [translator.attention(ids, SEEN, IDS).encoder for ids in (IDS + 6, 0 * IDS + 6, IDS)]
    states = [LSTM(x, none) for x in (ones(3, 4), 2 * ones(3, 4))]
    return RECURRENT(ones(3, 4), none), TRANSLATOR(IDS, none[:3], IDS), states, maps


def test_no_word_gives_nan_or_the_zero_state_and_unknown_words_the_last_vector():
    # What a mask or a number holds is not known to a compiled program: documented conventions.
    context, logits, states, maps = without_words(np.zeros(4, bool))
    assert jnp.isnan(context)
    assert jnp.all(jnp.isnan(logits))
    assert states[0] == states[1]
    np.testing.assert_array_equal(maps[0], maps[1])
    assert not np.array_equal(maps[0], maps[2])
