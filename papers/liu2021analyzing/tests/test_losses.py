"""The risk against its definition, on the samples that count."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.data.attended_regression import layer_outputs
from liu2021analyzing.library.losses import l1_penalty, squared_risk
from liu2021analyzing.library.models.two_layer import TwoLayer, make_two_layer
from liu2021analyzing.library.models.word_classifier import make_word_classifier


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


@pytest.mark.thorough
def test_named_parameters_of_a_nested_model_are_penalised_and_no_others():
    network = make_two_layer(jax.random.key(0), 6, 4, biases=True)
    model = make_word_classifier(jax.random.key(1), 5, 3, network)
    value, slope = jax.value_and_grad(l1_penalty)(model, ("W1", "w2"), 0.25)
    norm = np.abs(network.W1).sum() + np.abs(network.w2).sum()
    # 28 entries summed.
    assert np.isclose(float(value), 0.25 * norm, rtol=28 * np.finfo(float).eps)
    assert np.array_equal(slope.network.W1, 0.25 * np.sign(network.W1))
    assert float(jnp.max(jnp.abs(slope.embedding))) == 0


def test_a_name_that_does_not_occur_is_refused():
    model = make_two_layer(jax.random.key(0), 2, 2)
    with pytest.raises(UserError, match="no parameter is named W_Q: there are W1, w2"):
        l1_penalty(model, ("W1", "W_Q"))


def test_the_strength_is_that_of_section_6():
    model = {"W1": jnp.array([1.0, -2.0]), "w2": jnp.array([[3.0], [0.5]]), "b": jnp.ones(2)}
    np.testing.assert_allclose(l1_penalty(model, ("W1", "w2")), 6.5e-4, rtol=1e-15)


def test_names_are_the_last_parts_however_deep_and_a_name_may_occur_twice():
    inner = {"W1": jnp.array([[1.0, -2.0, 4.0]]), "b": jnp.array([100.0])}
    model = {"one": {"deep": inner}, "W1": jnp.array([-0.5]), "w2": jnp.array([3.0, 3.0])}
    assert float(l1_penalty(model, ("W1",), 3.0)) == 3 * 7.5
    assert float(l1_penalty(model, ("w2", "W1"), 0.25)) == 0.25 * 13.5
