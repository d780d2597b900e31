import jax
import jax.numpy as jnp
import numpy as np

from liu2021analyzing.library.models.rectifier import rectify


def test_softplus_lies_above_the_rectifier_by_its_known_error():
    z = jnp.linspace(-3, 3, 61)
    error = np.asarray(rectify(z, sharpness=4.0) - rectify(z))
    expected = np.log1p(np.exp(-4 * np.abs(np.asarray(z)))) / 4
    # A few roundings of numbers of at most 3.
    assert np.max(np.abs(error - expected)) < 8 * 3 * np.finfo(float).eps
    assert np.argmax(error) == 30
    assert np.isclose(error[30], np.log(2) / 4, rtol=1e-14)


def test_rectifier_is_homogeneous_and_softplus_is_not():
    z = jnp.array([-2.0, 0.5, 1.0])
    assert np.array_equal(rectify(4 * z), 4 * rectify(z))
    assert float(jnp.max(jnp.abs(rectify(4 * z, 2.0) - 4 * rectify(z, 2.0)))) > 0.3


def test_float32_stays_float32_and_large_inputs_stay_finite():
    z = jnp.array([-1e30, 1e30], jnp.float32)
    assert rectify(z, 100.0).dtype == jnp.float32
    assert np.asarray(jax.vmap(jax.grad(lambda a: rectify(a, 100.0)))(z)).tolist() == [0, 1]
