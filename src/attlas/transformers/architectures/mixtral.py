"""Mixtral, Qwen2-MoE and Qwen3-MoE: the layers of Mistral, Qwen2 and Qwen3 with experts.

Files hold each expert by itself; a model in memory holds all experts of a layer in two tensors.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from attlas.core.errors import UserError
from attlas.transformers._readers.fused_reference import fused_heads
from attlas.transformers.architectures import llama
from attlas.transformers.configuration import ChangedConfiguration, Configuration
from attlas.transformers.settings import Settings
from attlas.transformers.stored_experts import StoredExperts
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.trained_transformer import TrainedTransformer

_LIKE = {"mixtral": "mistral", "qwen2_moe": "qwen2", "qwen3_moe": "qwen3"}
_TRAINING = ("output_router_logits", "router_aux_loss_coef", "router_jitter_noise")
_QWEN = (
    *("decoder_sparse_step", "mlp_only_layers", "moe_intermediate_size", "norm_topk_prob"),
    *("num_experts", "num_experts_per_tok", "num_local_experts"),
)
_SHARED = ("qkv_bias", "shared_expert_intermediate_size")


def _settings(kind: str, *read: str) -> Settings:
    like = llama.SETTINGS[_LIKE[kind]]
    return Settings((*like.read, *read), like.required, (*like.unused, *_TRAINING))


SETTINGS = {
    "mixtral": _settings("mixtral", "num_experts", "num_experts_per_tok", "num_local_experts"),
    "qwen2_moe": _settings("qwen2_moe", *_QWEN, *_SHARED),
    "qwen3_moe": _settings("qwen3_moe", *_QWEN),
}


def read(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
) -> TrainedTransformer:
    """The model in canonical form."""
    return _table(config, tensors).read(tensors, name)


def fused_attention(
    config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], index: int, x: np.ndarray
) -> np.ndarray:
    """A layer's attention (T, d) on x (T, d) from the file's own matrices, in NumPy float64."""
    return fused_heads(_table(config, tensors), tensors, index, x)


def _table(config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> StoredTransformer:
    values = Configuration(config)
    kind = values.word("model_type")
    changes: dict[str, Any] = {"model_type": _LIKE[kind]}
    layers = values.layers("num_hidden_layers")
    slides = kind != "mixtral" and values.flag("use_sliding_window", False)
    if kind != "mixtral" and not slides:
        changes["sliding_window"] = None  # which the library writes as 0
    if kind == "qwen2_moe" and not values.has("layer_types"):
        # Unlike Qwen2's, every second layer slides, up to `max_window_layers`.
        last = values.count("max_window_layers", 28, least=0) if slides else 0
        changes["layer_types"] = [
            "full_attention" if index % 2 or index >= last else "sliding_attention"
            for index in range(layers)
        ]
    if kind == "qwen3_moe" and not values.has("head_dim"):
        heads = values.count("num_attention_heads")
        width = values.count("hidden_size")
        changes["head_dim"] = values.divides("num_attention_heads", heads, width, "hidden_size")
    table = llama.decoder_table(ChangedConfiguration(config, **changes))
    if kind == "qwen2_moe" and not values.flag("qkv_bias", True):
        table = replace(table, biased=())
    if kind == "qwen3_moe" and slides:
        table = replace(table, windows=(values.count("sliding_window", 4096),) * layers)
    stacked = any(name.endswith(".experts.gate_up_proj") for name in tensors)
    return replace(table, architecture=kind, experts=_experts(values, kind, table.layers, stacked))


def _experts(
    values: Configuration, kind: str, layers: tuple[str, ...], stacked: bool
) -> StoredExperts:
    mixtral = kind == "mixtral"
    key = "num_experts" if values.has("num_experts") else "num_local_experts"
    count = values.count(key)
    values.refuse_unless("num_local_experts", count)
    active = values.count("num_experts_per_tok")
    if active > count:
        raise UserError(
            f"num_experts_per_tok = {active} in the configuration is more than the {count} experts "
            "of a layer: correct config.json"
        )
    block = "block_sparse_moe" if mixtral and not stacked else "mlp"
    parts = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    gate, inner, outer = (f"{block}.experts.{{}}.{part}" for part in parts)
    shared = kind == "qwen2_moe"
    return StoredExperts(
        layers=layers if mixtral else _sparse(values, layers),
        count=count,
        active=active,
        hidden=values.count("intermediate_size" if mixtral else "moe_intermediate_size"),
        normalized=mixtral or values.flag("norm_topk_prob", False),
        router=f"{block}.gate",
        gate=gate,
        inner=inner,
        outer=outer,
        stacked=f"{block}.experts" if stacked else "",
        shared="mlp.shared_expert" if shared else "",
        shared_hidden=values.count("shared_expert_intermediate_size") if shared else 0,
        shared_gate="mlp.shared_expert_gate" if shared else "",
    )


def _sparse(values: Configuration, layers: tuple[str, ...]) -> tuple[str, ...]:
    """Paths of the layers with experts: every so many, without those that are named."""
    step = values.count("decoder_sparse_step", 1)
    dense = values.values.get("mlp_only_layers") or []
    if not isinstance(dense, list) or any(type(index) is not int for index in dense):
        raise UserError(
            f"mlp_only_layers = {dense!r:.80} in the configuration is not a list of layers: "
            "correct config.json"
        )
    return tuple(
        path for index, path in enumerate(layers) if index not in dense and (index + 1) % step == 0
    )
