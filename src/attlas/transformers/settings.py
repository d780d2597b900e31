"""Which keys of a configuration an architecture knows; another key may change what it computes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attlas._files.plain_file import printable
from attlas.core.errors import UserError
from attlas.transformers.configuration import Configuration


@dataclass(frozen=True)
class Settings:
    """The keys that a reader knows, each of them in one way.

    Attributes:
        read: keys whose values the reader uses.
        required: keys with the one value that the reader supports, also that of an absent key.
        unused: keys that change nothing about the function that is read.

    Raises:
        ValueError: if a key is named twice.
    """

    read: tuple[str, ...] = ()
    required: Mapping[str, Any] = field(default_factory=dict)
    unused: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that no key is named twice."""
        keys = (*self.read, *self.required, *self.unused)
        if len(keys) > len(set(keys)):
            raise ValueError(f"named twice: {sorted({key for key in keys if keys.count(key) > 1})}")

    def __contains__(self, key: object) -> bool:
        """Whether the key is one of them."""
        return key in self.read or key in self.required or key in self.unused


class UnknownSetting(UserError):
    """A key of a configuration that no table has.

    Attributes:
        key: the key.
    """

    def __init__(self, key: str, message: str):
        super().__init__(message)
        self.key = key


def require_settings(config: Mapping[str, Any], *tables: Settings, section: str = "") -> None:
    """Stop where a configuration has a setting that no reader understands.

    A key whose value is null or empty counts as missing.

    Args:
        config: the parsed file, or a section of it.
        *tables: settings; the first that has a key decides about it.
        section: name of the section, empty for the whole file.

    Raises:
        UnknownSetting: naming the first key that no table has, and what makes the model readable.
        UserError: if a key has an unsupported value.

    Examples:
        >>> table = Settings(read=("width",), required={"bias": False}, unused=("dropout",))
        >>> require_settings({"width": 3, "dropout": 0.1, "bias": None}, table)
        >>> require_settings({"width": 3, "multiplier": 0.5}, table)
        Traceback (most recent call last):
            ...
        attlas.transformers.settings.UnknownSetting: multiplier = 0.5 in the configuration is not \
known to attlas and may change what the model computes: correct model_type, or remove the key from \
config.json if the model does not depend on it
    """
    for key, value in config.items():
        if _is_missing(value):
            continue
        table = next((settings for settings in tables if key in settings), None)
        label = ".".join(filter(None, (section, printable(str(key))[:80])))
        if table is None:
            kind = config.get("model_type")
            reader = f" for a '{kind}'" if isinstance(kind, str) else ""
            remedy = _REMEDIES.get(
                key,
                "correct model_type, or remove the key from config.json if the model does not "
                "depend on it",
            )
            raise UnknownSetting(
                str(key),
                f"{label} = {value!r:.80} in the configuration is not known to attlas{reader} and "
                f"may change what the model computes: {remedy}",
            )
        if key in table.required:
            Configuration({label: value}).refuse_unless(label, table.required[key])


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | tuple | Mapping) and len(value) == 0)


_DEQUANTISE = (
    "its numbers are quantised; load it with transformers, and save "
    "model.dequantize().save_pretrained(folder)"
)
_REMEDIES = {
    "auto_map": (
        "code beside the model replaces the library's own; remove the key if the file of that name "
        "in transformers computes the same"
    ),
    "compression_config": _DEQUANTISE,
    "pruned_heads": (
        "its layers have different numbers of heads; load the model before it was pruned, and set "
        "these heads' columns of the output projection to zero"
    ),
    "quantization_config": _DEQUANTISE,
}
"""What makes a model readable that has a key, where it is more than a key too many."""

_DROPOUT = (
    *("activation_dropout", "attention_dropout", "attention_probs_dropout_prob", "attn_pdrop"),
    *("classifier_dropout", "classifier_dropout_prob", "dropout", "embd_pdrop", "hidden_dropout"),
    *("hidden_dropout_prob", "layerdrop", "qa_dropout", "resid_pdrop", "seq_classif_dropout"),
    "summary_first_dropout",
)
_TRAINING = ("gradient_checkpointing", "init_std", "initializer_range", "loss_type")
_TOKENS = (
    *("bos_token_id", "cls_token_id", "decoder_start_token_id", "eos_token_id", "eos_token_ids"),
    *("mask_token_id", "pad_token_id", "prefix", "sep_token_id", "tokenizer_class"),
    "unk_token_id",
)
_TASKS = (
    *("_num_labels", "architectures", "finetuning_task", "id2label", "label2id", "language"),
    *("name", "num_labels", "problem_type", "sbert_ce_default_activation_function"),
    *("sentence_transformers", "task_specific_params"),
)
_GENERATION = (
    *("bad_words_ids", "begin_suppress_tokens", "diversity_penalty", "do_sample"),
    *("early_stopping", "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty"),
    *("forced_bos_token_id", "forced_eos_token_id", "length_penalty", "max_length"),
    *("max_new_tokens", "min_length", "no_repeat_ngram_size", "num_beam_groups", "num_beams"),
    *("num_return_sequences", "output_scores", "remove_invalid_values", "repetition_penalty"),
    *("return_dict_in_generate", "suppress_tokens", "temperature", "top_k", "top_p", "typical_p"),
)
_PROGRAM = (
    *("_attn_implementation", "_attn_implementation_autoset", "_commit_hash"),
    *("_experts_implementation", "_flash_attn_2_enabled", "_from_model_config", "_name_or_path"),
    *("attn_implementation", "cache_implementation", "chunk_size_feed_forward", "dtype"),
    *("experts_implementation", "model_type", "name_or_path", "output_attentions"),
    *("output_hidden_states", "output_past", "return_dict", "tf_legacy_loss"),
    *("tie_encoder_decoder", "tie_last_hidden_states", "torch_dtype", "torchscript"),
    *("transformers.js_config", "transformers_version", "unsloth_fixed", "unsloth_version"),
    *("use_bfloat16", "use_cache"),
)

LIBRARY = Settings(
    required={"add_cross_attention": False, "is_decoder": False, "is_encoder_decoder": False},
    unused=(*_DROPOUT, *_TRAINING, *_TOKENS, *_TASKS, *_GENERATION, *_PROGRAM),
)
"""What transformers, from version 2 on, and its users write for any architecture: how a model was
trained, what its tokens and labels are, how texts are generated and how the library computes."""
