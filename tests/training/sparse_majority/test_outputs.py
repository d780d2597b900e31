import equinox as eqx
import jax
import numpy as np

from attlas._jax.device_arrays import generator
from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.training.sparse_majority.outputs import majority_outputs


def test_the_table_is_the_model_on_the_tokens():
    size = 3.0  # large enough that attention is far from uniform
    design = MajorityDesign(train=7, validation=1, indices=1, dimension=4)
    data = make_sparse_majority(jax.random.key(0), 5, design, "float64")
    draw = generator(jax.random.key(1))
    shapes = ((4,), (2, 4, 4), (2, 4, 3), (2, 3, 4))
    model = SingleLayerTransformer(*(jax.device_put(size * draw.normal(size=s)) for s in shapes))

    def plain(bits):
        X = data.embedding(bits)
        return model(X, X[-1])

    found = np.asarray(majority_outputs(model, data.embedding, data.bits))
    tokens = np.asarray(jax.vmap(plain)(data.bits))
    # attention sums up to one: sums of T + d numbers, scaled by the largest intermediate product
    scale = np.abs(model.w).sum() * np.abs(model.output).sum() * np.abs(model.value).sum()
    assert np.ptp(tokens) > 0
    close = {"rtol": 0, "atol": 50 * np.finfo(float).eps * float(scale)}
    np.testing.assert_allclose(found, tokens, **close)

    # Scores of all possible tokens that lie 725 apart, whose exponentials would overflow.
    X = np.stack([np.asarray(data.embedding(bits)) for bits in data.bits])
    both = np.concatenate([data.embedding(0 * data.bits[0]), data.embedding(0 * data.bits[0] + 1)])
    scores = np.einsum("td,hde,e->ht", both, model.query_key, both[-1])
    larger = 725 / np.ptp(scores, axis=1)[:, None, None] * model.query_key
    model = eqx.tree_at(lambda model: model.query_key, model, larger)
    highest = np.einsum("ntd,hde,e->hnt", X, larger, both[-1]).max(axis=2)
    # Smaller by up to e^100 than what is absent, which costs no digit; by e^700 it underflows.
    near = (highest > highest.max(axis=1, keepdims=True) - 100).all(axis=0)
    assert near.sum() > 1
    found = np.asarray(majority_outputs(model, data.embedding, data.bits))
    tokens = np.asarray(jax.vmap(plain)(data.bits))
    np.testing.assert_allclose(found[near], tokens[near], rtol=1e-10)
