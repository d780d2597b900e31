"""GPT-2 against transformers, randomly drawn."""

import pytest
from reference_transformers import TOLERANCE, concentration, differences, random_reference

from attlas.interop.architectures import gpt2

SMALL = {
    "n_embd": 24,
    "n_head": 4,
    "n_layer": 2,
    "vocab_size": 31,
    "n_positions": 20,
    "bos_token_id": None,
    "eos_token_id": None,
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
    reference = random_reference("gpt2", dtype, attention="attn", **(SMALL | CASES[case]))
    assert concentration(reference) > 1.5  # no test of uniform maps
    assert max(differences(gpt2, reference).values()) <= TOLERANCE[dtype]
