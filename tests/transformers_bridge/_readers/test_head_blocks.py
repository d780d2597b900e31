"""Blocks of neighbouring columns and rows belong to heads."""

import jax.numpy as jnp
import numpy as np

from attlas.transformers._readers.head_blocks import blocks_of_inputs, blocks_of_outputs, dense

draw = np.random.default_rng(0)
# Sums of at most 6 products of normal numbers, none above 4: two orders of adding them.
BUDGET = 2 * 6 * 4**2 * float(np.finfo(np.float64).eps)


def test_blocks_of_outputs_side_by_side_are_the_whole():
    whole = dense(draw.normal(size=(6, 4)), draw.normal(size=6))
    W, b = blocks_of_outputs(whole, 3)
    assert W.shape == (3, 4, 2)
    x = jnp.asarray(draw.normal(size=(5, 4)))
    parts = jnp.einsum("td,hdk->thk", x, W) + b[None]
    assert np.allclose(parts.reshape(5, 6), whole(x), rtol=0, atol=BUDGET)


def test_blocks_of_inputs_sum_to_the_whole():
    whole = dense(draw.normal(size=(6, 4)), draw.normal(size=4), outputs_first=False)
    W, b = blocks_of_inputs(whole, 3)
    rows = jnp.asarray(draw.normal(size=(5, 6)))
    parts = jnp.einsum("thv,hvd->td", rows.reshape(5, 3, 2), W) + b[None]
    assert np.allclose(parts, whole(rows), rtol=0, atol=BUDGET)


def test_missing_bias_is_zero_of_the_matrix_type():
    assert dense(np.ones((3, 2), np.float32), None).b.dtype == jnp.float32
