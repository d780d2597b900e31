"""Losses and errors of right answers are those of torch and of counting."""

import numpy as np
import pytest
from captured_models import library

from attlas.audit.answers import outcome_of
from attlas.audit.class_labels import class_count, class_names, class_numbers
from attlas.core.errors import UserError


def test_losses_are_the_cross_entropy_of_torch():
    torch, _ = library()
    scores = np.random.default_rng(0).normal(size=(7, 5)) * 30
    right = np.arange(7) % 5
    expected = torch.nn.functional.cross_entropy(
        torch.as_tensor(scores), torch.as_tensor(right), reduction="none"
    )
    outcome = outcome_of(scores, right)
    np.testing.assert_allclose(outcome.losses, expected.numpy(), rtol=1e-12, atol=1e-13)
    assert outcome.errors.tolist() == (scores.argmax(axis=1) != right).tolist()


def test_equal_scores_are_errors_whatever_their_order():
    assert outcome_of(np.zeros((3, 3)), np.arange(3)).errors.all()


def test_labels_are_names_or_numbers():
    config = {"id2label": {"0": "negative", "1": "positive"}}
    names = class_names(config, class_count(config))
    assert class_numbers(["positive", "0"], names).tolist() == [1, 0]
    with pytest.raises(UserError, match=r"label '2' \(number 2\) is no class .* numbers 0 to 1"):
        class_numbers(["1", "2"], names)
    with pytest.raises(UserError, match="two classes one name"):
        class_names({"id2label": {"0": "a", "1": "a"}}, 2)
