"""Attention is read without the feedforward units, and is that of the whole layer."""

import jax
import numpy as np
from random_transformer import random_transformer

from attlas.models.networks.encoder import make_encoder
from attlas.transformers import load_model
from attlas.transformers.layer_reader import LayerReader, read_attention


def test_the_block_is_the_layers_and_leaves_the_units_unread():
    whole = random_transformer().layer(1)

    def unread(stored):
        raise AssertionError(f"feedforward of {stored} is read")

    reader = LayerReader(lambda stored: read_attention(lambda _: whole, stored), unread)
    block = read_attention(reader, 0)
    assert block.norm_placement == whole.norm_placement
    for part in ("attention", "attention_norm", "feedforward_norm"):
        same = jax.tree.map(np.array_equal, getattr(block, part), getattr(whole, part))
        assert jax.tree.all(same)
    complete = LayerReader(reader.block, lambda _: whole.feedforward)(0)
    assert jax.tree.all(jax.tree.map(np.array_equal, complete, whole))


def test_a_model_of_a_file_reads_its_tables_once_and_when_asked():
    encoder = make_encoder(jax.random.key(0), 9, 5, width=4, blocks=2, heads=2, hidden=8)
    model = load_model(encoder)
    assert isinstance(model.read_layer, LayerReader)
    assert "embedding" not in vars(model)
    assert model.embedding is model.embedding
    assert model.readout is model.readout
