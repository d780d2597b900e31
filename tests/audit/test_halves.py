"""The sequences that choose an action are not those that test it."""

import numpy as np

from attlas.audit.halves import change_text, halves, loss_size, measured_decision


def test_the_effect_is_that_on_the_testing_half_alone():
    base = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    choosing, testing = halves(base.size)
    assert not set(choosing) & set(testing)
    changed = base + np.where(np.isin(np.arange(6), testing), 0.5, 9.0)
    found = measured_decision(
        base, changed, testing, kind="heads", what="a", meaning="b", action="c", unit="nats"
    )
    assert (found.loss, found.change, found.low, found.high) == (4.0, 0.5, 0.5, 0.5)
    assert found.sequences == 3


def test_a_loss_that_compares_a_model_with_itself_has_the_size_of_its_unit():
    assert loss_size(np.zeros(3)) == 1.0
    assert loss_size(np.array([1.0, 3.0])) == 2.0
    assert change_text(np.array([-0.25, -0.25])) == "−0.25 [−0.25, −0.25]"
