import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.data.packed_pairs import pack_batches, packed_pairs
from liu2021analyzing.library.data.translation_pairs import SentencePairs


def made(lengths: list[tuple[int, int]], S: int, T: int) -> SentencePairs:
    """Pairs of given numbers of source pieces and of pieces to predict; all numbers differ."""
    n = len(lengths)
    s, t = (np.array(part)[:, None] for part in zip(*lengths, strict=True))
    mask, target_mask = np.arange(S) < s, np.arange(T + 1) < t + 1
    source = np.where(mask, 1 + np.arange(n * S).reshape(n, S), 0)
    target = np.where(target_mask, 1 + np.arange(n * (T + 1)).reshape(n, T + 1), 0)
    return SentencePairs(source, mask, target, target_mask)


@pytest.mark.thorough
def test_every_piece_stands_once_beside_its_own_pair_and_the_rows_are_few():
    rng = np.random.default_rng(0)
    S, T, lengths = 12, 10, [(int(s), int(t)) for s, t in rng.integers(1, 11, (40, 2))]
    pairs = made(lengths, S, T)
    batches = rng.permutation(40).reshape(4, 10)
    rows = pack_batches(pairs, batches)
    used = [int(np.sum(own[:, 0] >= 0)) for own in rows]
    assert max(used) == rows.shape[1] < 10
    for own, batch in zip(rows, batches, strict=True):
        assert sorted(own[own >= 0]) == sorted(batch)
        least = max(np.sum(np.array(lengths)[batch], axis=0) / (S, T))
        assert least <= np.sum(own[:, 0] >= 0)  # no row holds more than it has room for
        assert np.all(np.diff((own[:, 0] >= 0).astype(int)) <= 0)  # empty rows come last
        packed = packed_pairs(jax.tree.map(jnp.asarray, pairs), jnp.asarray(own))
        packed = jax.tree.map(np.asarray, packed)
        for row, numbers in enumerate(own):
            for place, number in enumerate(numbers[numbers >= 0], start=1):
                s, t = lengths[number]
                here = packed.source_pair[row] == place
                assert packed.source[row, here].tolist() == pairs.source[number, :s].tolist()
                here = packed.target_pair[row] == place
                assert packed.target[row, here].tolist() == pairs.target[number, :t].tolist()
                asked = pairs.target[number, 1 : t + 1]
                assert packed.labels[row, here].tolist() == asked.tolist()
            count = int(np.sum(numbers >= 0))
            assert set(packed.source_pair[row]) <= set(range(count + 1))
            assert set(packed.target_pair[row]) <= set(range(count + 1))


def test_the_longest_pairs_in_units_of_the_rows_come_first_and_take_the_first_row_with_room():
    """Rows of 10 and 4 places: shares are 0.5, 0.75, 0.9, 0.5 and 0.25."""
    pairs = made([(5, 1), (1, 3), (9, 2), (2, 2), (1, 1)], 10, 4)
    found = pack_batches(pairs, np.array([[0, 1, 2, 3, 4], [1, 1, 4, 4, 2]]))
    # Without the division the pair of 5 pieces would come before that of 3 target pieces.
    assert found[0].tolist() == [[2, 4], [1, 0], [3, -1]]
    assert found[1].tolist() == [[2, 4], [1, 4], [1, -1]]
    assert found.dtype == np.int32


def test_rows_end_where_their_pairs_do():
    """Rows of 7 and 5 places: pairs one after another, then zeros without a pair."""
    pairs = made([(3, 2), (2, 1), (7, 5), (1, 2)], 7, 5)
    numbers = np.array([[1, 3, 0], [2, -1, -1], [3, -1, -1]])
    found = jax.tree.map(np.asarray, jax.jit(packed_pairs)(pairs, numbers))
    assert found.source_pair.tolist() == [[1, 1, 2, 3, 3, 3, 0], [1] * 7, [1] + [0] * 6]
    assert found.target_pair.tolist() == [[1, 2, 2, 3, 3], [1] * 5, [1, 1, 0, 0, 0]]
    source, target = pairs.source, pairs.target
    assert found.source[0, :6].tolist() == [*source[1, :2], source[3, 0], *source[0, :3]]
    assert found.target[0].tolist() == [target[1, 0], *target[3, :2], *target[0, :2]]
    assert found.labels[0].tolist() == [target[1, 1], *target[3, 1:3], *target[0, 1:3]]
    assert found.source[1].tolist() == source[2].tolist()
    assert found.labels[1].tolist() == target[2, 1:].tolist()
    assert [array.shape[1] for array in found] == [7, 7, 5, 5, 5]


def test_what_cannot_be_packed_is_refused():
    pairs = made([(2, 1), (3, 0)], 4, 3)
    with pytest.raises(UserError, match="without a target piece"):
        pack_batches(pairs, np.array([[0, 1]]))
    with pytest.raises(UserError, match=r"batches of shape \(0, 2\)"):
        pack_batches(pairs, np.zeros((0, 2), int))
