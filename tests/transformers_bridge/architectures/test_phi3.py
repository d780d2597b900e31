"""Phi-3 against transformers, randomly drawn."""

import pytest
from random_checkpoints import refusal
from reference_transformers import TOLERANCE, concentration, differences, random_reference

from attlas.transformers.architectures import phi3

SMALL = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "vocab_size": 31,
    "max_position_embeddings": 64,
}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 50.0,
    "partial_rotary_factor": 0.75,
    "short_factor": [1.0, 1.3, 2.0],
    "long_factor": [2.0, 3.0, 4.0],
}
CASES = {
    "phi3": {},
    "phi3, grouped, window, tied": {
        "num_key_value_heads": 2,
        "sliding_window": 4,
        "tie_word_embeddings": True,
    },
    "phi3, a part turns": {
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 50.0,
            "partial_rotary_factor": 0.5,
        }
    },
    "phi3, longrope of a part": {
        "num_key_value_heads": 2,
        "original_max_position_embeddings": 16,
        "rope_parameters": LONGROPE,
    },
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_transformers(case, dtype):
    reference = random_reference("phi3", dtype, **(SMALL | CASES[case]))
    assert concentration(reference) > 1.3  # no test of uniform maps
    found = differences(phi3, reference)
    assert max(found.values()) <= TOLERANCE[dtype], found


@pytest.mark.parametrize(
    "change",
    [
        {"original_max_position_embeddings": 32},  # another factor of queries and keys
        {"rope_parameters": LONGROPE | {"short_factor": [1.0, 1.0, 1.0]}},
        {"num_key_value_heads": 2, "sliding_window": 3},
    ],
)
def test_another_reading_is_noticed(change):
    settings = SMALL | CASES["phi3, longrope of a part"]
    reference = random_reference("phi3", "float32", **settings)
    reference.config |= change
    assert differences(phi3, reference)["logits"] > 100 * TOLERANCE["float32"]


def test_longrope_is_read_up_to_the_original_context():
    settings = SMALL | CASES["phi3, longrope of a part"]
    reference = random_reference("phi3", "float32", **settings)
    assert phi3.read(reference.config, reference.tensors, "it").context == 16


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rope_scaling": {"type": "su"}}, "type = 'su' in the configuration is not supported"),
        (
            {"rope_parameters": LONGROPE | {"partial_rotary_factor": 0.2}},
            "partial_rotary_factor = 0.2 in the configuration turns 1 of the 6 coordinates",
        ),
        (
            {"rope_parameters": LONGROPE | {"partial_rotary_factor": 0.34}},
            "short_factor = [1.0, 1.3, 2.0] in the configuration is not a list of 1 numbers",
        ),
        ({"num_key_value_heads": 3}, "num_key_value_heads = 3 in the configuration does not"),
        ({"lm_head_bias": True}, "lm_head_bias = True in the configuration is not supported"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_line(change, text):
    said = refusal("phi3", change)
    assert said.startswith(text)
    assert "\n" not in said
