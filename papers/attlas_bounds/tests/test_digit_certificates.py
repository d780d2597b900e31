import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.data.digit_pairs import DigitPairs
from attlas_bounds.library.training.digit_certificates import PRIORS, DigitDescent, certify_digits

DESCENT = DigitDescent(heads=1, records=(60,), rate=0.1, draws=200)


def separable(rng, count):
    """The sign of the first entry is the label."""
    X = rng.normal(size=(count, 2, 2))
    X[:, 0, 0] = np.sign(X[:, 0, 0]) * (1 + np.abs(X[:, 0, 0]))
    return jnp.asarray(X), jnp.asarray(np.sign(X[:, 0, 0]))


def pairs(shuffled=False):
    rng = np.random.default_rng(0)
    (X, y), (X_test, y_test) = separable(rng, 240), separable(rng, 100)
    if shuffled:
        y = jnp.asarray(rng.choice([-1.0, 1.0], 240))
    return DigitPairs(X, y, X_test, y_test)


@pytest.mark.thorough
def test_what_is_easily_learnt_is_certified_from_either_prior():
    for prior in PRIORS:
        found = certify_digits(jax.random.key(1), pairs(), 240, prior, DESCENT, 0.05)
        assert found.train_error <= found.certified < 0.4, prior
        wrong = round(found.held_out * 100)
        assert found.held_out_bound == held_out_bound(wrong, 100, 0.05).bound


@pytest.mark.thorough
def test_random_labels_are_never_certified_below_guessing():
    """The control: nothing is learnt, and a certificate would be false."""
    for prior in PRIORS:
        found = certify_digits(jax.random.key(2), pairs(True), 240, prior, DESCENT, 0.05)
        assert found.certified > 0.5, prior


def test_only_the_first_n_images_are_read():
    data = pairs()
    other = DigitPairs(data.X_train.at[100:].multiply(-3.0), data.y_train, data.X_test, data.y_test)
    one, two = (
        certify_digits(jax.random.key(3), each, 100, PRIORS[1], DESCENT, 0.05)
        for each in (data, other)
    )
    assert one == two
