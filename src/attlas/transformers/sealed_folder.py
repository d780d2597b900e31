"""Folders of models that attlas saved: a sealed config.json names the file of its tensors.

The tensors are in `model@<first 16 digits of their sha256>.safetensors`, replaced together with
config.json as `attlas._files.file_changes` describes. Both are verified when a model is opened.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attlas._files.budget import CONFIGURATION, parse_json
from attlas._files.file_changes import FilePair, folder_lock, is_named_by_content, make_folder
from attlas._files.plain_file import Damaged, read_plain_file
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError
from attlas.transformers.write_safetensors import safetensors_blocks

CONFIG = "config.json"
_SEAL, _TENSORS = "seal", "tensors_sha256"


def write_sealed_folder(
    folder: Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, ArrayInput],
    note: Callable[[str], None] = warnings.warn,
) -> None:
    """Write a model, replacing another one of that folder in one step.

    Args:
        note: receives one line if the model that is replaced was damaged; it is set aside.

    Raises:
        OSError: if the system refuses; the old model then stays.
        UserError: if the configuration is longer than a reader accepts.
    """
    digest = hashlib.sha256()
    for block in safetensors_blocks(tensors):
        digest.update(block)
    sealed = {**config, _TENSORS: digest.hexdigest()}
    text = json.dumps({**sealed, _SEAL: _seal(sealed)}, indent=1, sort_keys=True, allow_nan=False)
    if len(text) > CONFIGURATION.bytes:
        raise UserError(
            f"the configuration of {folder} needs {len(text)} bytes, of at most "
            f"{CONFIGURATION.bytes}: store fewer settings or sequences with the model"
        )
    make_folder(folder)
    with folder_lock(folder):
        try:
            read_sealed_folder(folder)
        except Damaged as damage:
            aside = folder / "quarantine"
            _pair(folder).set_aside(aside, "model")
            note(f"{damage}: moved to {aside}")
        _pair(folder).replace(f"{text}\n".encode(), digest.hexdigest(), safetensors_blocks(tensors))


def read_sealed_folder(folder: Path) -> tuple[dict[str, Any], Path] | None:
    """Configuration and tensors' file of a model that attlas saved, both verified.

    Returns:
        None if the folder is of others, or of an earlier version of attlas, which wrote no seal.

    Raises:
        Damaged: if a file was truncated or altered, or is missing.
    """
    path, pair = folder / CONFIG, _pair(folder)
    has_named = any(map(is_named_by_content, pair.all_data()))
    try:
        text = read_plain_file(path, CONFIGURATION.bytes)
        if text is None:
            return None
        config = parse_json(text, CONFIGURATION)
    except Damaged:
        config = None
    if not isinstance(config, dict) or _SEAL not in config:
        # An earlier version's model may stand beside tensors of an unfinished one.
        if not has_named or (folder / "model.safetensors").exists():
            return None
        raise Damaged(f"{path} was truncated or altered (it has no seal)")
    sealed = {name: value for name, value in config.items() if name != _SEAL}
    if config[_SEAL] != _seal(sealed):
        raise Damaged(f"{path} was altered (its seal does not fit)")
    digest = sealed.pop(_TENSORS, "")
    tensors = pair.data(str(digest))
    try:
        with tensors.open("rb") as file:
            is_as_sealed = hashlib.file_digest(file, "sha256").hexdigest() == digest
    except OSError as error:
        raise Damaged(f"{tensors} cannot be read ({error.strerror or error})") from error
    if not is_as_sealed:
        raise Damaged(f"{tensors} was truncated or altered (its checksum does not fit)")
    return sealed, tensors


def _pair(folder: Path) -> FilePair:
    return FilePair(folder / CONFIG, "model", ".safetensors")


def _seal(config: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
