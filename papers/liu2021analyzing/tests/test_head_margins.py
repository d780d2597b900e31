import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.kernels.multi_head_ntk import ntk_features
from attlas.models.attention.multi_head import Decoder, MultiHead
from liu2021analyzing.library.audit.head_margins import head_margins, tangent_prediction


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


def test_kernels_predict_as_features_do():
    rng = np.random.default_rng(0)
    model = MultiHead(
        jnp.asarray(rng.normal(size=(1, 3))), jnp.asarray(rng.normal(size=(1, 3, 3))), Decoder.LAST
    )
    X, fresh, y = rng.normal(size=(6, 4, 3)), rng.normal(size=(5, 4, 3)), rng.choice([-1.0, 1.0], 6)
    found = tangent_prediction(model, X, y, fresh)
    F, G = (np.asarray(ntk_features(model, jnp.asarray(a))) for a in (X, fresh))
    np.testing.assert_allclose(found.gram, F @ F.T, rtol=1e-10, atol=1e-12)
    # condition number of K times rounding, far below this
    np.testing.assert_allclose(found.regression, G @ np.linalg.pinv(F) @ y, rtol=1e-6, atol=1e-8)
    theta = F.T @ found.margin.certificate["alpha"]
    assert np.min(y * (F @ theta)) == pytest.approx(float(found.margin.unwrap()), rel=1e-6)
    np.testing.assert_allclose(found.classifier, G @ theta, rtol=1e-8, atol=1e-10)
    assert found.eigenvalues[0] > 0
