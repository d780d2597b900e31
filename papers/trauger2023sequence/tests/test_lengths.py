import jax
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.sparse_majority import MajorityDesign
from trauger2023sequence.library.sparse_majority.lengths import train_majority_lengths

DESIGN = MajorityDesign(train=8, validation=20, indices=1, dimension=4)
KEY = jax.random.key(0)


@pytest.mark.thorough
def test_a_length_trained_apart_and_resumed_is_the_same():
    whole = train_majority_lengths(KEY, (2, 3), 2, 3, DESIGN, chunk=3)
    first = train_majority_lengths(KEY, (3,), 2, 1, DESIGN, chunk=3)
    states = {3: first[3].training.state}
    rest = train_majority_lengths(KEY, (3,), 2, 2, DESIGN, chunk=3, resume=states)
    joined = [part[3].training.history for part in (first, rest)]
    together = np.concatenate(joined, axis=1)
    np.testing.assert_array_equal(together, whole[3].training.history[:, : together.shape[1]])
    np.testing.assert_array_equal(rest[3].training.selected, whole[3].training.selected)
    assert not np.array_equal(whole[2].training.selected, whole[3].training.selected)


@pytest.mark.parametrize(("lengths", "runs"), [((), 2), ((2,), 0)])
def test_nothing_to_train_is_refused(lengths, runs):
    with pytest.raises(UserError, match="at least one of each"):
        train_majority_lengths(KEY, lengths, runs, 1, DESIGN)
