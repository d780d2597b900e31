import jax.numpy as jnp
import numpy as np
import pytest

from attlas.kernels.multi_head_ntk import ntk_features
from attlas.models.attention.multi_head import Decoder, MultiHead
from liu2021analyzing.library.audit.tangent_prediction import tangent_prediction


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
