import jax
import jax.numpy as jnp
import numpy as np

from attlas.models.attention.multi_head import Decoder, MultiHead
from liu2021analyzing.library.audit.head_margins import head_margins


def test_margins_are_ordered_and_the_kernel_moves_with_the_head():
    rng = np.random.default_rng(0)
    y = np.array([1.0, -1.0, 1.0, -1.0])
    X = rng.normal(size=(4, 3, 2)) + np.stack([2 * y, 0 * y], axis=1)[:, None]
    path = [
        MultiHead(jnp.asarray(u), jnp.asarray(0.1 * rng.normal(size=(1, 2, 2))), Decoder.LAST)
        for u in (np.array([[0.3, 0.1]]), np.array([[2.0, -0.4]]))
    ]
    found = head_margins(path, (X, y), (X, y), key=jax.random.key(0), starts=3, steps=20)
    # W = 0 is one of the heads that the search starts from
    assert 0 < found.uniform <= found.best * (1 + 1e-6) <= found.ceiling * (1 + 1e-6)
    assert found.uniform <= found.flat * np.sqrt(3) * (1 + 1e-6)
    assert found.reachable > found.best
    assert found.drift[0] == found.moved[0] == 0 < found.drift[1]
    assert found.gap < 1e-6
    np.testing.assert_array_equal(found.errors, 0)
