"""The relative position of a head is the most frequent one, in the width of all sequences."""

import numpy as np
from random_transformer import random_transformer

from attlas.audit.data_level.positional_share import centred_offsets, positional_heads


def test_counts_of_a_short_sequence_are_centred_in_the_width_of_the_longest():
    offsets = np.arange(6).reshape(1, 2, 3)
    wide = centred_offsets(offsets, 3)
    assert wide.tolist() == [[[0, 0, 1, 2, 0], [0, 3, 4, 5, 0]]]
    np.testing.assert_array_equal(centred_offsets(wide, 2), offsets)


def test_the_share_is_of_rows_that_see_two_tokens():
    layer = random_transformer(1).layer(0)
    offsets = np.zeros((2, 1, 5), int)
    offsets[0, 0, 1], offsets[1, 0, 1], offsets[1, 0, 3] = 3, 2, 1
    share, offset = positional_heads(layer, offsets, np.array([5, 6]))
    lone = int(layer.attention.causal)
    assert offset.tolist() == [-1]
    assert share[:, 0].tolist() == [3 / (5 - lone), 2 / (6 - lone)]
