import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
from attlas.data.unit_bit_embedding import one_hot_bits
from attlas.training.sparse_majority.certified_error import (
    ball_complexities,
    certified_error,
    ramp_risks,
)
from attlas.training.sparse_majority.projected import ProjectedSettings, train_projected
from attlas_bounds.library.sparse_majority import measured_crossing as module
from attlas_bounds.library.sparse_majority.measured_crossing import measured_crossing

RADII, MARGINS = np.array([2.0, 4.0]), np.array([0.2, 0.6])
SETTINGS = ProjectedSettings(steps=60, batch=16)


def drawn():
    data = make_sparse_majority(jax.random.key(0), 3, MajorityDesign(400, 60, 1, 5))
    return eqx.tree_at(lambda own: own.embedding, data, one_hot_bits(3))


@pytest.mark.thorough
def test_each_size_is_the_bound_on_its_own_sequences(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 100)
    monkeypatch.setattr(module, "READ", 150)
    data = drawn()
    found = measured_crossing(jax.random.key(1), data, [100, 400], RADII, MARGINS, SETTINGS, 0.05)
    sizes = np.array([100.0, 400.0])
    complexity = np.asarray(ball_complexities(RADII, sizes, 3, 5))
    for k, (m, read) in enumerate(((100, 100), (400, 150))):
        part = eqx.tree_at(
            lambda d: (d.bits, d.labels), data, (data.bits[:read], data.labels[:read])
        )
        models = train_projected(jax.random.key(1), part, jnp.asarray(RADII, "float32"), SETTINGS)
        ramp = ramp_risks(
            models, data.embedding, data.bits[:m], data.labels[:m], jnp.asarray(MARGINS)
        )[1]
        own = slice(k, k + 1)
        whole = certified_error(
            np.asarray(ramp, float), complexity[:, own], sizes[own], MARGINS, 0.05
        )
        # means of float32 numbers in [0, 1], in blocks or not
        np.testing.assert_allclose(found.certified[k], whole.error[:, 0].min(0), atol=1e-5)
    assert (found.held_out <= found.held_out_bound).all()


def test_labels_that_are_noise_are_never_certified():
    data = drawn()
    noise = jnp.asarray(np.random.default_rng(0).integers(0, 2, 400).astype(np.int32))
    false = eqx.tree_at(lambda d: d.labels, data, noise)
    found = measured_crossing(jax.random.key(1), false, [400], RADII, MARGINS, SETTINGS, 0.05)
    assert found.certified.min() > 0.5
