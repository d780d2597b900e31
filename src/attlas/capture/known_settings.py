"""Which keys of a configuration transformers makes use of: what it only stores may be misread."""

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from attlas.transformers.architecture_table import architecture_table
from attlas.transformers.settings import (
    LIBRARY,
    Settings,
    is_missing,
    unknown_setting,
)

_BY_THE_LOADER = ("compression_config", "pruned_heads", "quantization_config")
"""Keys that the loading of weights reads, or stops at, whatever the architecture."""
_DROPPED = {
    "bart": Settings(
        required={
            "add_bias_logits": False,
            "add_final_layer_norm": False,
            "normalize_before": False,
            "normalize_embedding": True,
        },
        unused=("classif_dropout",),
    ),
    "bloom": Settings(
        required={
            "attention_softmax_in_fp32": True,
            "offset_alibi": 100,
            "skip_bias_add": True,
            "skip_bias_add_qkv": False,
        },
        unused=("bias_dropout_fusion", "masked_softmax_fusion", "seq_length"),
    ),
    "deberta": Settings(unused=("padding_idx",)),
    "deepseek_v3": Settings(
        required={"moe_layer_freq": 1, "scoring_func": "sigmoid", "topk_method": "noaux_tc"},
        unused=("ep_size",),
    ),
    "falcon": Settings(required={"apply_residual_connection_post_layernorm": False}),
    "gptj": Settings(required={"rotary": True, "scale_attn_weights": True}),
    "longformer": Settings(
        required={"attention_mode": "longformer", "ignore_attention_mask": False}
    ),
    "t5": Settings(unused=("n_positions",)),
    "wav2vec2": Settings(
        unused=(
            *("feat_extract_dropout", "freeze_feat_extract_train", "mask_channel_length"),
            "no_mask_channel_overlap",
        )
    ),
    "whisper": Settings(unused=("forced_decoder_ids",)),
}
"""Keys of well-known checkpoints that earlier versions of transformers wrote and later ones have
dropped: with the one value that the library's code computes, or that it never read."""
IGNORED = "--ignore-settings (ignore_settings=True) runs the model as if they were not there"


def require_known_settings(library: Any, written: Mapping[str, Any], config: Any) -> None:
    """Check that the installed transformers understands every key of a configuration.

    A key is known where the class of the configuration has or consumes it, where the code of the
    model or of its configuration names it, or where it changes nothing in any architecture.

    Args:
        library: the module transformers.
        written: the parsed config.json.
        config: the object that the library makes of it.

    Raises:
        UnknownSetting: naming all keys that are not.
    """
    unknown = dict(_unknown(library, written, config, ""))
    if unknown:
        kind = f" for a '{config.model_type}'" if config.model_type else ""
        raise unknown_setting(unknown, f"to transformers {library.__version__}{kind}", IGNORED)


def _unknown(
    library: Any, written: Mapping[str, Any], config: Any, section: str
) -> Iterator[tuple[str, Any]]:
    """The unknown keys of a configuration, or of a section that is one of its own."""
    settings = type(config)
    parameters = inspect.signature(settings.__init__).parameters
    for key, value in written.items():
        if is_missing(value) or key not in vars(config) or key in _BY_THE_LOADER:
            continue  # what the class has consumed is no longer there
        inner = vars(config)[key]
        if isinstance(value, Mapping) and isinstance(inner, library.PreTrainedConfig):
            yield from _unknown(library, value, inner, f"{section}{key}.")
        elif (
            key not in parameters
            and not hasattr(settings, key)
            and key not in settings.attribute_map
            and not _is_neutral(config.model_type, key, value)
            and not _is_named(settings, key)
        ):
            yield f"{section}{key}", value


def _is_named(settings: type, key: str) -> bool:
    """Whether the code of a configuration's class, or of a model beside it, reads a key."""
    name = re.escape(key)
    of_config, of_model = _code(settings)
    return bool(
        re.search(rf"\bself\.{name}\b|[\"']{name}[\"']", of_config)
        or re.search(rf"\bconfig\.{name}\b|config, [\"']{name}[\"']", of_model)
    )


@cache
def _code(settings: type) -> tuple[str, str]:
    """Source of the module of a configuration's class, and of the models beside it."""
    file = Path(inspect.getfile(settings))
    models = sorted(file.parent.glob("modeling_*.py"))
    return file.read_text("utf-8"), "\n".join(model.read_text("utf-8") for model in models)


@cache
def _tables() -> tuple[Any, ...]:
    tables = architecture_table().values()
    return (LIBRARY, *(settings for table in tables for settings in table.SETTINGS.values()))


def _is_neutral(kind: str, key: str, value: Any) -> bool:
    """Whether a key has the value that stands for its absence, or changes no architecture."""
    return any(
        key in table.unused or (key in table.required and table.required[key] == value)
        for table in (_DROPPED.get(kind, Settings()), *_tables())
    )
