"""GPT-2 against transformers, randomly drawn."""

import numpy as np
import pytest
from random_checkpoints import random_checkpoint, refusal
from reference_transformers import TOLERANCE, concentration, differences, random_reference

from attlas.transformers.architectures import gpt2

SMALL = {
    "n_embd": 24,
    "n_head": 4,
    "n_layer": 2,
    "vocab_size": 31,
    "n_positions": 20,
}
CASES = {
    "as published": {},
    "other scales, untied, narrow units": {
        "n_inner": 10,
        "scale_attn_by_inverse_layer_idx": True,
        "tie_word_embeddings": False,
        "activation_function": "gelu",
        "layer_norm_epsilon": 1e-3,
    },
    "no scale": {"scale_attn_weights": False},
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_transformers(case, dtype):
    reference = random_reference("gpt2", dtype, **(SMALL | CASES[case]))
    assert concentration(reference) > 1.5  # no test of uniform maps
    assert max(differences(gpt2, reference).values()) <= TOLERANCE[dtype]


def test_another_scale_is_noticed():
    reference = random_reference("gpt2", "float32", **SMALL)
    reference.config["scale_attn_by_inverse_layer_idx"] = True
    assert differences(gpt2, reference)["logits"] > 100 * TOLERANCE["float32"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"add_cross_attention": True}, "add_cross_attention = True in the configuration is not"),
        ({"n_head": 5}, "n_head = 5 in the configuration does not divide n_embd = 12"),
        ({"activation_function": "relu6"}, "activation_function = 'relu6' in the configuration"),
        ({"n_inner": 7}, "tensor 'h.0.mlp.c_fc.weight' has shape (12, 48), the configuration"),
        ({"n_layer": 3}, "tensor 'h.2.attn.c_attn.weight' is missing"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_line(change, text):
    said = refusal("gpt2", change)
    assert said.startswith(text)
    assert "\n" not in said


def test_classifier_is_read_without_words():
    config, tensors = random_checkpoint("gpt2")
    model = gpt2.read(config, tensors | {"score.weight": np.ones((2, 12))}, "classifier")
    assert model.readout.lm_head is None
    assert gpt2.read(config, tensors, "words").readout.lm_head is not None
