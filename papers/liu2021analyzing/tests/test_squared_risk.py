"""The risk against its definition, on the samples that count."""

import jax.numpy as jnp
import numpy as np
import pytest

from liu2021analyzing.library.data.attended_regression import layer_outputs
from liu2021analyzing.library.losses.squared_risk import squared_risk
from liu2021analyzing.library.models.two_layer import TwoLayer


def test_samples_of_weight_zero_do_not_count_and_all_weights_are_penalised():
    rng = np.random.default_rng(0)
    W1, w2 = rng.standard_normal((3, 2)), rng.standard_normal(2)
    x, y = rng.standard_normal((5, 3)), rng.standard_normal(5)
    model = TwoLayer(jnp.asarray(W1), jnp.asarray(w2), sharpness=5.0)
    weights = jnp.array([1.0, 1, 1, 0, 0])
    found = squared_risk(model, jnp.asarray(x), jnp.asarray(y), weights, 0.1)
    left = (layer_outputs(x, W1, w2, 5.0) - y)[:3]
    penalty = 0.05 * (np.sum(W1**2) + np.sum(w2**2))
    assert float(found) == pytest.approx(np.mean(left**2) / 2 + penalty)
