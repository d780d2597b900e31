"""Products layer by layer are those of the Hessian that is differentiated through the model."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from random_transformer import random_transformer

from attlas.audit.deep_level.head_curvature import last_hidden_states, mean_loss
from attlas.audit.deep_level.head_hessians import HeadHessians
from attlas.audit.sequence_loss import COMPARED, judged_batch
from attlas.transformers.whole_model import whole_model

DRAW = np.random.default_rng(7)
SEQUENCES = [DRAW.integers(11, size=size) for size in (6, 4, 5)]
CASES = {
    "norm before": {},
    "norm after": {"norm_placement": "post-norm"},
    "parallel": {"norm_placement": "parallel"},
    "rotary, norms of heads, one group": {"rotary": True, "norms": True, "H": 4},
    "outputs": {"causal": False},
    "capped logits, norms behind": {"softcap": 0.8, "out_norms": True},
    "positions in the logits": {"relative": True, "causal": False},
}


def reference(whole, batch, stored, head, vector):
    """H v by forward over reverse through the whole model at once."""
    attention = whole.layers[stored].attention
    group = attention.group[head]
    names, places = ("W_Q", "W_K", "W_V", "W_O"), (head, group, group, head)
    block = [getattr(attention, each)[place] for each, place in zip(names, places, strict=True)]
    flat, unravel = ravel_pytree(block)
    data = [jnp.asarray(part) for part in batch[1:]]
    fixed = last_hidden_states(whole, *data[:2]) if batch.kind in COMPARED else None

    def loss(flat):
        moved = [
            getattr(attention, each).at[place].set(own)
            for each, place, own in zip(names, places, unravel(flat), strict=True)
        ]
        other = eqx.tree_at(lambda a: [getattr(a, each) for each in names], attention, moved)
        return mean_loss(
            eqx.tree_at(lambda w: w.layers[stored].attention, whole, other), *data, fixed
        )

    return jax.jvp(jax.grad(loss), (flat,), (jnp.asarray(vector),))[1]


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_products_are_those_of_the_whole_model(name):
    # layer 0 is used twice, around layer 1: it moves in both of its places
    model = dataclasses.replace(random_transformer(2, **CASES[name]), stored_layer=(0, 1, 0))
    whole, batch = whole_model(model), judged_batch(model, SEQUENCES)
    hessians = HeadHessians(whole, batch)
    heads = np.array([1, 0])
    for stored, place in ((0, 0), (1, 1)):
        vectors = DRAW.normal(size=(2, hessians.size(stored)))
        found = hessians.products(stored, heads)(vectors)[place]
        expected = reference(whole, batch, stored, int(heads[place]), vectors[place])
        assert np.linalg.norm(expected) > 1e-3
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_more_heads_at_once_where_less_is_moved():
    model = random_transformer(2, H=4, layers=3)
    hessians = HeadHessians(whole_model(model), judged_batch(model, SEQUENCES))
    assert hessians.together(0) == 4
    assert hessians.size(0) == 4 * 6 * 3
