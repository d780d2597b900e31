"""Encoders against transformers, randomly drawn."""

import pytest
from reference_transformers import TOLERANCE, concentration, differences, random_reference

from attlas.transformers.architectures import albert, bert, vit

SMALL = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 20,
}
TEXT = {**SMALL, "vocab_size": 31, "max_position_embeddings": 20}
CASES = {
    "bert, tanh units": (bert, "bert", {**TEXT, "hidden_act": "gelu_new"}),
    "roberta": (bert, "roberta", {**TEXT, "layer_norm_eps": 1e-5}),
    "albert, two groups of two": (
        albert,
        "albert",
        {
            **TEXT,
            "embedding_size": 10,
            "num_hidden_layers": 3,
            "num_hidden_groups": 2,
            "inner_group_num": 2,
        },
    ),
    "vit": (vit, "vit", {**SMALL, "image_size": 8, "patch_size": 4}),
    "vit, no biases of queries": (
        vit,
        "vit",
        {**SMALL, "image_size": 6, "patch_size": 2, "num_channels": 1, "qkv_bias": False},
    ),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_transformers(case, dtype):
    reader, kind, settings = CASES[case]
    reference = random_reference(kind, dtype, **settings)
    assert concentration(reference) > 1.3  # no test of uniform maps
    found = differences(reader, reference)
    assert max(found.values()) <= TOLERANCE[dtype], found
