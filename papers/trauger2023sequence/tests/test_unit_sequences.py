"""Sequences on the sphere: lengths, centres, prefixes, and repetition under attention."""

import jax.numpy as jnp
import numpy as np
import pytest

from trauger2023sequence.library.data.unit_sequences import make_unit_sequences, repeat_tokens
from trauger2023sequence.library.measures.norm_ball_classes import AttentionClass, Sequences

EPS = np.finfo(float).eps


@pytest.mark.parametrize("centred", [True, False])
def test_tokens_have_length_one_and_centres_of_their_own(centred):
    tokens, queries = make_unit_sequences(5, 300, 3, centred)
    for each in (tokens, queries):
        lengths = np.linalg.norm(each.astype(float), axis=-1)
        np.testing.assert_allclose(lengths, 1, atol=3 * np.finfo(np.float32).eps)
    means = np.linalg.norm(tokens.mean(axis=1), axis=1)
    # A mean of 300 directions without a centre has a length of about 300^(-1/2) = 0.06.
    assert (means.min() > 0.2) if centred else (means.max() < 0.2)


@pytest.mark.parametrize("centred", [True, False])
def test_the_stream_is_that_of_the_seed_the_sizes_and_the_centre(centred):
    found = make_unit_sequences(5, 4, 3, centred, seed=11, dtype="float64")
    draw = np.random.default_rng([11, 5, 3, int(not centred)])
    centres = draw.normal(size=(5, 3))
    expected = draw.normal(size=(5, 4, 3))
    queries = draw.normal(size=(5, 3))
    for sequence, centre, tokens in zip(expected, centres, found.tokens, strict=True):
        for g, token in zip(sequence, tokens, strict=True):
            x = g + centre if centred else g
            np.testing.assert_allclose(token, x / np.sqrt(x @ x), rtol=1e-14)
    lengths = np.sqrt(np.einsum("nd,nd->n", queries, queries))
    np.testing.assert_allclose(found.queries, queries / lengths[:, None], rtol=1e-14)


def test_a_length_is_reached_only_by_whole_repetitions():
    tokens = np.arange(12.0).reshape(2, 3, 2)
    np.testing.assert_array_equal(repeat_tokens(tokens, 9), np.concatenate([tokens] * 3, axis=1))
    np.testing.assert_array_equal(repeat_tokens(tokens, 10), tokens)


def test_a_sequence_repeated_whole_is_the_same_function():
    tokens, queries = make_unit_sequences(5, 4, 3, centred=True)
    one = jnp.array(1.0)
    attention = AttentionClass("1,1", jnp.array(3.0), one, one, one)
    rng = np.random.default_rng(1)
    parameters = (jnp.asarray(rng.normal(size=(3, 3))), jnp.asarray(rng.normal(size=(3, 1))), one)
    short, long = (
        attention(parameters, Sequences(jnp.asarray(each, float), jnp.asarray(queries, float)))
        for each in (tokens, repeat_tokens(tokens, 100))
    )
    # Sums of 100 tokens of length one, and exponentials of scores of order ten.
    np.testing.assert_allclose(short, long, atol=10 * 100 * EPS)
