"""Blocks hold every sequence once, and the controls keep what they promise."""

import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.audit.data_level import sequence_blocks as blocks_module
from attlas.audit.data_level.sequence_blocks import (
    enclosing_tokens,
    repeated,
    sequence_blocks,
    shuffled,
)

DRAW = np.random.default_rng(12)


@pytest.mark.thorough
def test_blocks_hold_every_sequence_once(monkeypatch):
    # By the module: the name attlas.audit may be the function by now.
    monkeypatch.setattr(blocks_module, "_WEIGHTS", 2 * 3 * 40**2)
    model = random_transformer()
    sequences = [DRAW.integers(0, 11, length) for length in (7, 40, 3, 12, 9)]
    blocks = sequence_blocks(model, sequences, (4,))
    members = np.concatenate([block.members for block in blocks])
    assert members.tolist() == [2, 0, 4, 3, 1]  # the short ones first
    assert {block.hidden.shape for block in blocks} == {(3, 40, 6)}  # no more than the positions
    for block in blocks:
        for row, member in enumerate(block.members):
            tokens = sequences[member]
            assert block.lengths[row] == tokens.size
            assert np.array_equal(block.special[row, : tokens.size], tokens == 4)
            assert not block.special[row, tokens.size :].any()
            own = block.hidden[row, : tokens.size]
            assert np.allclose(own, model.embed(tokens), rtol=1e-12)


@pytest.mark.parametrize(("number", "rows"), [(4, 2), (5, 3), (6, 3), (2, 2)])
def test_blocks_repeat_as_few_sequences_as_they_can(monkeypatch, number, rows):
    # By the module: the name attlas.audit may be the function by now.
    monkeypatch.setattr(blocks_module, "_WEIGHTS", 2 * 3 * 40**2)
    blocks = sequence_blocks(random_transformer(), [np.arange(10)] * number, ())
    assert {block.hidden.shape[0] for block in blocks} == {rows}
    assert sum(rows - block.members.size for block in blocks) == -number % rows


def test_special_words_enclose_all_sequences():
    assert enclosing_tokens([np.array([5, 1, 9])]) == (5,)
    assert enclosing_tokens([np.array([5, 1]), np.array([6, 1])]) == (1,)
    assert enclosing_tokens([np.array([5, 1]), np.array([6, 2])]) == ()


def test_controls_keep_words_or_places():
    tokens = np.array([1, 7, 8, 9, 7, 2])
    mixed = shuffled(tokens, (1, 2), DRAW)
    assert sorted(mixed) == sorted(tokens)
    assert (mixed[0], mixed[-1]) == (1, 2)
    one = repeated(tokens, (1, 2), DRAW)
    assert len(set(one.tolist())) == 1
    assert one[0] in (7, 8, 9)
