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
    """Keys of a configuration that nothing reads."""


def require_settings(config: Mapping[str, Any], *tables: Settings, section: str = "") -> None:
    """Stop where a configuration has a setting that no reader understands.

    A key whose value is null or empty counts as missing.

    Args:
        config: the parsed file, or a section of it.
        *tables: settings; the first that has a key decides about it.
        section: name of the section, empty for the whole file.

    Raises:
        UnknownSetting: naming all keys that no table has, and what makes the model readable.
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
    unknown: dict[str, Any] = {}
    for key, value in config.items():
        if is_missing(value):
            continue
        table = next((settings for settings in tables if key in settings), None)
        label = ".".join(filter(None, (section, str(key))))
        if table is None:
            unknown[label] = value
        elif key in table.required:
            label = printable(label)[:80]
            Configuration({label: value}).refuse_unless(label, table.required[key])
    if unknown:
        kind = config.get("model_type")
        reader = f" for a '{printable(kind)[:80]}'" if isinstance(kind, str) else ""
        raise unknown_setting(unknown, f"to attlas{reader}")


def unknown_setting(unknown: Mapping[str, Any], reader: str, otherwise: str = "") -> UnknownSetting:
    """The refusal of keys that nothing reads, by their names.

    Args:
        unknown: values of the keys, named with their section.
        reader: the phrase of who does not know them, such as "to attlas".
        otherwise: a last remedy.

    Examples:
        >>> print(unknown_setting({"scale": 2, "depth": 3}, "to attlas"))
        scale = 2 and depth = 3 in the configuration are not known to attlas and may change what \
the model computes: correct model_type, or remove the keys from config.json if the model does not \
depend on them
    """
    shown = [f"{printable(key)[:80]} = {value!r:.80}" for key, value in unknown.items()]
    several = len(shown) > 1
    named = " and ".join([*shown[:_MOST_NAMED], *_more(len(shown))])
    them = "the keys" if several else "the key"
    general = (
        f"correct model_type, or remove {them} from config.json if the model does not depend on "
        f"{'them' if several else 'it'}"
    )
    special = [_REMEDIES.get(key.rpartition(".")[2]) for key in unknown]
    remedies = [*dict.fromkeys(filter(None, special)), *([general] if None in special else [])]
    return UnknownSetting(
        f"{named} in the configuration {'are' if several else 'is'} not known {reader} and may "
        f"change what the model computes: {'; '.join(filter(None, (*remedies, otherwise)))}"
    )


def _more(number: int) -> list[str]:
    return [f"{number - _MOST_NAMED} more"] if number > _MOST_NAMED else []


_MOST_NAMED = 8
"""Keys that one line names."""


def is_missing(value: Any) -> bool:
    """Whether a value is null or empty, which counts as no value."""
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
