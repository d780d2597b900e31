"""Llama, Mistral, Qwen2, Qwen3 and Gemma against transformers, randomly drawn."""

import pytest
from reference_transformers import TOLERANCE, concentration, differences, random_reference

from attlas.interop.architectures import llama

SMALL = {
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "vocab_size": 31,
    "max_position_embeddings": 64,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 50.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
CASES = {
    "llama": ("llama", {}),
    "llama, grouped, biases, wide heads, tied": (
        "llama",
        {
            "num_key_value_heads": 2,
            "head_dim": 10,
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 30.0},
        },
    ),
    "llama, llama3 frequencies": ("llama", {"head_dim": 16, "rope_parameters": LLAMA3}),
    "llama, linear frequencies": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 40.0, "factor": 3.0}},
    ),
    "mistral, window": ("mistral", {"num_key_value_heads": 2, "sliding_window": 3}),
    "mistral, one group, no window": (
        "mistral",
        {"num_key_value_heads": 1, "sliding_window": None},
    ),
    "qwen2, window from layer 1 on": (
        "qwen2",
        {
            "num_key_value_heads": 2,
            "use_sliding_window": True,
            "sliding_window": 4,
            "max_window_layers": 1,
        },
    ),
    "qwen2, no window": ("qwen2", {"num_key_value_heads": 4, "sliding_window": 4}),
    "qwen3": (
        "qwen3",
        {
            "num_key_value_heads": 2,
            "head_dim": 10,
            "attention_bias": True,
            "use_sliding_window": True,
            "sliding_window": 3,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "gemma": ("gemma", {"num_key_value_heads": 1, "head_dim": 16, "hidden_act": "gelu"}),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_transformers(case, dtype):
    kind, settings = CASES[case]
    reference = random_reference(kind, dtype, **(SMALL | settings))
    assert concentration(reference) > 1.5  # no test of uniform maps
    found = differences(llama, reference)
    assert max(found.values()) <= TOLERANCE[dtype]
