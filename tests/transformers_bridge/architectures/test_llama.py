"""Llama, Mistral, Qwen2, Qwen3, Gemma and Granite against transformers, randomly drawn."""

import pytest
from random_checkpoints import refusal
from reference_transformers import (
    TOLERANCE,
    as_of_an_older_release,
    concentration,
    differences,
    random_reference,
)

from attlas.transformers.architectures import llama

SMALL = {
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "vocab_size": 31,
    "max_position_embeddings": 64,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 50.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 50.0,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 50.0,
    "short_factor": [1.0, 1.2, 1.7, 2.5],
    "long_factor": [2.0, 3.0, 4.0, 5.0],
    "original_max_position_embeddings": 16,
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
    "llama, dynamic frequencies within the context": (
        "llama",
        {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 40.0, "factor": 3.0}},
    ),
    "llama, yarn": ("llama", {"head_dim": 16, "rope_parameters": YARN}),
    "llama, yarn of other constants": (
        "llama",
        {
            "head_dim": 16,
            "rope_parameters": YARN
            | {"beta_fast": 4.0, "beta_slow": 0.5, "truncate": False}
            | {"mscale": 1.0, "mscale_all_dim": 0.5},
        },
    ),
    "qwen3, yarn of a given factor": (
        "qwen3",
        {
            "num_key_value_heads": 2,
            "head_dim": 16,
            "rope_parameters": YARN | {"attention_factor": 1.3},
        },
    ),
    "llama, longrope": ("llama", {"head_dim": 8, "rope_parameters": LONGROPE}),
    "granite": (
        "granite",
        {
            "num_key_value_heads": 2,
            "attention_multiplier": 0.6,
            "embedding_multiplier": 3.0,
            "residual_multiplier": 0.4,
            "logits_scaling": 2.5,
            "tie_word_embeddings": True,
        },
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


@pytest.mark.parametrize(
    ("case", "change"),
    [
        ("mistral, window", {"sliding_window": 4}),
        ("qwen2, window from layer 1 on", {"layer_types": ["full_attention"] * 2}),
        ("qwen3", {"rms_norm_eps": 0.1}),
        ("gemma", {"model_type": "llama"}),
        ("llama, llama3 frequencies", {"rope_parameters": LLAMA3 | {"factor": 5.0}}),
        ("llama, linear frequencies", {"rope_parameters": {"rope_theta": 40.0}}),
        ("llama, yarn", {"rope_parameters": YARN | {"attention_factor": 1.0}}),
        ("llama, yarn of other constants", {"rope_parameters": YARN | {"beta_fast": 4.0}}),
        ("llama, longrope", {"rope_parameters": LONGROPE | {"short_factor": [1.0] * 4}}),
        ("granite", {"residual_multiplier": 0.5}),
        ("granite", {"logits_scaling": 2.0}),
    ],
)
def test_another_reading_is_noticed(case, change):
    kind, settings = CASES[case]
    reference = random_reference(kind, "float32", **(SMALL | settings))
    reference.config |= change
    assert differences(llama, reference)["logits"] > 100 * TOLERANCE["float32"]


OLDER = {
    "llama, llama3 frequencies": {
        "rope_theta": 50.0,
        "rope_scaling": {key: LLAMA3[key] for key in LLAMA3 if key != "rope_theta"},
    },
    "llama, linear frequencies": {
        "rope_theta": 40.0,
        "rope_scaling": {"type": "linear", "factor": 3.0},
    },
    "qwen2, window from layer 1 on": {"rope_theta": 10000.0, "rope_scaling": None},
    "gemma": {"hidden_activation": None},
}


@pytest.mark.parametrize("case", OLDER)
def test_configurations_of_older_releases_are_the_same_model(case):
    kind, settings = CASES[case]
    reference = random_reference(kind, "float32", **(SMALL | settings))
    reference = as_of_an_older_release(reference, OLDER[case])
    assert max(differences(llama, reference).values()) <= TOLERANCE["float32"]


@pytest.mark.parametrize(
    ("case", "context"),
    [
        ("llama, yarn", 64),
        ("llama, dynamic frequencies within the context", 64),
        ("llama, longrope", 16),
    ],
)
def test_a_rule_that_depends_on_the_length_is_read_up_to_it(case, context):
    kind, settings = CASES[case]
    reference = random_reference(kind, "float32", **(SMALL | settings))
    assert llama.read(reference.config, reference.tensors, "it").context == context


@pytest.mark.parametrize(
    ("kind", "change", "text"),
    [
        ("llama", {"rope_scaling": {"type": "su"}}, "type = 'su' in the configuration is not"),
        ("llama", {"rope_scaling": {"type": "yarn"}}, "the configuration has no 'factor'"),
        (
            "llama",
            {"rope_parameters": LONGROPE | {"short_factor": [1.0] * 4}},
            "short_factor = [1.0, 1.0, 1.0, 1.0] in the configuration is not a list of 3 numbers",
        ),
        (
            "llama",
            {"rope_parameters": LONGROPE | {"short_factor": [1.0, 0.0, 1.0]}},
            "short_factor = 0.0 in the configuration is not a finite number above 0",
        ),
        (
            "llama",
            {"rope_parameters": YARN | {"rope_theta": 1.0}},
            "rope_theta = 1.0 in the configuration is not above 1",
        ),
        ("llama", {"rope_scaling": {"type": "linear"}}, "the configuration has no 'factor'"),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5 in the"),
        ("llama", {"num_attention_heads": 5}, "num_key_value_heads = 2 in the configuration does"),
        ("llama", {"head_dim": 5}, "head_dim = 5 in the configuration is odd"),
        ("llama", {"hidden_act": "relu2"}, "hidden_act = 'relu2' in the configuration is not"),
        (
            "llama",
            {"attention_bias": False},
            "tensor 'model.layers.0.self_attn.k_proj.bias' has no",
        ),
        ("llama", {"layer_types": ["sliding_attention"] * 2}, "layer_types of the configuration"),
        ("qwen3", {"layer_types": ["chunked_attention"] * 2}, "layer_types = ['chunked_attention'"),
        ("mistral", {"layer_types": ["full_attention"] * 2}, "layer_types = ['full_attention', "),
        ("mistral", {"sliding_window": 0}, "sliding_window = 0 in the configuration is not a"),
        ("qwen2", {"max_window_layers": -1}, "max_window_layers = -1 in the configuration is not"),
        ("gemma", {"use_bidirectional_attention": True}, "use_bidirectional_attention = True in"),
        ("gemma", {"head_dim": 256}, "tensor 'model.layers.0.self_attn.q_proj.weight' has shape"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_line(kind, change, text):
    said = refusal(kind, change)
    assert said.startswith(text)
    assert "\n" not in said
