import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.losses.l1_penalty import l1_penalty
from liu2021analyzing.library.models.two_layer import make_two_layer
from liu2021analyzing.library.models.word_classifier import make_word_classifier


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
