"""What is asked of every architecture, at the sizes of `random_checkpoints.CONFIGURATIONS`."""

import jax.numpy as jnp
import numpy as np
import pytest
from random_checkpoints import CONFIGURATIONS, random_checkpoint
from reference_transformers import TOLERANCE, concentration, differences, random_reference

from attlas.transformers.architecture_table import architecture_table
from attlas.transformers.forward import attention_weights, head_outputs

KINDS = sorted(architecture_table())
OF_THE_LIBRARY = [kind for kind in KINDS if not kind.startswith(("attlas", "llama2.c"))]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kind", OF_THE_LIBRARY)
def test_agrees_with_transformers(kind, dtype):
    reference = random_reference(kind, dtype, **CONFIGURATIONS[kind])
    assert concentration(reference) > 1.3  # no test of uniform maps
    found = differences(architecture_table()[kind], reference)
    assert max(found.values()) <= TOLERANCE[dtype], found


@pytest.mark.parametrize("kind", KINDS)
def test_sum_over_heads_is_the_fused_attention(kind):
    config, tensors = random_checkpoint(kind)
    reader = architecture_table()[kind]
    model = reader.read(config, tensors, "random")
    x = jnp.asarray(np.random.default_rng(1).normal(size=(5, model.width)))
    for index in range(model.layers):
        attention = model.layer(index).attention
        heads = head_outputs(
            attention, attention_weights(attention, jnp.asarray(x)), jnp.asarray(x)
        )
        fused = reader.fused_attention(config, tensors, index, np.asarray(x))
        difference = np.abs(np.asarray(heads.sum(axis=0) + attention.b_O[None]) - fused).max()
        # Sums of at most 24 terms in float64, three in a row.
        assert difference <= 3 * 24 * np.finfo(np.float64).eps * np.abs(fused).max()
