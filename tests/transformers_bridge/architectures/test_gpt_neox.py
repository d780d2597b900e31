"""GPT-NeoX against transformers, randomly drawn."""

import pytest
from random_checkpoints import refusal
from reference_transformers import TOLERANCE, concentration, differences, random_reference

from attlas.transformers.architectures import gpt_neox

SMALL = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "vocab_size": 31,
    "max_position_embeddings": 64,
}
CASES = {
    "as published": {},
    "one after the other, half of the coordinates turn, no biases": {
        "use_parallel_residual": False,
        "attention_bias": False,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "rope_type": "linear",
            "rope_theta": 20.0,
            "partial_rotary_factor": 0.5,
            "factor": 2.0,
        },
    },
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_transformers(case, dtype):
    reference = random_reference("gpt_neox", dtype, **(SMALL | CASES[case]))
    assert concentration(reference) > 1.5  # no test of uniform maps
    assert max(differences(gpt_neox, reference).values()) <= TOLERANCE[dtype]


@pytest.mark.parametrize(
    "change",
    [{"use_parallel_residual": False}, {"rope_parameters": {"partial_rotary_factor": 0.5}}],
)
def test_another_reading_is_noticed(change):
    reference = random_reference("gpt_neox", "float32", **SMALL)
    reference.config |= change
    found = differences(gpt_neox, reference)
    assert found["logits"] > 100 * TOLERANCE["float32"]


def test_older_names_are_the_same_model():
    settings = SMALL | {"rope_parameters": {"rope_theta": 20.0, "partial_rotary_factor": 0.5}}
    reference = random_reference("gpt_neox", "float32", **settings)
    del reference.config["rope_parameters"]
    reference.config |= {"rotary_emb_base": 20, "rotary_pct": 0.5}
    reference.tensors["embed_out.weight"] = reference.tensors.pop("lm_head.weight")
    assert max(differences(gpt_neox, reference).values()) <= TOLERANCE["float32"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rotary_pct": 0.5}, "rotary_pct = 0.5 in the configuration turns 3 of the 6"),
        ({"rotary_pct": 0.1}, "rotary_pct = 0.1 in the configuration turns 0 of the 6"),
        ({"num_attention_heads": 7}, "num_attention_heads = 7 in the configuration does not"),
        ({"attention_bias": False}, "tensor 'gpt_neox.layers.0.attention.dense.bias' has no place"),
        ({"hidden_act": "x"}, "hidden_act = 'x' in the configuration is not supported"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_line(change, text):
    said = refusal("gpt_neox", change)
    assert said.startswith(text)
    assert "\n" not in said
