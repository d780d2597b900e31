import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.networks.translator import make_translator
from attlas.transformers.architectures.attlas_translator import fused_attention
from attlas.transformers.attlas_model import stored_form
from attlas.transformers.forward import attention_weights, head_outputs
from attlas.transformers.load_model import load_model


def translator():
    return make_translator(jax.random.key(2), (7, 9), width=6, blocks=2, heads=3, hidden=8)


@pytest.mark.thorough
def test_attention_is_that_of_the_networks_encoder():
    network = translator()
    model = load_model(network)
    ids = np.array([3, 0, 6, 2])
    rows = network.attention(jnp.asarray(ids), jnp.ones(4, bool), jnp.arange(3))
    np.testing.assert_allclose(model.attention(ids), rows.encoder, rtol=1e-12, atol=1e-12)


def test_only_the_encoder_is_read_and_the_name_says_so():
    network = translator()
    model = load_model(network, name="mine")
    assert model.name == "mine (encoder; the decoder with its cross attention is not read)"
    encoder = jax.tree.leaves((network.source_words, network.encoder))
    assert model.parameters == sum(leaf.size for leaf in encoder)
    with pytest.raises(UserError, match="the file holds no LM head"):
        model.logits([1, 2])


def test_the_sum_over_heads_is_the_fused_attention():
    config, tensors = stored_form(translator())
    model = load_model(tensors, config=config)
    x = np.random.default_rng(0).normal(size=(4, 6))
    attention = model.layer(1).attention
    heads = head_outputs(attention, attention_weights(attention, jnp.asarray(x)), jnp.asarray(x))
    whole = fused_attention(config, tensors, 1, x)
    np.testing.assert_allclose(heads.sum(axis=0), whole, rtol=0, atol=1e-13)
    rolled = {**tensors, "encoder.1.own.value": np.roll(tensors["encoder.1.own.value"], 1, 1)}
    assert np.abs(fused_attention(config, rolled, 1, x) - whole).max() > 1e-3
