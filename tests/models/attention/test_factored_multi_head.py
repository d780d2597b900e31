"""The factored model against its merged form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.attention.factored_multi_head import FactoredMultiHead
from attlas.models.attention.multi_head import Decoder

H, T, D, M, V = 3, 4, 3, 2, 5


def draw(decoder):
    rng = np.random.default_rng(5)
    shapes = [(H, D, M), (H, D, M), (H, D, V), (H, T, V) if decoder is Decoder.FULL else (H, V)]
    parts = (jnp.asarray(rng.normal(size=shape)) for shape in shapes)
    return FactoredMultiHead(*parts, decoder), jnp.asarray(rng.normal(size=(T, D)))


@pytest.mark.parametrize("decoder", list(Decoder))
def test_merged_is_the_same_function(decoder):
    model, X = draw(decoder)
    merged = model.merged()
    assert merged.W.shape == (H, D, D)
    assert merged.U.shape == ((H, T, D) if decoder is Decoder.FULL else (H, D))

    @jax.jit
    def outputs(model, X):
        merged, pull = jax.vjp(lambda m: m.merged(), model)
        return (
            model(X),
            merged(X),
            jax.grad(lambda m: m(X))(model),
            pull(jax.grad(merged_at)(merged)),
        )

    def merged_at(merged):
        return merged(X)

    alone, other, slope, chained = outputs(model, X)
    # Both ways sum H T T D (M + V) products of size a few.
    limit = 64 * H * T * T * D * (M + V) * np.finfo(float).eps
    assert abs(alone - other) <= limit
    # The gradient in the factors is the merged gradient pulled back by the chain rule.
    for ours, pulled in zip(jax.tree.leaves(slope), jax.tree.leaves(chained[0]), strict=True):
        assert jnp.max(jnp.abs(ours - pulled)) <= limit


def test_factors_that_do_not_fit():
    model, _ = draw(Decoder.FULL)
    keys, values = model.W_K, model.W_V
    with pytest.raises(UserError, match=r"W_Q has shape .* and W_K"):
        FactoredMultiHead(keys[..., :1], keys, values, model.W_O)
    with pytest.raises(UserError, match="W_V has shape"):
        FactoredMultiHead(keys, keys, values[:, :1], model.W_O)
    with pytest.raises(UserError, match="W_O has shape"):
        FactoredMultiHead(keys, keys, values, model.W_O[..., :1])
    with pytest.raises(UserError, match="the last decoder needs 2"):
        FactoredMultiHead(keys, keys, values, model.W_O, Decoder.LAST)
