"""Removing a head: against the model whose weights of that head are changed."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_transformer

from attlas.audit import sequence_loss
from attlas.audit.deep_level.ablation import (
    REPLACEMENTS,
    JointAblation,
    ablate_heads,
    mean_head_outputs,
)
from attlas.audit.sequence_loss import judged_batch
from attlas.transformers.forward import attention_input, attention_weights, head_outputs

RNG = np.random.default_rng(3)
SEQUENCES = [RNG.integers(11, size=size) for size in (5, 7, 4)]


def changed(model, index, edit):
    """The model with one layer's attention edited."""
    layer = eqx.tree_at(lambda each: each.attention, model.layer(index), edit(model.layer(index)))
    read = model.read_layer
    return dataclasses.replace(model, read_layer=lambda k: layer if k == index else read(k))


def loss_of(model, tokens):
    logs = jax.nn.log_softmax(model.logits(tokens), axis=-1)
    return -float(np.mean(np.asarray(logs)[np.arange(tokens.size - 1), tokens[1:]]))


@pytest.mark.thorough
def test_groups_of_similar_length_change_no_loss(monkeypatch):
    model = random_transformer(H=3)
    together = ablate_heads(model, judged_batch(model, SEQUENCES))
    monkeypatch.setattr(sequence_loss, "_SIMILAR", 2)
    apart = ablate_heads(model, judged_batch(model, SEQUENCES))
    np.testing.assert_allclose(apart.base, together.base, rtol=1e-12)
    np.testing.assert_allclose(apart.ablated, together.ablated, rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("norm_placement", ["pre-norm", "post-norm", "parallel"])
def test_zero_and_base_agree_with_a_model_without_the_head(norm_placement):
    model = random_transformer(H=3, norm_placement=norm_placement)
    found = ablate_heads(model, judged_batch(model, SEQUENCES))
    want = [loss_of(model, each) for each in SEQUENCES]
    np.testing.assert_allclose(found.base, want, rtol=1e-12)
    for index in range(2):
        without = changed(
            model,
            index,
            lambda layer: eqx.tree_at(
                lambda a: a.W_O, layer.attention, layer.attention.W_O.at[1].set(0.0)
            ),
        )
        want = [loss_of(without, each) for each in SEQUENCES]
        np.testing.assert_allclose(found.ablated[index, 1, 0], want, rtol=1e-12)


@pytest.mark.thorough
def test_uniform_attention_is_a_head_without_queries():
    model = random_transformer(H=3, causal=False)
    batch = judged_batch(model, SEQUENCES)
    assert batch.kind == "outputs"
    found = ablate_heads(model, batch)
    np.testing.assert_allclose(found.base, 0, atol=1e-14)

    def flat(layer):
        attention = layer.attention
        attention = eqx.tree_at(lambda a: a.W_Q, attention, attention.W_Q.at[2].set(0.0))
        return eqx.tree_at(lambda a: a.b_Q, attention, attention.b_Q.at[2].set(0.0))

    other = changed(model, 0, flat)
    for place, tokens in enumerate(SEQUENCES):
        before = jax.nn.log_softmax(model.logits(tokens), axis=-1)
        after = jax.nn.log_softmax(other.logits(tokens), axis=-1)
        want = float(jnp.mean(jnp.sum(jnp.exp(before) * (before - after), axis=-1)))
        got = found.ablated[0, 2, REPLACEMENTS.index("uniform"), place]
        np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.thorough
def test_mean_output_is_the_mean_over_tokens_that_are_present():
    model = random_transformer(H=3)
    batch = judged_batch(model, SEQUENCES)
    layer = model.layer(0)
    x = model.embed_batch(batch.tokens)
    outputs = []
    for place, tokens in enumerate(SEQUENCES):
        read = attention_input(layer, x[place, : tokens.size])
        weights = attention_weights(layer.attention, read)
        outputs.append(head_outputs(layer.attention, weights, read))
    want = jnp.concatenate(outputs, axis=1).mean(axis=1)
    got = mean_head_outputs(layer, x, jnp.asarray(batch.present))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_one_head_together_is_one_head_alone(replacement):
    model = random_transformer(H=3)
    batch = judged_batch(model, SEQUENCES)
    alone = ablate_heads(model, batch)
    before, after = JointAblation(model, batch)([(1, 2)], replacement)
    np.testing.assert_allclose(before, alone.base, rtol=1e-12)
    want = alone.ablated[1, 2, REPLACEMENTS.index(replacement)]
    np.testing.assert_allclose(after, want, rtol=1e-12)


def test_all_heads_together_leave_the_rest_of_the_model():
    model = random_transformer(H=3)
    batch = judged_batch(model, SEQUENCES)
    everything = [(layer, head) for layer in range(2) for head in range(3)]
    _, after = JointAblation(model, batch)(everything, "zero")
    bare = model
    for index in range(2):
        bare = changed(
            bare,
            index,
            lambda layer: eqx.tree_at(
                lambda a: a.W_O, layer.attention, jnp.zeros_like(layer.attention.W_O)
            ),
        )
    np.testing.assert_allclose(after, [loss_of(bare, each) for each in SEQUENCES], rtol=1e-12)
