import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.networks.softmax_network import symmetric_network
from gu2024exploring.library.data.diffusion_pairs import fit_scale, make_diffusion_pairs
from gu2024exploring.library.data.gaussian_mixtures import make_gaussian_mixture
from gu2024exploring.library.data.noise_schedule import make_noise_schedule
from gu2024exploring.library.diffusion.score_estimation import (
    fit_gram,
    fit_kernel,
    fit_network,
    kernel_estimator,
)
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit

SCHEDULE = make_noise_schedule(1.0, T=2.0)
MIXTURE = make_gaussian_mixture([1, 1], [[1.0, 0.0], [-1.0, 0.5]], [0.05, 0.1])
PAIRS = make_diffusion_pairs(jax.random.key(0), MIXTURE, SCHEDULE, 6, T0=0.2)
SCALE = fit_scale(PAIRS)
NETWORK = symmetric_network(jax.random.key(1), 3, 256, 2)


@pytest.mark.parametrize("network", [None, NETWORK])
def test_descent_on_the_gram_side_follows_the_flow_and_descent_in_closed_form(network):
    start = kernel_estimator(PAIRS, SCALE, kernel=network)
    # A short step: descent of n steps s follows the flow to time n s up to (s lambda_max)^2 n.
    step = 1e-5
    gram = fit_gram(start, PAIRS, step_size=step, steps=1000)
    flow = fit_kernel(start, PAIRS, [0.0, 1000 * step])
    assert jnp.all(flow[0].coefficients == 0)
    # (1 - s l)^n lies within n (s l)^2 / 2 of exp(-n s l), and the filter divides by l <= trace.
    inputs = SCALE.encode_all(PAIRS.t, PAIRS.x)
    K = (
        softmax_ntk_limit(inputs, inputs, 1.0)
        if network is None
        else dense_softmax_ntk(network, inputs)
    )
    labels = float(jnp.linalg.norm(PAIRS.labels / SCALE.labels))
    gap = float(jnp.linalg.norm(gram.coefficients - flow[1].coefficients))
    assert gap <= 1000 * step**2 * float(jnp.trace(K)) / 2 * labels
    assert gap > 0


def test_a_limit_estimator_is_the_kernel_expansion_and_interpolates_late():
    start = kernel_estimator(PAIRS, SCALE, sigma=1.5)
    late = fit_kernel(start, PAIRS, [1e12])[0]
    inputs = SCALE.encode_all(PAIRS.t, PAIRS.x)
    K = softmax_ntk_limit(inputs, inputs, 1.5)
    condition = np.linalg.cond(K)
    wanted = PAIRS.labels / SCALE.labels
    slack = 10 * len(wanted) * condition * np.finfo(float).eps
    np.testing.assert_allclose(late.outputs(inputs), wanted, rtol=0, atol=slack)
    np.testing.assert_allclose(
        late.predict(PAIRS.t[0], PAIRS.x[0]), PAIRS.labels[0], rtol=0, atol=slack * SCALE.labels
    )


def test_the_score_is_tweedies_formula_and_errors_are_those_of_predictions():
    found = fit_network(NETWORK, PAIRS, SCALE, step_size=1e-3, steps=20)
    t, x = PAIRS.t[1], PAIRS.x[1]
    mean = found.predict(t, x)
    beta = np.exp(-t / 2)
    np.testing.assert_allclose(
        found.score(SCHEDULE, t, x), (beta * mean - x) / (1 - beta**2), rtol=1e-12
    )
    errors = found.errors(PAIRS)
    np.testing.assert_allclose(errors[1], jnp.sum((mean - PAIRS.labels[1]) ** 2), rtol=1e-12)
    truths = found.errors(PAIRS, PAIRS.truth)
    np.testing.assert_allclose(truths[1], jnp.sum((mean - PAIRS.truth[1]) ** 2), rtol=1e-12)
    # Twenty steps from the zero function have lowered the error of the labels.
    assert float(jnp.mean(errors)) < float(jnp.mean(jnp.sum(PAIRS.labels**2, axis=1)))


def test_a_network_of_small_steps_follows_its_own_kernel():
    # Gradient descent and its kernel agree to the order of the step and of 1 / sqrt(m).
    eta, steps = 1e-2 / NETWORK.width, 20
    network = fit_network(NETWORK, PAIRS, SCALE, step_size=eta, steps=steps)
    start = kernel_estimator(PAIRS, SCALE, kernel=NETWORK)
    kernel = fit_gram(start, PAIRS, step_size=NETWORK.width * eta, steps=steps)
    inputs = SCALE.encode_all(PAIRS.t, PAIRS.x)
    moved = jnp.linalg.norm(kernel.outputs(inputs))
    apart = jnp.linalg.norm(kernel.outputs(inputs) - network.outputs(inputs))
    assert float(apart) < float(moved) / jnp.sqrt(NETWORK.width)


def test_divergence_is_refused():
    start = kernel_estimator(PAIRS, SCALE)
    with pytest.raises(UserError, match="diverges"):
        fit_gram(start, PAIRS, step_size=1e3, steps=1000)
