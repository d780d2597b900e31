"""Members and batches of an epoch that cannot be trained on are refused, each for its reason."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.training._epoch_arguments import epoch_of, member_count


def test_members_and_steps_are_counted():
    assert member_count({"w": np.ones((3, 2)), "name": "head"}) == 3
    batches = (np.ones((3, 5, 2)), np.ones((3, 5)))
    assert epoch_of(batches, 3)[1] == 5


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ({"w": 1}, "models needs floating arrays"),
        ({"w": np.float64(1.0)}, "models needs floating arrays"),
        ({"w": np.ones((0, 2))}, "models needs floating arrays"),
        ({"w": np.ones(2), "b": np.ones(3)}, "leading axes of 2, 3 members"),
        ({"w": np.ones(2, complex)}, "give real numbers"),
    ],
)
def test_models_without_one_axis_of_members_are_refused(models, said):
    with pytest.raises(UserError, match=said):
        member_count(models)


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        ("word", "needs arrays"),
        ((np.ones((2, 3)), np.ones((2, 4))), "all of as many members and steps"),
        (np.ones(2), "begins with the axes"),
        (np.ones((3, 4)), "give 2 x steps"),
        (np.ones((2, 0)), "give 2 x steps"),
    ],
)
def test_epochs_that_do_not_fit_the_members_are_refused(batches, said):
    with pytest.raises(UserError, match=said):
        epoch_of(batches, 2)
