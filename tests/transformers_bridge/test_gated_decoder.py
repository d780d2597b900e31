"""What llama's descendants share, beyond the parity of each."""

import numpy as np
from random_checkpoints import random_checkpoint

from attlas.transformers.architectures import llama
from attlas.transformers.gated_decoder import GatedDecoder


class Counting(dict):
    """Counts what is read."""

    def __init__(self, *args):
        super().__init__(*args)
        self.read = []

    def __getitem__(self, name):
        self.read.append(name)
        return super().__getitem__(name)


def test_layers_are_read_one_at_a_time():
    config, tensors = random_checkpoint("llama")
    file = Counting(tensors)
    model = llama.read(config, file, "counted")
    assert not [name for name in file.read if ".layers." in name]
    model.layer(1)
    read = {name for name in file.read if ".layers." in name}
    assert read == {name for name in tensors if ".layers.1." in name}


def test_parameters_are_those_of_the_file_and_shared_ones_count_once():
    config, tensors = random_checkpoint("llama")
    size = sum(tensor.size for tensor in tensors.values())
    assert llama.read(config, tensors, "own").parameters == size
    tied = {"tie_word_embeddings": True}
    embedding = tensors["model.embed_tokens.weight"]
    shared = tensors | {"lm_head.weight": embedding.copy()}
    assert llama.read(config | tied, shared, "shared").parameters == size - embedding.size
    del shared["lm_head.weight"]
    model = llama.read(config | tied, shared, "shared")
    assert model.parameters == size - embedding.size
    assert model.readout.words is not None
    assert np.array_equal(model.readout.words.W, embedding.T)
    assert llama.read(config, shared, "bare").readout.words is None


def test_shapes_of_a_layer_name_every_tensor_once():
    plan = GatedDecoder(
        architecture="any",
        names={
            role: role
            for role in (
                *("words", "last_norm", "readout", "queries", "keys", "values", "output"),
                *("gate", "inner", "outer", "attention_norm", "feedforward_norm"),
                *("query_norm", "key_norm"),
            )
        },
        prefixes=("",),
        width=6,
        layers=1,
        heads=2,
        groups=1,
        head_size=4,
        hidden=5,
        vocabulary=7,
        context=3,
        eps=1e-5,
        frequencies=np.ones(2),
        interleaved=False,
        windows=(None,),
        activation="silu",
        input_bias=True,
        head_norms=True,
    )
    shapes = plan.layer_shapes(0)
    assert shapes["layers.0.queries.weight"] == (8, 6)
    assert shapes["layers.0.keys.bias"] == (4,)
    assert "layers.0.output.bias" not in shapes
    assert shapes["layers.0.query_norm.weight"] == (4,)
    assert len(shapes) == 7 + 3 + 4
