r"""Models of GGUF files under the names and in the order of the transformers library.

llama.cpp turns neighbouring coordinates of a Llama head where transformers turns coordinate i with
i + k/2: the rows of its query and key projections are stored in that order, and read back here.
Gemma's gains are stored plus 1. Frequencies that `rope_freqs.weight` divides are those of Llama 3.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from attlas._files.budget import MOST_LAYERS, MOST_TURNING
from attlas._files.plain_file import printable
from attlas.core.errors import UserError
from attlas.transformers.gguf_file import WRITE_OUT, GgufFile
from attlas.transformers.lazy_tensors import Unread

_ARCHITECTURES = ("gemma", "llama", "qwen2", "qwen3")
_LARGEST = 2**40
_COUNTS = {
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
}
_NUMBERS = {"attention.layer_norm_rms_epsilon": "rms_norm_eps", "rope.freq_base": "rope_theta"}
_NEEDED = {*_COUNTS, "attention.layer_norm_rms_epsilon"} - {
    *("attention.head_count_kv", "attention.key_length")
}
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "expert_count": (0,),
    "expert_used_count": (0,),
    "rope.scaling.type": ("none", "linear"),
}
"""Keys with the values that are read."""
_CHECKED = ("attention.value_length", "rope.dimension_count", "rope.scaling.factor", "vocab_size")
_TOKENS = {"bos": "bos_token_id", "eos": "eos_token_id", "padding": "pad_token_id"}
_WHOLE = {
    "output": "lm_head",
    "output_norm": "model.norm",
    "token_embd": "model.embed_tokens",
}
_LAYER = {
    "attn_k": "self_attn.k_proj",
    "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm",
    "attn_output": "self_attn.o_proj",
    "attn_q": "self_attn.q_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_v": "self_attn.v_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_up": "mlp.up_proj",
}
_FACTORS = "rope_freqs.weight"
_NAME = re.compile(r"(?:blk\.([0-9]{1,4})\.)?([a-z_]+)\.(weight|bias)")


def read_gguf_model(path: Path) -> tuple[dict[str, Any], dict[str, Unread], tuple[str, ...]]:
    """Configuration and tensors of a model; of the numbers only frequencies are read yet.

    Returns:
        Both as transformers names them, and sentences on what was done.

    Raises:
        UserError: if it is no such file, its architecture or its numbers are of another kind, or
            a setting of its model is not known to attlas.
    """
    file, label = GgufFile(path), printable(str(path))
    kind = _architecture(file, label)
    config = _configuration(file, kind, label)
    tensors = {}
    for name in file.tensors:
        if name != _FACTORS:
            tensors[_library_name(name)] = _unread(file, name, label, config)
    encodings = sorted({place.encoding.name for place in file.tensors.values()})
    note = (
        f"{label} is a GGUF file with numbers in {', '.join(encodings)}; its tensors have the "
        "names and the order of transformers again, and the tokenizer inside it is not read."
    )
    return config, tensors, (note,)


def _architecture(file: GgufFile, label: str) -> str:
    purpose = file.settings.get("general.type", "model")
    kind = file.settings.get("general.architecture")
    if purpose != "model" or not isinstance(kind, str):
        raise UserError(f"{label} is a GGUF file of no model: give that of the model itself")
    if kind not in _ARCHITECTURES:
        raise UserError(
            f"{label} holds a model of the architecture '{printable(kind)[:40]}': of GGUF files "
            f"{', '.join(_ARCHITECTURES)} are read; {WRITE_OUT}"
        )
    return kind


def _configuration(file: GgufFile, kind: str, label: str) -> dict[str, Any]:
    """What config.json would say."""
    prefix = f"{kind}."
    said = {k.removeprefix(prefix): v for k, v in file.settings.items() if k.startswith(prefix)}
    known = {*_COUNTS, *_NUMBERS, *_NEUTRAL, *_CHECKED}
    for key, value in said.items():
        if key not in known or (key in _NEUTRAL and value not in _NEUTRAL[key]):
            raise UserError(
                f"{label} has {printable(prefix + key)[:80]} = {printable(str(value))[:40]}, which "
                f"is not known to attlas and may change what the model computes: {WRITE_OUT}"
            )
    if missing := sorted(_NEEDED - said.keys()):
        raise UserError(f"{label} lacks {prefix}{missing[0]}: convert the model again")
    for key in (*_COUNTS, *_NUMBERS, *_CHECKED):
        if key in said:
            _require_number(label, prefix + key, said[key], whole=key in _COUNTS)
    if said["block_count"] > MOST_LAYERS:
        _refuse(label, f"{prefix}block_count", said["block_count"])
    config = {new: said[key] for key, new in (_COUNTS | _NUMBERS).items() if key in said}
    config = {"num_key_value_heads": config["num_attention_heads"], **config, "model_type": kind}
    config.setdefault("head_dim", max(1, config["hidden_size"] // config["num_attention_heads"]))
    for key in ("attention.value_length", "rope.dimension_count"):
        if said.get(key, config["head_dim"]) != config["head_dim"]:
            _refuse(label, prefix + key, said[key])
    config |= _of_tensors(file, kind, label)
    config |= _scaling(said) | _divided(file, config, label)
    for name, key in _TOKENS.items():
        number = file.settings.get(f"tokenizer.ggml.{name}_token_id")
        config |= {key: number} if type(number) is int else {}
    return config


def _of_tensors(file: GgufFile, kind: str, label: str) -> dict[str, Any]:
    """What the tensors that are there say."""
    if "token_embd.weight" not in file.tensors:
        raise UserError(f"{label} holds no tensor 'token_embd.weight': it is of no whole model")
    biases = {
        "attention_bias": "blk.0.attn_q.bias" in file.tensors,
        "mlp_bias": "blk.0.ffn_up.bias" in file.tensors,
    }
    return {
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "vocab_size": file.tensors["token_embd.weight"].shape[0],
        **(biases if kind == "llama" else {}),
    }


def _scaling(said: Mapping[str, Any]) -> dict[str, Any]:
    if said.get("rope.scaling.type") != "linear":
        return {}
    return {"rope_scaling": {"rope_type": "linear", "factor": said.get("rope.scaling.factor", 1.0)}}


def _divided(file: GgufFile, config: Mapping[str, Any], label: str) -> dict[str, Any]:
    """The rule by which each frequency has a divisor of its own, where the file has divisors."""
    place = file.tensors.get(_FACTORS)
    if place is None:
        return {}
    if place.shape != (config["head_dim"] // 2,) or config["head_dim"] > MOST_TURNING:
        raise UserError(f"{label} holds '{_FACTORS}' of another shape than half of a head")
    if "rope_scaling" in config:
        raise UserError(f"{label} scales its rotary positions in two ways: {WRITE_OUT}")
    divisors = [float(value) for value in file.read(_FACTORS, np.dtype(np.float64))]
    if not all(0 < value < math.inf for value in divisors):
        raise UserError(f"{label} holds '{_FACTORS}' with entries that divide no frequency")
    rule = {"rope_type": "longrope", "short_factor": divisors, "attention_factor": 1.0}
    return {
        "original_max_position_embeddings": config["max_position_embeddings"],
        "rope_scaling": rule,
    }


def _require_number(label: str, key: str, value: Any, *, whole: bool) -> None:
    good = type(value) is int if whole else type(value) in (int, float)
    if not good or not 0 < value <= _LARGEST:
        _refuse(label, key, value)


def _refuse(label: str, key: str, value: Any) -> NoReturn:
    raise UserError(
        f"{label} has {key} = {printable(str(value))[:40]}, which no model that attlas reads has: "
        "convert the model again"
    )


def _library_name(name: str) -> str:
    """The name of transformers; a name that is not known stays, and is refused with its model."""
    found = _NAME.fullmatch(name)
    if found is None:
        return name
    layer, base, part = found.groups()
    table = _WHOLE if layer is None else _LAYER
    if base not in table:
        return name
    return f"{'' if layer is None else f'model.layers.{layer}.'}{table[base]}.{part}"


def _unread(file: GgufFile, name: str, label: str, config: Mapping[str, Any]) -> Unread:
    place = file.tensors[name]
    heads = 0
    if config["model_type"] == "llama" and ".attn_q." in name:
        heads = config["num_attention_heads"]
    elif config["model_type"] == "llama" and ".attn_k." in name:
        heads = config["num_key_value_heads"]
    is_gain = config["model_type"] == "gemma" and name.endswith("norm.weight")

    def read(dtype: np.dtype) -> np.ndarray:
        values = file.read(name, dtype)
        if heads and values.shape[0] % (2 * heads) == 0:
            values = _halves_of_heads(values, heads)
        with np.errstate(invalid="ignore"):  # what is no number is refused with its tensor
            return values - 1 if is_gain else values

    return Unread(place.shape, place.encoding.dtype, label, read)


def _halves_of_heads(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows of each head with both coordinates of a turning pair half a head apart.

    They stand side by side in the file.
    """
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return np.swapaxes(pairs, 1, 2).reshape(rows.shape)
