"""GPT-NeoX against transformers, randomly drawn."""

import pytest
from reference_transformers import TOLERANCE, concentration, differences, random_reference

from attlas.interop.architectures import gpt_neox

SMALL = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "vocab_size": 31,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": None,
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
    reference = random_reference("gpt_neox", dtype, attention="attention", **(SMALL | CASES[case]))
    assert concentration(reference) > 1.5  # no test of uniform maps
    assert max(differences(gpt_neox, reference).values()) <= TOLERANCE[dtype]
