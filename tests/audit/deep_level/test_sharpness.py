"""The sharpness of a whole model: against the dense Hessian, and the step that it allows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from random_transformer import random_transformer

from attlas.audit.deep_level.head_curvature import mean_loss
from attlas.audit.deep_level.sharpness import model_sharpness
from attlas.audit.sequence_loss import judged_batch
from attlas.core.errors import UserError
from attlas.transformers.whole_model import whole_model

MODEL = random_transformer(layers=1, H=1, d=3, k=2, context=8)
BATCH = judged_batch(MODEL, [np.array([1, 4, 2, 3])])


@pytest.mark.thorough
def test_it_is_the_largest_eigenvalue_of_the_dense_hessian():
    found = model_sharpness(MODEL, BATCH, 0.5, momentum=0.5)
    flat, unravel = ravel_pytree(whole_model(MODEL))
    data = tuple(jnp.asarray(part) for part in BATCH[1:])
    dense = jax.jit(jax.hessian(lambda vector: mean_loss(unravel(vector), *data)))(flat)
    largest = float(np.linalg.eigvalsh(np.asarray(dense))[-1])
    np.testing.assert_allclose(found.sharpness, largest, rtol=1e-8)
    assert found.sharpness_low <= largest <= found.sharpness_high
    np.testing.assert_allclose(found.step_times_sharpness, 0.5 * largest, rtol=1e-8)
    assert found.threshold == 3.0


def test_a_step_that_is_none_is_refused():
    with pytest.raises(UserError, match="learning_rate = 0"):
        model_sharpness(MODEL, BATCH, 0.0)
