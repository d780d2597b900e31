"""OPT against transformers, randomly drawn."""

import numpy as np
import pytest
from random_checkpoints import refusal
from reference_transformers import TOLERANCE, concentration, differences, random_reference

from attlas.transformers.architectures import opt

SMALL = {
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "ffn_dim": 20,
    "vocab_size": 31,
    "max_position_embeddings": 20,
}
CASES = {
    "as published": {},
    "350m: norms after, narrow words": {"do_layer_norm_before": False, "word_embed_proj_dim": 10},
    "narrow words, norms before": {"word_embed_proj_dim": 10, "tie_word_embeddings": False},
    "Galactica: no biases, no gains": {
        "enable_bias": False,
        "layer_norm_elementwise_affine": False,
        "activation_function": "gelu",
    },
    "no last norm": {"_remove_final_layer_norm": True},
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_transformers(case, dtype):
    reference = random_reference("opt", dtype, **(SMALL | CASES[case]))
    assert concentration(reference) > 1.5  # no test of uniform maps
    assert max(differences(opt, reference).values()) <= TOLERANCE[dtype]


def test_another_first_position_is_noticed():
    reference = random_reference("opt", "float32", **SMALL)
    name = "model.decoder.embed_positions.weight"
    reference.tensors[name] = np.roll(reference.tensors[name], 1, axis=0)
    assert differences(opt, reference)["logits"] > 100 * TOLERANCE["float32"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"do_layer_norm_before": False}, "tensor 'model.decoder.final_layer_norm.bias' has no"),
        (
            {"word_embed_proj_dim": None},
            "tensor 'model.decoder.embed_tokens.weight' has shape (13, 8)",
        ),
        ({"num_attention_heads": 5}, "num_attention_heads = 5 in the configuration does not"),
        ({"max_position_embeddings": 18}, "tensor 'model.decoder.embed_positions.weight' has"),
        ({"enable_bias": "yes"}, "enable_bias = 'yes' in the configuration is not true or false"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_line(change, text):
    said = refusal("opt", change)
    assert said.startswith(text)
    assert "\n" not in said
