"""Models with experts against transformers, randomly drawn, in memory and as files hold them."""

import numpy as np
import pytest
from random_checkpoints import refusal
from reference_transformers import (
    TOLERANCE,
    concentration,
    differences,
    libraries,
    random_reference,
)

from attlas.transformers.architectures import mixtral
from attlas.transformers.load_model import load_model

SMALL = {
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "intermediate_size": 20,
    "vocab_size": 31,
    "max_position_embeddings": 64,
}
QWEN = {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 8}
CASES = {
    "mixtral": ("mixtral", {"num_local_experts": 5, "num_experts_per_tok": 2}),
    "mixtral, one expert, window": (
        "mixtral",
        {"num_local_experts": 3, "num_experts_per_tok": 1, "sliding_window": 3},
    ),
    "qwen2_moe": ("qwen2_moe", {**QWEN, "shared_expert_intermediate_size": 12}),
    "qwen2_moe, some layers dense, windows": (
        "qwen2_moe",
        {
            **QWEN,
            "shared_expert_intermediate_size": 12,
            "norm_topk_prob": True,
            "decoder_sparse_step": 2,
            "use_sliding_window": True,
            "sliding_window": 3,
            "max_window_layers": 2,
            "qkv_bias": False,
        },
    ),
    "qwen3_moe": ("qwen3_moe", {**QWEN, "norm_topk_prob": True, "mlp_only_layers": [1]}),
    "qwen3_moe, wide heads, window": (
        "qwen3_moe",
        {**QWEN, "head_dim": 10, "use_sliding_window": True, "sliding_window": 3},
    ),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_transformers(case, dtype):
    kind, settings = CASES[case]
    reference = random_reference(kind, dtype, **(SMALL | settings))
    assert concentration(reference) > 1.3  # no test of uniform maps
    found = differences(mixtral, reference)
    assert max(found.values()) <= TOLERANCE[dtype], found


@pytest.mark.parametrize(
    ("case", "change"),
    [
        ("mixtral", {"num_experts_per_tok": 3}),
        ("qwen2_moe", {"norm_topk_prob": True}),
        ("qwen3_moe", {"norm_topk_prob": False}),
        ("qwen3_moe, wide heads, window", {"use_sliding_window": False}),
    ],
)
def test_another_reading_is_noticed(case, change):
    kind, settings = CASES[case]
    reference = random_reference(kind, "float32", **(SMALL | settings))
    reference.config |= change
    assert differences(mixtral, reference)["logits"] > 100 * TOLERANCE["float32"]


@pytest.mark.parametrize("case", CASES)
def test_a_folder_that_the_library_writes_is_the_same_model(case, tmp_path):
    torch, transformers = libraries()
    kind, settings = CASES[case]
    config = transformers.AutoConfig.for_model(kind, **(SMALL | settings))
    config._experts_implementation = "eager"
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    model.save_pretrained(tmp_path)
    tokens = np.arange(2, 11)
    with torch.no_grad():
        expected = model(torch.tensor(tokens)[None]).logits[0].numpy()
    found = np.asarray(load_model(tmp_path).logits(tokens))
    assert np.abs(found - expected).max() <= TOLERANCE["float32"] * np.abs(expected).max()


@pytest.mark.parametrize(
    ("kind", "change", "text"),
    [
        ("mixtral", {"num_experts_per_tok": 5}, "num_experts_per_tok = 5 in the configuration is"),
        (
            "mixtral",
            {"num_local_experts": 3},
            "tensor 'model.layers.0.block_sparse_moe.gate.weight' has",
        ),
        ("qwen3_moe", {"num_local_experts": 3}, "num_local_experts = 3 in the configuration is"),
        ("qwen3_moe", {"mlp_only_layers": "0"}, "mlp_only_layers = '0' in the configuration is"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_line(kind, change, text):
    said = refusal(kind, change)
    assert said.startswith(text)
    assert "\n" not in said
