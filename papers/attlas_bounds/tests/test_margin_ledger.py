"""The ledger on a trained layer: outputs of the layer, every step, and refusal of nothing else."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
from attlas.data.unit_bit_embedding import one_hot_bits
from attlas.training.sparse_majority.outputs import majority_outputs
from attlas.training.sparse_majority.projected import ProjectedSettings, train_projected
from attlas_bounds.library.sparse_majority.margin_ledger import STEPS, _sample, margin_ledger

SETTINGS = ProjectedSettings(steps=150, batch=32)


def drawn():
    data = make_sparse_majority(jax.random.key(0), 3, MajorityDesign(3000, 200, 1, 5))
    return eqx.tree_at(lambda own: own.embedding, data, one_hot_bits(3))


def test_margins_are_those_of_the_trained_layer():
    data = drawn()
    own = SETTINGS._replace(linear=True)
    models = train_projected(jax.random.key(1), data, jnp.asarray([4.0], jnp.float32), own)
    model = jax.tree.map(lambda a: a[0], models)
    sample = _sample(model, data, data.bits[:50], data.labels[:50])
    out = np.asarray(majority_outputs(model, data.embedding, data.bits[:50]), float)
    signs = 2.0 * np.asarray(data.labels[:50]) - 1
    np.testing.assert_allclose(sample.margins, signs * out, atol=1e-5)


@pytest.mark.thorough
def test_every_step_has_its_number_and_the_last_one_needs_fewest():
    found = margin_ledger(jax.random.key(1), drawn(), 4.0, SETTINGS, 0.05)
    assert len(found.certified) == len(found.needed) == len(STEPS)
    assert np.isnan(found.needed[0])
    assert np.all(np.diff(found.needed[1:-2]) < 0)
    # the entropy of attention leaves localisation a rate of m^(-1/2)
    assert found.needed[-2] > 10 * found.needed[-3]
    assert found.needed[-1] < found.needed[5] / 10
    assert found.held_out <= found.certified[1:].min()
