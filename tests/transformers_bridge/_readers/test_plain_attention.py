import jax.numpy as jnp
import numpy as np

from attlas.models.networks.translator import MultiHeadAttention
from attlas.transformers._readers.plain_attention import plain_fused, plain_layers
from attlas.transformers.attlas_tensors import AttlasTensors


def test_both_sides_are_the_networks_attention():
    rng = np.random.default_rng(0)
    parts = {name: rng.normal(size=(6, 6)) for name in ("query", "key", "value", "output")}
    x = rng.normal(size=(4, 6))
    own, weights = MultiHeadAttention(*map(jnp.asarray, parts.values()), heads=3)(
        jnp.asarray(x), jnp.asarray(x), jnp.ones((4, 4), bool)
    )
    found = plain_fused(parts, "", 3, x)
    # Sums of six products of numbers of size 1 to 10, in another order.
    np.testing.assert_allclose(found, own, rtol=0, atol=1e-12)
    rest = {"up": np.ones((6, 2)), "down": np.ones((2, 6)), "scales": np.ones((2, 6))}
    config = {"width": 6, "heads": 3, "hidden": 2}
    stored = AttlasTensors("it", config, {**parts, **rest})
    layer = plain_layers(stored, lambda _: "", lambda _: "", "relu", 1e-6)(0)
    values = np.einsum("td,hdk->htk", x, layer.attention.W_V)
    sums = np.einsum("hst,htk,hkd->sd", weights, values, layer.attention.W_O)
    np.testing.assert_allclose(sums, own, rtol=0, atol=1e-12)
    assert layer.attention.scale == 2**-0.5
