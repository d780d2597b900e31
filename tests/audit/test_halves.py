"""The sequences that choose an action are not those that test it."""

import numpy as np
from made_trial import Made

from attlas.audit.halves import (
    accuracy_change,
    change_text,
    halves,
    loss_size,
    measured_decision,
)


def test_the_effect_is_that_on_the_testing_half_alone():
    base = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    choosing, testing = halves(base.size)
    assert not set(choosing) & set(testing)
    changed = base + np.where(np.isin(np.arange(6), testing), 0.5, 9.0)
    found = measured_decision(
        Made({(0, 0): 0.5}),
        lambda trial: trial.losses([(0, 0)]),
        base,
        changed,
        testing,
        kind="heads",
        what="a",
        meaning="b",
        action="c",
    )
    assert (found.loss, found.change, found.low, found.high) == (4.0, 0.5, 0.5, 0.5)
    assert found.sequences == 3
    assert found.accuracy is None


class Answering(Made):
    """Half of the examples are right, and a head makes one in eight wrong."""

    @property
    def errors(self):
        errors = Answering(self.costs, number=self.base.size)
        errors.unit = "accuracy"
        errors.losses = lambda heads=(): (
            np.arange(self.base.size) % 4 < (3 if heads else 2)
        ).astype(float)
        return errors


def test_an_accuracy_has_an_interval_that_holds_its_change():
    trial = Answering({(0, 0): 0.5}, number=400)
    _, testing = halves(400)
    change = accuracy_change(trial, lambda model: model.losses([(0, 0)]), testing)
    assert change is not None
    assert (change.name, change.before, change.change) == ("accuracy", 0.5, 0.0)
    choosing, _ = halves(400)
    change = accuracy_change(trial, lambda model: model.losses([(0, 0)]), choosing)
    assert change is not None
    assert (change.before, change.change) == (0.5, -0.5)
    assert -0.65 < change.low < -0.5 < change.high < -0.35
    none = accuracy_change(trial, lambda model: model.losses(), choosing[:8])
    assert none is not None
    assert none.low < -0.3 < 0.3 < none.high  # eight examples that do not change say little


def test_a_loss_that_compares_a_model_with_itself_has_the_size_of_its_unit():
    assert loss_size(np.zeros(3)) == 1.0
    assert loss_size(np.array([1.0, 3.0])) == 2.0
    assert change_text(np.array([-0.25, -0.25])) == "−0.25 [−0.25, −0.25]"
