"""ModernBERT against transformers, randomly drawn."""

import pytest
from random_checkpoints import refusal
from reference_transformers import TOLERANCE, concentration, differences, random_reference

from attlas.transformers.architectures import modernbert

SMALL = {
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "intermediate_size": 20,
    "vocab_size": 31,
    "max_position_embeddings": 64,
    "local_attention": 4,
}
RULES = {
    "full_attention": {"rope_type": "default", "rope_theta": 90.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 30.0},
}
CASES = {
    "modernbert": {},
    "modernbert, biases everywhere": {
        "norm_bias": True,
        "attention_bias": True,
        "mlp_bias": True,
        "classifier_bias": True,
    },
    "modernbert, other rules and kinds": {
        "rope_parameters": RULES,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "decoder_bias": False,
        "classifier_activation": "silu",
    },
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_transformers(case, dtype):
    reference = random_reference("modernbert", dtype, **(SMALL | CASES[case]))
    assert concentration(reference) > 1.3  # no test of uniform maps
    found = differences(modernbert, reference)
    assert max(found.values()) <= TOLERANCE[dtype], found


@pytest.mark.parametrize(
    "change",
    [
        {"local_attention": 6},
        {"layer_types": ["full_attention"] * 4},
        {"rope_parameters": RULES | {"sliding_attention": RULES["full_attention"]}},
        {"rope_parameters": RULES | {"full_attention": RULES["sliding_attention"]}},
    ],
)
def test_another_reading_is_noticed(change):
    settings = SMALL | CASES["modernbert, other rules and kinds"]
    reference = random_reference("modernbert", "float32", **settings)
    reference.config |= change
    assert differences(modernbert, reference)["logits"] > 100 * TOLERANCE["float32"]


def test_configurations_of_older_releases_are_the_same_model():
    reference = random_reference("modernbert", "float32", **SMALL)
    for newer in ("rope_parameters", "layer_types"):
        reference.config.pop(newer, None)
    older = {"global_rope_theta": 160000.0, "local_rope_theta": 10000.0}
    reference.config |= older | {"global_attn_every_n_layers": 3, "layer_norm_eps": 1e-5}
    assert max(differences(modernbert, reference).values()) <= TOLERANCE["float32"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"num_attention_heads": 4}, "hidden_size / num_attention_heads = 3 in the configuration"),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling = {'type': 'linear'} in the config"),
        ({"layer_types": "full"}, "layer_types = full in the configuration is not supported"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_line(change, text):
    said = refusal("modernbert", change)
    assert said.startswith(text)
    assert "\n" not in said
