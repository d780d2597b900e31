"""BERT, RoBERTa and ELECTRA, and the models that are RoBERTa's under another name.

RoBERTa's positions begin behind the row of its padding token, and their count passes over that
token, wherever it stands; its attention sees it like any other. ELECTRA's embedding may be narrower
than its hidden states.
"""

from collections.abc import Mapping
from typing import Any

from attlas.transformers._readers.fused_reference import readers
from attlas.transformers.activations import ACTIVATIONS
from attlas.transformers.configuration import Configuration
from attlas.transformers.settings import Settings
from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.tensor_names import Names

_READ = (
    *("hidden_act", "hidden_size", "intermediate_size", "layer_norm_eps"),
    *("max_position_embeddings", "model_type", "num_attention_heads", "num_hidden_layers"),
    *("pruned_heads", "type_vocab_size", "vocab_size"),
)
_REQUIRED = {"directionality": "bidi", "position_embedding_type": "absolute"}
_UNUSED = (
    "tie_word_embeddings",  # the file holds the embedding once, or once more as the LM head
    *("pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers"),
    *("pooler_size_per_head", "pooler_type"),
)
_ROBERTA = ("camembert", "roberta", "xlm-roberta")
SETTINGS = {
    "bert": Settings(_READ, _REQUIRED, _UNUSED),
    "electra": Settings(
        (*_READ, "embedding_size"),
        _REQUIRED,
        (
            *_UNUSED,
            *("summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj"),
        ),
    ),
    **{kind: Settings((*_READ, "pad_token_id"), _REQUIRED, _UNUSED) for kind in _ROBERTA},
}

_ENCODER = Names(
    tokens="embeddings.word_embeddings",
    positions="embeddings.position_embeddings",
    token_types="embeddings.token_type_embeddings",
    embedding_norm="embeddings.LayerNorm",
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    output="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    inner="intermediate.dense",
    outer="output.dense",
    feedforward_norm="output.LayerNorm",
)
_NAMES = {
    "bert": _ENCODER._replace(
        transform="cls.predictions.transform.dense",
        transform_norm="cls.predictions.transform.LayerNorm",
        lm_heads=("cls.predictions.decoder",),
        lm_biases=("cls.predictions.decoder.bias", "cls.predictions.bias"),
    ),
    "electra": _ENCODER._replace(
        transform="generator_predictions.dense",
        transform_norm="generator_predictions.LayerNorm",
        lm_heads=("generator_lm_head",),
        lm_biases=("generator_lm_head.bias",),
    ),
    "roberta": _ENCODER._replace(
        transform="lm_head.dense",
        transform_norm="lm_head.layer_norm",
        lm_heads=("lm_head.decoder",),
        lm_biases=("lm_head.decoder.bias", "lm_head.bias"),
    ),
}


def _table(config: Mapping[str, Any]) -> StoredTransformer:
    values = Configuration(config)
    kind = values.choice("model_type", tuple(SETTINGS), "bert")
    d, heads = values.count("hidden_size"), values.count("num_attention_heads")
    values.divides("num_attention_heads", heads, d, "hidden_size")
    family = "roberta" if kind in _ROBERTA else kind
    padding = values.count("pad_token_id", 1, least=0) if kind in _ROBERTA else None
    names = _NAMES[family]
    narrow = values.count("embedding_size", 128) if kind == "electra" else d
    if narrow != d:
        names = names._replace(projection="embeddings_project")
    return StoredTransformer(
        architecture=kind,
        names=names,
        prefixes=(f"{family}.", ""),
        layers=tuple(f"encoder.layer.{i}." for i in range(values.layers("num_hidden_layers"))),
        width=d,
        heads=heads,
        pruned=values.heads_by_layer("pruned_heads", values.layers("num_hidden_layers"), heads),
        hidden=values.count("intermediate_size"),
        embedding_width=narrow,
        vocabulary=values.count("vocab_size"),
        positions=values.count("max_position_embeddings"),
        first_position=0 if padding is None else padding + 1,
        padding=padding,
        token_types=values.count("type_vocab_size"),
        eps=values.number("layer_norm_eps", 1e-12),
        activation=values.choice("hidden_act", ACTIVATIONS, "gelu"),
        # the library's own masked-LM head has one activation for all but BERT
        head_activation=None if kind == "bert" else "gelu",
        norm_placement="post-norm",
        causal=False,
        optional={
            "pooler.dense.weight": (d, d),
            "pooler.dense.bias": (d,),
            "cls.seq_relationship.weight": (2, d),
            "cls.seq_relationship.bias": (2,),
            "discriminator_predictions.dense.weight": (d, d),
            "discriminator_predictions.dense.bias": (d,),
            "discriminator_predictions.dense_prediction.weight": (1, d),
            "discriminator_predictions.dense_prediction.bias": (1,),
        },
        buffers=r"(^|\.)embeddings\.position_ids$",
    )


read, fused_attention = readers(_table)
