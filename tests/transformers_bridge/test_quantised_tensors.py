"""Weights of eight bits, made by hand here, are read as the numbers that they stand for."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from cost import cost_of
from random_checkpoints import random_checkpoint

from attlas.core.errors import UserError
from attlas.transformers.checkpoint_folder import read_checkpoint
from attlas.transformers.load_model import load_model
from attlas.transformers.quantised_tensors import FLOAT8
from attlas.transformers.write_safetensors import write_safetensors

FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [4, 3]}
INT8 = {"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False}
COMPRESSED = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True},
        }
    },
}


def folder_with(folder, tensors, settings, config=None):
    folder.mkdir(exist_ok=True)
    write_safetensors(folder / "model.safetensors", tensors)
    described = (config or {"model_type": "llama"}) | {"quantization_config": settings}
    (folder / "config.json").write_text(json.dumps(described))
    return folder


def in_blocks(W, high, wide):
    """Numbers in float8 and a scale for each block, and the product of both, entry by entry."""
    rows, columns = W.shape
    scales = np.zeros((-(-rows // high), -(-columns // wide)), np.float32)
    for i, j in np.ndindex(scales.shape):
        block = W[i * high : (i + 1) * high, j * wide : (j + 1) * wide]
        scales[i, j] = np.abs(block).max() / 448
    product = np.zeros(W.shape, np.float32)
    numbers = np.zeros(W.shape, FLOAT8)
    for i, j in np.ndindex(W.shape):
        scale = scales[i // high, j // wide]
        numbers[i, j] = np.float32(W[i, j] / scale)
        product[i, j] = np.float32(numbers[i, j]) * scale
    return numbers, scales, product


def in_rows(W, kind):
    most = 448 if kind == FLOAT8 else 127
    scales = (np.abs(W).max(axis=1) / most).astype(np.float32)
    numbers = W / scales[:, None]
    numbers = (numbers if kind == FLOAT8 else np.round(numbers)).astype(kind)
    return numbers, scales, numbers.astype(np.float64) * scales[:, None]


DRAW = np.random.default_rng(0)
W = DRAW.normal(size=(10, 7)).astype(np.float32)


def test_blocks_of_float8(tmp_path):
    numbers, scales, product = in_blocks(W, 4, 3)
    tensors = {"a.weight": numbers, "a.weight_scale_inv": scales, "norm.weight": W[0]}
    read = read_checkpoint(folder_with(tmp_path, tensors, FP8))
    assert "quantization_config" not in read.config
    assert list(read.tensors) == ["a.weight", "norm.weight"]
    np.testing.assert_allclose(read.tensors["a.weight"], product, rtol=1e-6)
    assert np.abs(product - W).max() < 0.1
    np.testing.assert_array_equal(read.tensors["norm.weight"], W[0])
    assert "Weights of eight bits (fp8)" in read.notes[0]


@pytest.mark.parametrize("shape", [(10,), (10, 1), (1,), ()])
@pytest.mark.parametrize("kind", [FLOAT8, np.dtype(np.int8)])
def test_scales_of_rows_or_of_all(tmp_path, kind, shape):
    numbers, scales, product = in_rows(W, kind)
    if shape in ((1,), ()):
        product *= (scales[0] / scales)[:, None]
        scales = scales[:1]
    tensors = {"a.weight": numbers, "a.weight_scale": scales.reshape(shape)}
    tensors["a.input_scale"] = np.float32(0.5)
    read = read_checkpoint(folder_with(tmp_path, tensors, COMPRESSED))
    assert list(read.tensors) == ["a.weight"]
    np.testing.assert_allclose(read.tensors["a.weight"], product, rtol=1e-6)


@pytest.mark.parametrize("kind", ["llama", "gpt_neox"])
def test_a_model_in_eight_bits_is_the_model_of_its_numbers(tmp_path, kind):
    """All matrices as bitsandbytes stores them: the logits are those of the products."""
    config, tensors = random_checkpoint(kind)
    config["model_type"] = config.get("model_type", kind)
    whole = {name: np.asarray(values, np.float64) for name, values in tensors.items()}
    stored, plain = {}, dict(whole)
    for name, values in whole.items():
        stored[name] = values
        if values.ndim == 2 and ".weight" in name and "embed" not in name:
            numbers, scales, plain[name] = in_rows(values, np.dtype(np.int8))
            stored |= {name: numbers, f"{name.removesuffix('weight')}SCB": 127 * scales}
            stored[f"{name.removesuffix('weight')}weight_format"] = np.zeros((), np.uint8)
    assert any(values.dtype == np.int8 for values in stored.values())
    read = load_model(folder_with(tmp_path, stored, INT8, config))
    expected = load_model(plain, config=config)
    tokens = np.arange(1, 7)
    np.testing.assert_allclose(read.logits(tokens), expected.logits(tokens), rtol=1e-5, atol=1e-6)
    exact = load_model(whole, config=config)
    assert np.abs(read.logits(tokens) - exact.logits(tokens)).max() > 1e-4


HALF = {"a.weight": W.astype(FLOAT8)}
SCALED = {**HALF, "a.weight_scale_inv": np.ones((3, 3), np.float32)}
REFUSED = {
    "gptq": ({"a.qweight": np.zeros((2, 2), np.int32)}, {"quant_method": "gptq", "bits": 4},
             "format 'gptq', which is not read: write them out in PyTorch, with from gptqmodel"),
    "awq": ({"a.qweight": np.zeros((2, 2), np.int32)}, {"quant_method": "awq", "bits": 4},
            "dequantize_model"),
    "4 bits": (HALF, {"quant_method": "bitsandbytes", "load_in_4bit": True},
               r"\.dequantize\(\)\.save_pretrained\(other\)"),
    "mxfp4": (HALF, {"quant_method": "mxfp4"}, "dequantize=True"),
    "no method": (HALF, {"bits": 8}, "format 'None'"),
    "no table": (HALF, "fp8", "format 'None'"),
    "4 bits, compressed": (
        SCALED,
        {**COMPRESSED, "config_groups": {"a": {"weights": {"num_bits": 4}}}},
        "format 'compressed-tensors'",
    ),
    "turned": (SCALED, {**COMPRESSED, "transform_config": {"a": 1}}, "format 'compressed-tensors'"),
    "no scales": (HALF, FP8, "holds no tensor of 'weight_scale_inv'"),
    "scales alone": ({"a.weight_scale_inv": W}, FP8, "no matrix of eight bits beside it"),
    "scales of a float": ({"a.weight": W, "a.weight_scale_inv": W}, FP8, "no matrix of eight bits"),
    "other blocks": (SCALED, {**FP8, "weight_block_size": [2, 2]}, "has shape"),
    "blocks of nothing": (SCALED, {**FP8, "weight_block_size": [0, 2]}, "at least one entry"),
    "blocks of words": (SCALED, {**FP8, "weight_block_size": ["a", 2]}, "no pair of numbers"),
    "one without": ({**SCALED, "b.weight": HALF["a.weight"]}, FP8, "'b.weight' is float8 without"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_one_line_with_the_remedy(tmp_path, name):
    tensors, settings, said = REFUSED[name]
    with pytest.raises(UserError, match=said) as refusal:
        read_checkpoint(folder_with(tmp_path, tensors, settings))
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 500


def test_float8_without_a_format_is_refused(tmp_path):
    write_safetensors(tmp_path / "model.safetensors", HALF)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(UserError, match="is float8 without a scale"):
        read_checkpoint(tmp_path)


def test_a_number_that_is_none_is_refused_where_it_is_read(tmp_path):
    spoilt = HALF["a.weight"].copy()
    spoilt[0, 0] = jnp.nan
    # The first tensor is read where types are checked.
    tensors = {"a": W, **SCALED, "a.weight": spoilt}
    read = read_checkpoint(folder_with(tmp_path, tensors, FP8))
    with pytest.raises(UserError, match="1 entries that are NaN"):
        read.tensors["a.weight"]


def test_blocks_larger_than_memory_cost_what_the_matrix_costs(tmp_path):
    settings = {**FP8, "weight_block_size": [2**40, 2**40]}
    tensors = {**HALF, "a.weight_scale_inv": np.full((1, 1), 2.0, np.float32)}
    read = read_checkpoint(folder_with(tmp_path, tensors, settings))
    assert cost_of(lambda: read.tensors["a.weight"]).megabytes < 50
    np.testing.assert_array_equal(read.tensors["a.weight"], 2 * HALF["a.weight"].astype(np.float32))
