import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.models.networks.encoder import make_encoder
from attlas.transformers.architectures.attlas_encoder import fused_attention
from attlas.transformers.attlas_model import stored_form
from attlas.transformers.forward import apply_layer, attention_weights, head_outputs
from attlas.transformers.load_model import load_model

IDS = np.array([3, 0, 6, 2, 2])


def encoder(vocabulary=7):
    return make_encoder(jax.random.key(1), vocabulary, 5, width=6, blocks=2, heads=3, hidden=8)


@pytest.mark.thorough
def test_attention_and_logit_are_the_networks_own():
    network = encoder()
    model = load_model(network)
    assert (model.layers, model.heads_per_layer, model.vocabulary, model.context) == (2, 3, 8, 6)
    assert model.parameters == sum(leaf.size for leaf in jax.tree.leaves(network))
    with_start = np.concatenate([[7], IDS])
    logit, maps = network._forward(jnp.asarray(IDS), jnp.ones(5, bool), None)
    # A few hundred roundings of numbers of size 1 to 10.
    near = {"rtol": 1e-12, "atol": 1e-12}
    found = model.attention(with_start)
    np.testing.assert_allclose(found[0], maps[0], **near)
    np.testing.assert_allclose(found[1][:, :1], maps[1], **near)
    np.testing.assert_allclose(model.logits(with_start), logit[None], **near)


@pytest.mark.thorough
def test_padding_is_not_attended_to():
    network = encoder()
    model = load_model(network)
    mask = np.arange(5) < 3
    _, maps = network._forward(jnp.asarray(IDS), jnp.asarray(mask), None)
    x = model.embed(np.concatenate([[7], IDS]))
    _, weights = apply_layer(model.layer(0), x, jnp.asarray(np.concatenate([[True], mask])))
    np.testing.assert_allclose(weights[:, :4], maps[0][:, :4], rtol=1e-12, atol=1e-12)


def test_continuous_tokens_are_an_image_of_one_column():
    network = encoder(vocabulary=4)
    model = load_model(stored_form(network)[1], config=stored_form(network, continuous=True)[0])
    tokens = np.random.default_rng(0).normal(size=(5, 4))
    _, maps = network._forward(jnp.asarray(tokens), jnp.ones(5, bool), None)
    found = model.attention(tokens.T[:, :, None])
    np.testing.assert_allclose(found[0], maps[0], rtol=1e-12, atol=1e-12)
    assert model.parameters == sum(leaf.size for leaf in jax.tree.leaves(network))


def test_the_sum_over_heads_is_the_fused_attention():
    config, tensors = stored_form(encoder())
    model = load_model(tensors, config=config)
    x = np.random.default_rng(0).normal(size=(4, 6))
    for index in range(2):
        attention = model.layer(index).attention
        weights = attention_weights(attention, jnp.asarray(x))
        heads = head_outputs(attention, weights, jnp.asarray(x))
        whole = fused_attention(config, tensors, index, x)
        np.testing.assert_allclose(heads.sum(axis=0), whole, rtol=0, atol=1e-13)
        rolled = {**tensors, f"blocks.{index}.query": np.roll(tensors["blocks.0.query"], 1, 1)}
        wrong = fused_attention(config, rolled, index, x)
        assert np.abs(wrong - whole).max() > 1e-3
