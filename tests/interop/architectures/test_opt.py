"""OPT against transformers, randomly drawn."""

import pytest
from reference_transformers import TOLERANCE, concentration, differences, random_reference

from attlas.interop.architectures import opt

SMALL = {
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "ffn_dim": 20,
    "vocab_size": 31,
    "max_position_embeddings": 20,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
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
