"""Few heads and the crowd that Corollary 2 demands, on problems that are quick to train."""

import jax
import numpy as np
import pytest

from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.optim.one_step import one_step_initialisation
from deora2023optimization.library.training.demanded_heads import (
    MOST_HEADS,
    DemandedHeads,
    stacked,
    train_demanded_heads,
)

COUNTS, STEPS = (1, 3), 4
SIZES = {"d": 8, "M": 2, "S": 2.0, "zeta": 0.25, "Z": 1.0, "Z_mu": 0.1, "Z_nu": 0.1}


@pytest.fixture(scope="module")
def found() -> DemandedHeads:
    keys = [jax.random.key(member) for member in range(2)]
    mixture = make_tokenized_mixture(keys[0], **SIZES)
    first, train, test = (
        [sample_mixture(jax.random.fold_in(key, k), mixture, 6, 4) for key in keys]
        for k in range(3)
    )
    pairs = zip(keys, first, strict=True)
    heads = [one_step_initialisation(key, part.X, part.y, 1) for key, part in pairs]
    sizes = 4.0, 8.0, max(1.0, float(mixture.R))
    return train_demanded_heads(
        keys, heads, stacked(train), stacked(test), COUNTS, sizes, 0.1, STEPS, [1e2], records=3
    )


@pytest.mark.thorough
def test_every_training_is_there(found):
    records = len(found.schedule)
    assert found.schedule[-1] == STEPS
    assert found.few.train.shape == found.few.error.shape == (2, len(COUNTS), records)
    assert found.crowd.test.shape == (2, 2, records)
    assert found.crowd.relevant.shape == (2, 2)
    assert np.all(np.diff(found.few.train, axis=-1) < 0)


def test_the_rule_changes_nothing_for_one_head(found):
    assert found.ruled.train.shape == (2, 1, len(found.schedule))
    # of the numbers 1 and 3 the rule takes the first, for which it changes nothing
    for name in ("train", "test", "error"):
        plain, ruled = (getattr(each, name) for each in (found.few, found.ruled))
        np.testing.assert_array_equal(ruled[:, 0], plain[:, 0])


def test_the_certified_step_is_smaller_and_moves_less(found):
    rate = found.corollary.step_size[:, -1, 0]
    assert np.all(np.asarray(rate) < 0.1)
    common, certified = np.moveaxis(found.crowd.train, 1, 0)
    # The same signs of the same number of heads would start equal; the signs are drawn anew.
    assert np.all(certified[:, 0] - certified[:, -1] < common[:, 0] - common[:, -1])


def test_the_corollary_is_evaluated_at_the_steps_made(found):
    assert found.K.tolist() == [STEPS, 1e2]
    assert found.corollary.heads.shape == (2, 3, 2)
    demanded = np.asarray(found.corollary.heads[:, -1, 0])
    assert not found.certified[demanded > MOST_HEADS].any()
