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
    np.testing.assert_allclose(found, tokens, rtol=0, atol=50 * np.finfo(float).eps * float(scale))
