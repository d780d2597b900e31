import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.errors import UserError
from attlas.training.epochs import epoch_orders, fit_epochs


def test_members_and_epochs_differ_and_repeat_with_their_key():
    keys = jax.random.split(jax.random.key(3), 2)
    one, other = (epoch_orders(keys, 20, 4) for _ in range(2))
    first, second = next(one), next(one)
    assert np.array_equal(first, next(other))
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first, second)
    assert all(np.array_equal(np.sort(order.ravel()), np.arange(20)) for order in second)
    # A member trains as it would alone.
    assert np.array_equal(next(epoch_orders(keys[1:], 20, 4))[0], first[1])


def test_no_epoch_and_a_width_that_does_not_divide_are_refused():
    given = {"evaluate": lambda w, _: {"validation": w}, "batch": 1}
    for batches, width, message in (([], 2, "no epoch"), ([np.ones((2, 1))], 3, "width = 3")):
        with pytest.raises(UserError, match=message):
            fit_epochs(lambda w, _, x: (w * x, jnp.sum(x)), optax.sgd(1.0), jnp.zeros(2), None,
                       batches, width=width, **given)  # fmt: skip
