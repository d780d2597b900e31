"""Gemma 2 and 3 against transformers, randomly drawn."""

import pytest
from random_checkpoints import refusal
from reference_transformers import (
    TOLERANCE,
    as_of_an_older_release,
    concentration,
    differences,
    random_reference,
)

from attlas.transformers.architectures import gemma

SMALL = {
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "num_hidden_layers": 3,
    "intermediate_size": 20,
    "vocab_size": 31,
    "max_position_embeddings": 64,
    "query_pre_attn_scalar": 7,
    "sliding_window": 4,
}
CAPPED = {"attn_logit_softcapping": 1.5, "final_logit_softcapping": 2.0}
GLOBAL = {"rope_type": "linear", "rope_theta": 80.0, "factor": 3.0}
LOCAL = {"rope_type": "default", "rope_theta": 20.0}
CASES = {
    "gemma2": ("gemma2", {}),
    "gemma2, caps that matter": ("gemma2", CAPPED),
    "gemma2, no caps": (
        "gemma2",
        dict.fromkeys(CAPPED) | {"attention_bias": True, "tie_word_embeddings": False},
    ),
    "gemma3": ("gemma3_text", {"sliding_window_pattern": 2}),
    "gemma3, two rules, a cap": (
        "gemma3_text",
        {
            "layer_types": ["full_attention", "sliding_attention", "full_attention"],
            "rope_parameters": {"full_attention": GLOBAL, "sliding_attention": LOCAL},
            "final_logit_softcapping": 2.0,
        },
    ),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_transformers(case, dtype):
    kind, settings = CASES[case]
    reference = random_reference(kind, dtype, **(SMALL | settings))
    assert concentration(reference) > 1.3  # no test of uniform maps
    found = differences(gemma, reference)
    assert max(found.values()) <= TOLERANCE[dtype], found


@pytest.mark.parametrize(
    ("case", "change"),
    [
        ("gemma2, caps that matter", {"attn_logit_softcapping": None}),
        ("gemma2, caps that matter", {"final_logit_softcapping": 3.0}),
        ("gemma2", {"query_pre_attn_scalar": 8}),
        ("gemma2", {"layer_types": ["full_attention"] * 3}),
        (
            "gemma3, two rules, a cap",
            {"rope_parameters": {"full_attention": LOCAL, "sliding_attention": LOCAL}},
        ),
        (
            "gemma3, two rules, a cap",
            {"rope_parameters": {"full_attention": GLOBAL, "sliding_attention": GLOBAL}},
        ),
    ],
)
def test_another_reading_is_noticed(case, change):
    kind, settings = CASES[case]
    reference = random_reference(kind, "float32", **(SMALL | settings))
    reference.config |= change
    assert differences(gemma, reference)["logits"] > 100 * TOLERANCE["float32"]


OLDER = {
    "gemma2": {"rope_theta": 10000.0, "cache_implementation": "hybrid"},
    "gemma3": {
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "rope_scaling": None,
        "sliding_window_pattern": 2,
    },
    "gemma3, two rules, a cap": {
        "rope_theta": 80.0,
        "rope_local_base_freq": 20.0,
        "rope_scaling": {"rope_type": "linear", "factor": 3.0},
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    },
}


@pytest.mark.parametrize("case", OLDER)
def test_configurations_of_older_releases_are_the_same_model(case):
    kind, settings = CASES[case]
    reference = random_reference(kind, "float32", **(SMALL | settings))
    reference = as_of_an_older_release(reference, OLDER[case])
    assert max(differences(gemma, reference).values()) <= TOLERANCE["float32"]


@pytest.mark.parametrize(
    ("kind", "change", "text"),
    [
        ("gemma2", {"layer_types": ["chunked"] * 2}, "layer_types = ['chunked', 'chunked'] in the"),
        ("gemma2", {"attn_logit_softcapping": 0.0}, "attn_logit_softcapping = 0.0 in the config"),
        ("gemma3_text", {"use_bidirectional_attention": True}, "use_bidirectional_attention = T"),
        (
            "gemma3_text",
            {"rope_parameters": LOCAL},
            "rope_parameters in the configuration has no table 'sliding_attention'",
        ),
    ],
)
def test_what_is_not_supported_is_refused_in_one_line(kind, change, text):
    said = refusal(kind, change)
    assert said.startswith(text)
    assert "\n" not in said
