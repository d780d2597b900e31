"""Loss and accuracy of a translator, by hand and for any chunks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.models.networks.translator import make_translator
from liu2021analyzing.library.data.translation_pairs import SentencePairs
from liu2021analyzing.library.training.translation_scores import translation_scores

MODEL = make_translator(jax.random.key(0), (5, 6), 4, 1, 2, 6)


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(0)
    lengths, ends = rng.integers(1, 5, 6), rng.integers(2, 5, 6)
    mask, target_mask = (np.arange(4) < each[:, None] for each in (lengths, ends))
    source, target = rng.integers(1, 5, (6, 4)), rng.integers(1, 6, (6, 4))
    return SentencePairs(source * mask, mask, target * target_mask, target_mask)


def by_hand(pairs):
    """Piece by piece, from the logits alone."""
    losses, right = [], []
    for row, mask, target, counts in zip(*pairs, strict=True):
        logits = np.asarray(MODEL(*map(jnp.asarray, (row, mask, target[:-1]))))
        for place in range(int(counts.sum()) - 1):
            asked = target[place + 1]
            losses.append(np.log(np.exp(logits[place]).sum()) - logits[place, asked])
            right.append(np.argmax(logits[place]) == asked)
    return np.mean(losses), np.mean(right)


@pytest.mark.thorough
def test_scores_are_means_over_the_pieces_that_count(pairs):
    loss, accuracy = translation_scores(MODEL, pairs)
    expected = by_hand(pairs)
    assert loss == pytest.approx(expected[0], rel=1e-12)
    assert accuracy == pytest.approx(expected[1], rel=1e-14)


def test_neither_chunks_nor_the_way_of_compiling_matter(pairs):
    whole = translation_scores(MODEL, pairs)
    assert translation_scores(MODEL, pairs, chunk=4) == pytest.approx(whole, rel=1e-14)
    assert translation_scores(MODEL, pairs, quick_compile=True) == pytest.approx(whole, rel=1e-12)
