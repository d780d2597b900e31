import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.losses.logistic import logistic
from attlas.measures.curvature.exact_spectrum import hessian_matrix
from attlas.models.attention.multi_head import Decoder, MultiHead
from liu2021analyzing.library.audit.head_landscape import head_landscape
from liu2021analyzing.library.audit.single_head_path import single_head_path


def test_curvature_concentration_and_variance_of_two_records():
    rng = np.random.default_rng(0)
    y = np.tile([1.0, -1.0], (1, 10))
    X = rng.normal(size=(1, 20, 3, 2)) + np.stack([2 * y, 0 * y], axis=-1)[:, :, None]
    heads = [
        MultiHead(jnp.asarray([u]), jnp.zeros((1, 2, 2)), Decoder.LAST)
        for u in ([0.0, 1.0], [2.0, 0.0])
    ]
    path = jax.tree.map(lambda *a: jnp.stack(a)[None], *heads)
    seen = jax.jit(jax.vmap(single_head_path))(path, *(jax.device_put(a) for a in (X, y, X, y)))
    found = head_landscape(path, seen, X, y, y, tau=0.1, alphas=np.array([1.0, 3.0]))
    np.testing.assert_array_equal(found.s0, 3)  # equal weights
    assert found.relative_top[0, 0] == pytest.approx(np.sqrt(1 / 3))
    # the second decoder reads the labels, the first does not
    assert found.unexplained[0, 1] < 0.5 < found.unexplained[0, 0]

    def risk(model, X, y):
        return jnp.mean(logistic(y * jax.vmap(model)(X)))

    last = jax.tree.map(lambda a: a[0, 1], path)
    exact = np.linalg.eigvalsh(hessian_matrix(risk, last, jnp.asarray(X[0]), jnp.asarray(y[0])))
    assert found.curvature[0, 1] == pytest.approx(exact[-1], rel=1e-9)
    assert found.orbit.shape == (1, 2)
    assert np.all(found.orbit > 0)
    assert np.all(found.smallest >= 0)
    # The units are the positive parts of the output and of its negative, which are never both
    # positive: their covariance is minus the product of their means.
    output = 2 * X[0, :, :, 0].mean(axis=1)
    one, two = np.maximum(output, 0), np.maximum(-output, 0)
    apart, both = one.var() - two.var(), one.var() + two.var()
    least = (both - np.hypot(apart, 2 * one.mean() * two.mean())) / 2
    np.testing.assert_allclose(found.smallest[0, 1], least, rtol=1e-10)
