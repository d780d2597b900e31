"""GGUF files of Llama-like models: the same functions as their safetensors form."""

import json
import re

import jax
import numpy as np
import pytest
from gguf_files import converted, random_model, write_gguf

from attlas.core.errors import UserError
from attlas.transformers.gguf_model import read_gguf_model
from attlas.transformers.lazy_tensors import LazyTensors
from attlas.transformers.load_model import load_model
from attlas.transformers.write_safetensors import write_safetensors

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6]
KINDS = ("gemma", "llama", "qwen2", "qwen3")


def written(folder, kind="llama", encoding="F32", settings=None, tensors=None, **changes):
    """A GGUF file, and the folder of the model that it was converted from."""
    config, weights = random_model(kind, **changes)
    said, stored = converted(config, weights)
    path = folder / "model.gguf"
    write_gguf(path, said | (settings or {}), stored | (tensors or {}), encoding)
    original = folder / "original"
    original.mkdir()
    write_safetensors(original / "model.safetensors", weights)
    (original / "config.json").write_text(json.dumps(config))
    return path, original


@pytest.mark.parametrize("kind", KINDS)
def test_a_converted_model_has_the_attention_and_the_logits_of_the_original(tmp_path, kind):
    path, original = written(tmp_path, kind)
    with jax.enable_x64(True):
        ours, expected = (load_model(place, dtype="float64") for place in (path, original))
        for name in ("attention", "logits"):
            close = 1e-6 if kind == "gemma" else 1e-12  # a gain plus 1 was rounded to float32
            np.testing.assert_allclose(
                getattr(ours, name)(TOKENS), getattr(expected, name)(TOKENS), rtol=close, atol=close
            )
    assert ours.parameters == expected.parameters


def test_rows_in_the_order_of_the_file_are_another_model(tmp_path):
    path, original = written(tmp_path)
    config, weights = random_model("llama")
    said, stored = converted(config | {"model_type": "qwen3"}, weights)
    said = {key.replace("qwen3", "llama"): value for key, value in said.items()}
    write_gguf(path, said | {"general.architecture": "llama"}, stored)
    ours, expected = (load_model(place).attention(TOKENS) for place in (path, original))
    assert np.abs(ours - expected).max() > 0.01


def test_biases_of_queries_and_keys_are_turned_with_them(tmp_path):
    path, original = written(tmp_path, attention_bias=True)
    ours, expected = (load_model(place).logits(TOKENS) for place in (path, original))
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("encoding", ["F16", "BF16", "Q8_0"])
def test_numbers_are_those_that_the_encoding_keeps(tmp_path, encoding):
    config, weights = random_model("qwen2")
    said, stored = converted(config, weights)
    kept = write_gguf(tmp_path / "m.gguf", said, stored, encoding)
    assert any(np.any(kept[name] != stored[name]) for name in stored)
    _, unread, (note,) = read_gguf_model(tmp_path / "m.gguf")
    tensors = LazyTensors(unread)
    assert tensors.dtype == np.float32
    assert f"numbers in {', '.join(sorted(['F32', encoding]))};" in note
    np.testing.assert_array_equal(tensors["lm_head.weight"], kept["output.weight"])
    name = "model.layers.1.mlp.down_proj.weight"
    np.testing.assert_array_equal(tensors[name], kept["blk.1.ffn_down.weight"])


def test_divisors_of_frequencies_are_those_of_llama3(tmp_path):
    rule = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    rule["original_max_position_embeddings"] = 16
    path, original = written(tmp_path, max_position_embeddings=64)
    config = json.loads((original / "config.json").read_text())
    (original / "config.json").write_text(json.dumps(config | {"rope_scaling": rule}))
    expected = load_model(original)
    plain = 32.0 ** (-np.arange(0, 8, 2) / 8)
    factors = plain / np.asarray(expected.block(0).attention.rotary.frequencies)
    assert factors.max() > 2
    said, stored = converted(*random_model("llama", max_position_embeddings=64))
    write_gguf(path, said, stored | {"rope_freqs.weight": factors})
    ours = load_model(path)
    np.testing.assert_allclose(ours.logits(TOKENS), expected.logits(TOKENS), rtol=1e-4, atol=1e-5)
    assert ours.context == 64


def test_a_linear_scale_of_positions_is_read(tmp_path):
    scaling = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    path, original = written(tmp_path, settings=scaling)
    config = json.loads((original / "config.json").read_text())
    rule = {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    (original / "config.json").write_text(json.dumps(config | rule))
    ours, expected = (load_model(place).attention(TOKENS) for place in (path, original))
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-7)


def test_the_only_gguf_file_of_a_folder_is_its_model(tmp_path):
    path, _ = written(tmp_path)
    assert load_model(tmp_path).logits(TOKENS).shape == (8, 13)
    (tmp_path / "other.gguf").write_bytes(path.read_bytes())
    with pytest.raises(UserError, match=r"2 .gguf files .*: give one of them"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"general.architecture": "phi3"},
            "of the architecture 'phi3': of GGUF files gemma, llama",
        ),
        ({"general.type": "adapter"}, "a GGUF file of no model"),
        ({"llama.attention.sliding_window": 8}, "sliding_window = 8, which is not known to attlas"),
        ({"llama.expert_count": 4}, "llama.expert_count = 4, which is not known"),
        ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type = yarn, which is not known"),
        ({"llama.rope.dimension_count": 4}, "llama.rope.dimension_count = 4, which no model"),
        ({"llama.attention.value_length": 4}, "llama.attention.value_length = 4, which no model"),
        ({"llama.block_count": 2**31}, "llama.block_count = 2147483648, which no model"),
        ({"llama.attention.head_count": ["4", "4"]}, r"head_count = \[2\], which no model"),
        ({"llama.attention.layer_norm_rms_epsilon": 0.0}, "epsilon = 0.0, which no model"),
        ({"split.count": 3}, "is one of 3 files of its model: join them"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(tmp_path, settings, said):
    path, _ = written(tmp_path, settings=settings)
    with pytest.raises(UserError, match=said) as refused:
        load_model(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["blk.0.attn_sinks.weight", "blk.00.attn_q.weight", "output.bias"])
def test_a_tensor_of_no_known_name_is_refused(tmp_path, name):
    path, _ = written(tmp_path, tensors={name: np.zeros((32, 32), np.float32)})
    with pytest.raises(UserError, match="has no place in a model of this configuration"):
        load_model(path)


def test_a_missing_setting_or_embedding_is_refused(tmp_path):
    said, stored = converted(*random_model("llama"))
    path = tmp_path / "m.gguf"
    write_gguf(path, {k: v for k, v in said.items() if "block_count" not in k}, stored)
    with pytest.raises(UserError, match=re.escape("lacks llama.block_count")):
        load_model(path)
    write_gguf(path, said, {k: v for k, v in stored.items() if k != "token_embd.weight"})
    with pytest.raises(UserError, match=r"holds no tensor 'token_embd.weight'"):
        load_model(path)
