"""Covers of a hull: the number of steps is Maurey's less one, and enough."""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.maurey import maurey_sparsify
from attlas_bounds.library.bounds.sample_complexity import hilbert_cover_entropy


def test_steps_are_one_fewer_than_the_ceiling():
    ratio = jnp.array([0.2, 1.0, 1.5, 2.0, 7.3])
    steps = hilbert_cover_entropy(ratio, 3) / np.log(4)
    np.testing.assert_allclose(steps, [0, 0, 1, 1, 7])


def test_that_many_steps_reach_the_distance():
    rng = np.random.default_rng(0)
    for _ in range(30):
        V = rng.normal(size=(6, 4))
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        alpha, epsilon = rng.dirichlet(np.ones(6)), rng.uniform(0.3, 0.99)
        steps = round(float(hilbert_cover_entropy(jnp.asarray(epsilon**-2), 6)) / np.log(7))
        f = alpha @ V
        near = maurey_sparsify(alpha, V, steps, constants="corrected")[0]
        assert min(f @ f, np.sum((f - near) ** 2)) <= epsilon**2
