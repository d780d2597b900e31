import jax
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.sparse_majority import MajorityDesign, make_sparse_majorities
from trauger2023sequence.library.models.majority_attention import make_majority_attention
from trauger2023sequence.library.sparse_majority import lengths as lengths_module
from trauger2023sequence.library.sparse_majority.lengths import train_majority_lengths
from trauger2023sequence.library.sparse_majority.training import RELEASED, MajorityState

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


def test_members_have_data_starts_and_orders_of_keys_of_their_own(monkeypatch):
    calls, state_of_three = [], MajorityState(*[None] * 9)
    monkeypatch.setattr(lengths_module, "train_majority", lambda *given: calls.append(given))
    found = train_majority_lengths(KEY, (5, 3), 2, 7, DESIGN, chunk=4, resume={3: state_of_three})
    for T, (state, data, orders, *numbers) in zip((5, 3), calls, strict=True):
        draws, starts, expected = jax.random.split(jax.random.fold_in(KEY, T), (3, 2))
        assert jax.random.key_data(orders).tolist() == jax.random.key_data(expected).tolist()
        assert numbers == [7, RELEASED, 4]
        for mine, theirs in zip(
            jax.tree.leaves(data),
            jax.tree.leaves(make_sparse_majorities(draws, T, DESIGN)),
            strict=True,
        ):
            np.testing.assert_array_equal(mine, theirs)
        assert found[T].data is data
        if T == 3:
            assert state is state_of_three
            continue
        for member, start in enumerate(starts):
            model = make_majority_attention(start, 4, 2, 4)
            for mine, theirs in zip(jax.tree.leaves(state), jax.tree.leaves(model), strict=True):
                np.testing.assert_array_equal(mine[member], theirs)


@pytest.mark.parametrize(("lengths", "runs"), [((), 2), ((2,), 0)])
def test_nothing_to_train_is_refused(lengths, runs):
    with pytest.raises(UserError, match="at least one of each"):
        train_majority_lengths(KEY, lengths, runs, 1, DESIGN)
