import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.networks.softmax_network import SoftmaxNetwork, symmetric_network
from gu2024exploring.library.training.nested_regression import train_on_nested
from gu2024exploring.library.training.softmax_regression import train_softmax_network

START = symmetric_network(jax.random.key(0), 3, 16, 2)
X, Y, MORE = (
    jnp.asarray(np.random.default_rng(k).normal(size=(rows, columns)))
    for k, (rows, columns) in enumerate(((6, 3), (6, 2), (4, 3)))
)


@pytest.mark.thorough
def test_rows_of_zeros_change_nothing():
    sizes, step_size = (2, 6), np.array([2e-3, 1e-3])
    found = train_on_nested(
        START, X, Y, sizes, step_size=step_size, steps=20, record_at=(0, 5, 20), X_test=MORE
    )
    for k, n in enumerate(sizes):
        alone = train_softmax_network(
            START, X[:n], Y[:n], step_size=float(step_size[k]), steps=20, record_at=(0, 5, 20),
            X_test=MORE,
        )  # fmt: skip
        np.testing.assert_allclose(found.test_outputs[k], alone.test_outputs, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.loss[k], alone.loss, rtol=1e-12)
    assert float(jnp.abs(found.test_outputs[0, -1] - found.test_outputs[1, -1]).max()) > 1e-3


def test_what_zeros_would_change_is_refused():
    one_sided = SoftmaxNetwork(START.W, jnp.ones_like(START.a))
    with pytest.raises(UserError, match="does not sum to zero"):
        train_on_nested(one_sided, X, Y, (2,), step_size=np.ones(1), steps=1)
    for sizes in ((), (0, 2), (7,)):
        with pytest.raises(UserError, match="1 to the 6 samples"):
            train_on_nested(START, X, Y, sizes, step_size=np.ones(len(sizes)), steps=1)
