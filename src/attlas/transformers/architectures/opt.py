"""OPT: positions from row 2 on, pre-norm or post-norm, in one size with a narrower embedding."""

from collections.abc import Mapping
from typing import Any

from attlas.transformers._readers.fused_reference import readers
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.configuration import Configuration
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import MAPS, Names

SETTINGS = {
    "opt": Settings(
        read=(
            *("_remove_final_layer_norm", "activation_function", "do_layer_norm_before"),
            *("enable_bias", "ffn_dim", "hidden_size", "layer_norm_elementwise_affine"),
            *("max_position_embeddings", "num_attention_heads", "num_hidden_layers"),
            *("tie_word_embeddings", "vocab_size", "word_embed_proj_dim"),
        ),
        required={"learned_embeddings": True, "scale_embeddings": False},  # Galactica names them
        unused=("is_decoder",),
    )
}

_NAMES = Names(
    tokens="embed_tokens",
    positions="embed_positions",
    lm_heads=("lm_head",),
    query="self_attn.q_proj",
    key="self_attn.k_proj",
    value="self_attn.v_proj",
    output="self_attn.out_proj",
    attention_norm="self_attn_layer_norm",
    inner="fc1",
    outer="fc2",
    feedforward_norm="final_layer_norm",
)
_OFFSET = 2  # rows of the positions that no token reads


def _table(config: Mapping[str, Any]) -> StoredTransformer:
    values = Configuration(config)
    d, heads = values.count("hidden_size"), values.count("num_attention_heads")
    values.divides("num_attention_heads", heads, d, "hidden_size")
    e = values.count("word_embed_proj_dim", d)
    before = values.flag("do_layer_norm_before", True)
    names = _NAMES
    if before and not values.flag("_remove_final_layer_norm", False):
        names = names._replace(last_norm="final_layer_norm")
    if e != d:
        names = names._replace(token_projection="project_in", transform="project_out")
    return StoredTransformer(
        architecture="opt",
        names=names,
        prefixes=("model.decoder.", "decoder.", ""),
        layers=tuple(f"layers.{i}." for i in range(values.layers("num_hidden_layers"))),
        width=d,
        heads=heads,
        hidden=values.count("ffn_dim"),
        embedding_width=e,
        vocabulary=values.count("vocab_size"),
        positions=values.count("max_position_embeddings") + _OFFSET,
        first_position=_OFFSET,
        eps=1e-5,  # of torch's LayerNorm; the configuration does not name it
        activation=values.choice("activation_function", ACTIVATIONS, "relu"),
        head_activation="linear",
        norm_placement="pre-norm" if before else "post-norm",
        scaled_norms=values.flag("layer_norm_elementwise_affine", True),
        biased=MAPS if values.flag("enable_bias", True) else (),
        causal=True,
        tied=values.flag("tie_word_embeddings", True),
        buffers=r"(^|\.)decoder\.version$",
    )


read, fused_attention = readers(_table)
