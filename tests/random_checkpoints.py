"""A small checkpoint of every architecture, drawn at random: what a file would hold.

An architecture needs an entry of `CONFIGURATIONS`: its sizes are those of every generic test. The
shapes of the causal models are written out by hand, as the libraries save them, and not asked of
the readers; the other readers are asked for the tensors that they require.
"""

from collections.abc import Mapping
from typing import Any
from unittest import mock

import jax
import numpy as np

from attlas.core.errors import UserError
from attlas.models.networks.encoder import make_encoder
from attlas.models.networks.translator import make_translator
from attlas.transformers.architecture_table import architecture_table
from attlas.transformers.attlas_model import stored_form
from attlas.transformers.load_model import load_model
from attlas.transformers.stored_tensors import StoredTensors

V, D, H, G, K, M, L, T = 13, 12, 4, 2, 6, 10, 2, 16
"""Vocabulary, width, heads, groups, coordinates of a head, units, layers, positions."""

LLAMA = {
    "hidden_size": D,
    "num_attention_heads": H,
    "num_key_value_heads": G,
    "head_dim": K,
    "intermediate_size": M,
    "num_hidden_layers": L,
    "vocab_size": V,
    "max_position_embeddings": T,
}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 7}
ENCODER = {
    "hidden_size": D,
    "num_attention_heads": 3,
    "num_hidden_layers": L,
    "intermediate_size": M,
}
BERT = ENCODER | {"vocab_size": V, "max_position_embeddings": T}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "llama": LLAMA | {"attention_bias": True, "mlp_bias": True, "rope_theta": 30.0},
    "mistral": LLAMA | {"sliding_window": 3},
    "qwen2": LLAMA | {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
    "qwen3": LLAMA,
    "gemma": LLAMA,
    "granite": LLAMA
    | {
        "attention_bias": True,
        "mlp_bias": True,
        "attention_multiplier": 0.6,
        "embedding_multiplier": 3.0,
        "residual_multiplier": 0.4,
        "logits_scaling": 2.5,
    },
    "mixtral": LLAMA | {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 3},
    "qwen2_moe": LLAMA | MOE | {"shared_expert_intermediate_size": 5, "mlp_only_layers": [0]},
    "qwen3_moe": LLAMA | MOE | {"attention_bias": True},
    "phi3": {key: value for key, value in LLAMA.items() if key != "head_dim"}
    | {
        "hidden_size": H * K,
        "rope_parameters": {
            "rope_type": "longrope",
            "rope_theta": 30.0,
            "partial_rotary_factor": 0.67,
            "short_factor": [1.0, 1.7],
            "long_factor": [2.0, 3.0],
        },
        "original_max_position_embeddings": 12,
        "sliding_window": 4,
    },
    "gemma2": LLAMA
    | {
        "query_pre_attn_scalar": 5,
        "sliding_window": 3,
        "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 3.0,
    },
    "gemma3_text": LLAMA
    | {
        "query_pre_attn_scalar": 5,
        "sliding_window": 3,
        "final_logit_softcapping": 3.0,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "modernbert": BERT
    | {"local_attention": 4, "layer_types": ["full_attention", "sliding_attention"]},
    "llama2.c": {
        "dim": H * K,
        "n_heads": H,
        "n_kv_heads": G,
        "n_layers": L,
        "hidden_dim": M,
        "vocab_size": V,
        "max_seq_len": T,
    },
    "gpt2": {"n_embd": D, "n_head": H, "n_layer": L, "vocab_size": V, "n_positions": T},
    "gpt_neox": {
        "hidden_size": H * K,
        "num_attention_heads": H,
        "num_hidden_layers": L,
        "intermediate_size": M,
        "vocab_size": V,
        "max_position_embeddings": T,
        "rotary_pct": 0.34,
    },
    "opt": {
        "hidden_size": D,
        "num_attention_heads": H,
        "num_hidden_layers": L,
        "ffn_dim": M,
        "vocab_size": V,
        "max_position_embeddings": T,
        "word_embed_proj_dim": 8,
    },
    "albert": BERT | {"embedding_size": 6, "type_vocab_size": 2},
    "bert": BERT | {"type_vocab_size": 2},
    "mpnet": BERT,
    "electra": BERT | {"type_vocab_size": 2, "embedding_size": 6},
    "roberta": BERT | {"type_vocab_size": 1},
    "xlm-roberta": BERT | {"type_vocab_size": 1},
    "camembert": BERT | {"type_vocab_size": 1},
    "distilbert": {
        "dim": D,
        "n_heads": 3,
        "n_layers": L,
        "hidden_dim": M,
        "vocab_size": V,
        "max_position_embeddings": T,
    },
    "vit": ENCODER | {"image_size": 6, "patch_size": 2, "num_channels": 1},
}


def _llama_shapes(kind: str) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (V, D),
        "model.norm.weight": (D,),
        "lm_head.weight": (V, D),
    }
    for index in range(L):
        base = f"model.layers.{index}."
        attention = base + "self_attn."
        for name, rows in (("q_proj", H * K), ("k_proj", G * K), ("v_proj", G * K)):
            shapes[f"{attention}{name}.weight"] = (rows, D)
            if kind in {"llama", "granite", "qwen2"}:
                shapes[f"{attention}{name}.bias"] = (rows,)
        shapes[attention + "o_proj.weight"] = (D, H * K)
        for name, shape in (("gate", (M, D)), ("up", (M, D)), ("down", (D, M))):
            shapes[f"{base}mlp.{name}_proj.weight"] = shape
            if kind in {"llama", "granite"}:
                shapes[f"{base}mlp.{name}_proj.bias"] = shape[:1]
        if kind in {"llama", "granite"}:
            shapes[attention + "o_proj.bias"] = (D,)
        if kind == "qwen3":
            shapes |= {attention + "q_norm.weight": (K,), attention + "k_norm.weight": (K,)}
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{base}{name}.weight"] = (D,)
    return shapes


def _llama2c_shapes() -> dict[str, tuple[int, ...]]:
    d = H * K
    shapes: dict[str, tuple[int, ...]] = {"tok_embeddings.weight": (V, d), "norm.weight": (d,)}
    for index in range(L):
        base = f"layers.{index}."
        matrices = {"wq": (d, d), "wk": (G * K, d), "wv": (G * K, d), "wo": (d, d)}
        shapes |= {f"{base}attention.{name}.weight": shape for name, shape in matrices.items()}
        units = {"w1": (M, d), "w2": (d, M), "w3": (M, d)}
        shapes |= {f"{base}feed_forward.{name}.weight": shape for name, shape in units.items()}
        shapes |= {f"{base}{name}_norm.weight": (d,) for name in ("attention", "ffn")}
    return shapes


def _biased(matrices: dict[str, tuple[int, int]], outputs: int) -> dict[str, tuple[int, ...]]:
    """Matrices with biases; `outputs` is the axis of the outputs."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, shape in matrices.items():
        shapes |= {name + ".weight": shape, name + ".bias": (shape[outputs],)}
    return shapes


def _gpt2_shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"wte.weight": (V, D), "wpe.weight": (T, D)}
    shapes |= {"ln_f.weight": (D,), "ln_f.bias": (D,)}
    for index in range(L):
        base = f"h.{index}."
        matrices = {"attn.c_attn": (D, 3 * D), "attn.c_proj": (D, D)}
        matrices |= {"mlp.c_fc": (D, 4 * D), "mlp.c_proj": (4 * D, D)}
        shapes |= _biased({base + name: shape for name, shape in matrices.items()}, 1)
        shapes |= {f"{base}ln_{n}.{part}": (D,) for n in (1, 2) for part in ("weight", "bias")}
        shapes[base + "attn.bias"] = (1, 1, T, T)
    return shapes


def _gpt_neox_shapes() -> dict[str, tuple[int, ...]]:
    d = H * K
    shapes: dict[str, tuple[int, ...]] = {
        "gpt_neox.embed_in.weight": (V, d),
        "embed_out.weight": (V, d),
    }
    norms = ["gpt_neox.final_layer_norm"]
    for index in range(L):
        base = f"gpt_neox.layers.{index}."
        norms += [base + "input_layernorm", base + "post_attention_layernorm"]
        matrices = {"attention.query_key_value": (3 * d, d), "attention.dense": (d, d)}
        matrices |= {"mlp.dense_h_to_4h": (M, d), "mlp.dense_4h_to_h": (d, M)}
        shapes |= _biased({base + name: shape for name, shape in matrices.items()}, 0)
        shapes[base + "attention.rotary_emb.inv_freq"] = (1,)
    return shapes | {f"{norm}.{part}": (d,) for norm in norms for part in ("weight", "bias")}


def _opt_shapes() -> dict[str, tuple[int, ...]]:
    base = "model.decoder."
    shapes: dict[str, tuple[int, ...]] = {
        base + "embed_tokens.weight": (V, 8),
        base + "embed_positions.weight": (T + 2, D),
        base + "project_in.weight": (D, 8),
        base + "project_out.weight": (8, D),
    }
    norms = [base + "final_layer_norm"]
    for index in range(L):
        layer = f"{base}layers.{index}."
        norms += [layer + "self_attn_layer_norm", layer + "final_layer_norm"]
        matrices = {f"{layer}self_attn.{name}_proj": (D, D) for name in ("q", "k", "v", "out")}
        matrices |= {layer + "fc1": (M, D), layer + "fc2": (D, M)}
        shapes |= _biased(matrices, 0)
    return shapes | {f"{norm}.{part}": (D,) for norm in norms for part in ("weight", "bias")}


SHAPES = {
    **{
        kind: _llama_shapes(kind)
        for kind in ("llama", "mistral", "qwen2", "qwen3", "gemma", "granite")
    },
    "llama2.c": _llama2c_shapes(),
    "gpt2": _gpt2_shapes(),
    "gpt_neox": _gpt_neox_shapes(),
    "opt": _opt_shapes(),
}


class _RequiredShapes(Exception):
    """Stops a reader as soon as it says which tensors it requires."""


def _required_shapes(kind: str, config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """What the reader of an architecture requires of a file."""

    def stop(self: StoredTensors, tensors: Any, shapes: Any, *, prefixes=("",), **_: Any) -> None:
        raise _RequiredShapes({prefixes[0] + name: shape for name, shape in shapes.items()})

    with mock.patch.object(StoredTensors, "__init__", stop):
        try:
            architecture_table()[kind].read(config, {}, "asked")
        except _RequiredShapes as required:
            return required.args[0]
    raise AssertionError(f"{kind} reads no tensors")


def random_checkpoint(kind: str, seed: int = 0) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Configuration and float64 tensors of a model.

    Args:
        kind: its model_type.
        seed: of the draw.
    """
    if kind in ("attlas_encoder", "attlas_translator"):
        sizes, key = {"width": 6, "blocks": 2, "heads": 3, "hidden": 8}, jax.random.key(0)
        encoder = make_encoder(key, 9, 5, **sizes)
        translator = make_translator(key, (9, 9), **sizes)
        config, stored = stored_form(encoder if kind == "attlas_encoder" else translator)
        shapes = {name: np.shape(tensor) for name, tensor in stored.items()}
    else:
        assert kind in CONFIGURATIONS, f"{kind}: add its sizes to CONFIGURATIONS"
        config = {"model_type": kind} | CONFIGURATIONS[kind]
        shapes = SHAPES.get(kind) or _required_shapes(kind, config)
    draw = np.random.default_rng(seed)
    return dict(config), {
        name: draw.normal(size=shape) * (1.6 / min(shape) ** 0.5 if len(shape) == 2 else 1.0)
        for name, shape in shapes.items()
    }


def refusal(kind: str, change: dict[str, Any]) -> str:
    """What is said about a changed configuration; nothing if the model is read.

    Args:
        kind: its model_type.
        change: of the configuration.
    """
    config, tensors = random_checkpoint(kind)
    try:
        model = load_model(tensors, config=config | change)
        model.logits(np.arange(3))
    except UserError as error:
        return str(error)
    return ""
