"""Margins along trainings against the model evaluated record by record."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.library.measures.reached_margins import SCALES, reached_margins


def test_margins_are_those_of_each_record():
    rng = np.random.default_rng(0)
    U, W = (
        jnp.asarray(rng.normal(size=(2, 4, 3, 5, 6))),
        jnp.asarray(rng.normal(size=(2, 4, 3, 6, 6))),
    )
    X, y = jnp.asarray(rng.normal(size=(7, 5, 6))), jnp.asarray(rng.choice([-1.0, 1.0], size=7))
    found = reached_margins(jax.vmap(jax.vmap(MultiHead))(U, W), X, y)
    assert found.shape == (len(SCALES), 2, 4)

    def signed(U, W):
        return np.array([float(label * MultiHead(U, W)(x)) for x, label in zip(X, y, strict=True)])

    for e, k in np.ndindex(2, 4):
        own, start = (U[e, k], W[e, k]), (U[e, 0], W[e, 0])
        decoder = signed(*own).min() / np.linalg.norm(own[0])
        norm = np.sqrt(sum(np.sum(a**2) for a in own))
        sphere = signed(*(np.sqrt(2) / norm * a for a in own)).min()
        np.testing.assert_allclose(found[:2, e, k], [decoder, sphere], rtol=1e-12)
        if k:
            moved = np.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(own, start, strict=True)))
            per_distance = np.sqrt(2) * (signed(*own) - signed(*start)).min() / moved
            np.testing.assert_allclose(found[2, e, k], per_distance, rtol=1e-12)
    assert np.isnan(found[2, :, 0]).all()
