"""MPNet against transformers, randomly drawn."""

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

from attlas.transformers.architectures import mpnet

SMALL = {
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 20,
    "vocab_size": 31,
    "max_position_embeddings": 180,
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("length", [9, 150])
def test_agrees_with_transformers(length, dtype):
    """Also beyond the distance from which all share a bucket."""
    reference = random_reference("mpnet", dtype, length=length, **SMALL)
    assert concentration(reference) > 1.3  # no test of uniform maps
    found = differences(mpnet, reference)
    assert max(found.values()) <= TOLERANCE[dtype], found


def test_buckets_are_those_of_the_library_in_float32():
    torch, transformers = libraries()
    model = transformers.MPNetModel(transformers.MPNetConfig(**SMALL))
    distance = torch.arange(-400, 401)
    expected = model.encoder.relative_position_bucket(distance).numpy()
    clipped = np.clip(distance.numpy(), -128, 128) + 128
    np.testing.assert_array_equal(np.array(mpnet._buckets())[clipped], expected)


def test_a_change_of_the_added_logits_is_noticed():
    reference = random_reference("mpnet", "float32", **SMALL)
    name = next(n for n in reference.tensors if n.endswith("relative_attention_bias.weight"))
    reference.tensors[name] = np.roll(reference.tensors[name], 1, axis=1)
    assert differences(mpnet, reference)["attention"] > 100 * TOLERANCE["float32"]


def test_what_is_not_supported_is_refused_in_one_line():
    said = refusal("mpnet", {"relative_attention_num_buckets": 64})
    assert said.startswith("relative_attention_num_buckets = 64 in the configuration is not")
    assert "\n" not in said
