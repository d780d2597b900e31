import jax
import numpy as np

from attlas.training.epochs import epoch_orders


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
