"""How the folder of a sentence encoder says that hidden states become one embedding."""

from pathlib import Path
from typing import Any, Literal

from attlas._files.budget import CONFIGURATION, parse_json
from attlas._files.plain_file import Damaged, printable, read_plain_file
from attlas.core.errors import UserError

Pooling = Literal["mean", "cls", "max", "lasttoken"]
_MODES: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
_KNOWN = ("Transformer", "Pooling", "Normalize")


def folder_pooling(folder: Path) -> Pooling:
    """The pooling of a folder of sentence-transformers; the mean where none is named.

    Raises:
        UserError: if the folder has modules that are no pooling, or a pooling that is not known.

    Examples:
        >>> folder_pooling(Path("/nowhere"))
        'mean'
    """
    modules = _document(folder / "modules.json")
    kinds = [str(each.get("type", "")).rsplit(".", 1)[-1] for each in modules or []]
    strange = [kind for kind in kinds if kind not in _KNOWN]
    if strange:
        raise UserError(
            f"{folder}: modules.json has a module {printable(strange[0])[:40]} behind the pooling, "
            "which is not read: the embeddings would be others than the model's"
        )
    settings = _document(folder / "1_Pooling" / "config.json") or {}
    mode = settings.get("pooling_mode")
    modes = [mode] if mode else [name for name in settings if name.startswith("pooling_mode_")]
    chosen = [name for name in modes if mode or settings[name]]
    if not chosen:
        return "mean"
    known: dict[str, Pooling] = {**_MODES, **{value: value for value in _MODES.values()}}
    if len(chosen) > 1 or chosen[0] not in known:
        raise UserError(
            f"{folder}: 1_Pooling/config.json asks for {printable(', '.join(map(str, chosen)))}, "
            f"of which only one is read, of {', '.join(_MODES.values())}"
        )
    return known[chosen[0]]


def longest_input(folder: Path) -> int | None:
    """The number of tokens at which the folder of a sentence encoder cuts a text, or None.

    Examples:
        >>> longest_input(Path("/nowhere")) is None
        True
    """
    settings = _document(folder / "sentence_bert_config.json") or {}
    longest = settings.get("max_seq_length")
    return longest if isinstance(longest, int) and longest > 1 else None


def _document(file: Path) -> Any:
    """The content of a file, or None where there is none."""
    try:
        content = read_plain_file(file, CONFIGURATION.bytes)
        document = None if content is None else parse_json(content, CONFIGURATION)
    except Damaged as damage:
        raise UserError(f"{file}: {printable(str(damage))}") from None
    kind = list if file.name == "modules.json" else dict
    if document is not None and not isinstance(document, kind):
        raise UserError(f"{file} is no {'list' if kind is list else 'mapping'}")
    if kind is list and not all(isinstance(each, dict) for each in document or []):
        raise UserError(f"{file} is no list of mappings")
    return document
