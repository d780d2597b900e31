"""Models as GGUF files, as llama.cpp converts them from the names of the transformers library."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

ALIGNMENT = 32
TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "BF16": 30}
DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype(jnp.bfloat16)}
SIZES = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "vocab_size": 13,
    "max_position_embeddings": 16,
    "rms_norm_eps": 2.0**-10,
    "rope_theta": 32.0,
}
KEYS = {
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.value_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "rope.dimension_count": "head_dim",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers.": "blk.",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def random_model(kind: str, seed: int = 0, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Configuration and float32 tensors of a small model, under the names of transformers."""
    config = {"model_type": kind, "tie_word_embeddings": kind == "gemma", **SIZES, **changes}
    d, m, v = (config[key] for key in ("hidden_size", "intermediate_size", "vocab_size"))
    q, k = (config["head_dim"] * config[f"num_{each}_heads"] for each in ("attention", "key_value"))
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (v, d),
        "model.norm.weight": (d,),
    }
    for place in range(config["num_hidden_layers"]):
        layer = f"model.layers.{place}."
        shapes |= {
            f"{layer}{norm}.weight": (d,)
            for norm in ("input_layernorm", "post_attention_layernorm")
        }
        for name, shape in {"q": (q, d), "k": (k, d), "v": (k, d), "o": (d, q)}.items():
            shapes[f"{layer}self_attn.{name}_proj.weight"] = shape
            if (kind == "qwen2" and name != "o") or config.get("attention_bias"):
                shapes[f"{layer}self_attn.{name}_proj.bias"] = shape[:1]
            if kind == "qwen3" and name in "qk":
                shapes[f"{layer}self_attn.{name}_norm.weight"] = (config["head_dim"],)
        for name, shape in {"gate": (m, d), "up": (m, d), "down": (d, m)}.items():
            shapes[f"{layer}mlp.{name}_proj.weight"] = shape
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (v, d)
    draw = np.random.default_rng(seed)
    return config, {n: (0.4 * draw.normal(size=s)).astype(np.float32) for n, s in shapes.items()}


def converted(
    config: Mapping[str, Any], tensors: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and tensors of the same model as llama.cpp's converter writes them."""
    kind, stored = config["model_type"], {}
    settings = {"general.architecture": kind, "tokenizer.ggml.tokens": ["<s>", "a"]}
    settings |= {f"{kind}.{new}": config[key] for new, key in KEYS.items()}
    for name, values in tensors.items():
        array = values
        for part, heads in (("q_proj", "num_attention_heads"), ("k_proj", "num_key_value_heads")):
            if kind == "llama" and part in name:
                halves = array.reshape(config[heads], 2, -1, *array.shape[1:])
                array = halves.swapaxes(1, 2).reshape(array.shape)
        if kind == "gemma" and "norm" in name:
            array = array + np.float32(1)
        new = name
        for long, short in NAMES.items():
            new = new.replace(long, short)
        stored[new] = array
    return settings, stored


def quantised(array: np.ndarray) -> tuple[np.ndarray, bytes]:
    """The numbers that Q8_0 keeps of an array, and its bytes."""
    rows = array.reshape(-1, 32)
    scale = (np.abs(rows).max(axis=1) / 127).astype("<f2")
    whole = np.rint(rows / np.maximum(scale, np.float16(6e-8)).astype("f4")[:, None]).clip(
        -127, 127
    )
    blocks = b"".join(
        s.tobytes() + w.astype("i1").tobytes() for s, w in zip(scale, whole, strict=True)
    )
    return (scale.astype("f4")[:, None] * whole.astype("f4")).reshape(array.shape), blocks


def write_gguf(path: Path, settings: Mapping[str, Any], tensors: Mapping[str, Any],
               encoding: str = "F32") -> dict[str, Any]:  # fmt: skip
    """Write a file, matrices in an encoding, vectors as float32.

    Returns:
        The numbers that it holds.
    """
    head = b"".join(text(key) + setting(value) for key, value in settings.items())
    places, data, kept = b"", b"", {}
    for name, array in tensors.items():
        form = encoding if array.ndim == 2 else "F32"
        if form == "Q8_0":
            kept[name], content = quantised(array)
        else:
            stored = array.astype(DTYPES[form])
            kept[name], content = stored.astype("f4"), stored.tobytes()
        sizes = struct.pack(f"<I{array.ndim}Q", array.ndim, *array.shape[::-1])
        places += text(name) + sizes + struct.pack("<IQ", TYPES[form], len(data))
        data += content + bytes(-len(content) % ALIGNMENT)
    start = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(settings)) + head + places
    path.write_bytes(start + bytes(-len(start) % ALIGNMENT) + data)
    return kept


def text(value: str) -> bytes:
    """A text with its length."""
    return struct.pack("<Q", len(value.encode())) + value.encode()


def setting(value: Any) -> bytes:
    """The type and the bytes of a value; lists are of texts."""
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    return struct.pack("<II", 4, value)
