"""A checkpoint on disk: a folder or file as libraries write them, known by its headers."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attlas._files.budget import CONFIGURATION, SHARD_INDEX, Budget, parse_json
from attlas._files.file_changes import folder_lock, is_named_by_content, pair_stem
from attlas._files.plain_file import Damaged, printable, read_plain_file
from attlas.core.errors import UserError
from attlas.transformers.adapter_folder import ADAPTER, ADAPTER_TENSORS, base_of, merged
from attlas.transformers.architecture_table import architecture_table
from attlas.transformers.gguf_model import read_gguf_model
from attlas.transformers.lazy_tensors import LazyTensors, Unread, tensors_of_files
from attlas.transformers.llama2c_file import read_llama2c_file
from attlas.transformers.quantised_tensors import dequantised
from attlas.transformers.safetensors_file import SafetensorsFile
from attlas.transformers.sealed_folder import CONFIG, read_sealed_folder
from attlas.transformers.stored_names import plain_names

MOST_SHARDS = 4096
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


@dataclass(frozen=True)
class Checkpoint:
    """What a folder or file says about its model, and its tensors, not read yet.

    Attributes:
        name: the path as the user gave it.
        config: parsed config.json, with `model_type`.
        notes: sentences on what was done to the files' numbers.
    """

    name: str
    config: Mapping[str, Any]
    tensors: LazyTensors
    notes: tuple[str, ...] = ()


def read_checkpoint(path: str | os.PathLike[str], dtype: np.dtype | None = None) -> Checkpoint:
    """Open a checkpoint: headers are read and checked, numbers are not.

    Of a model that attlas saved the file is read once as a whole, to compare its checksum.

    A folder holds config.json beside model.safetensors, beside the index of its shards, or beside
    one .safetensors file of any name; a .safetensors file is read with the config.json beside it;
    a .bin file is llama2.c's, and a .gguf file that of llama.cpp, also as the only one of a
    folder. A folder with a LoRA adapter is merged with the folder of its base.

    Args:
        dtype: type in which floating numbers are read; the file's, at least float32, when None.

    Raises:
        UserError: if something is missing, malformed or a pickle.
    """
    place, name = Path(path), printable(str(path))
    if not os.path.lexists(place):
        raise UserError(f"{name} is not there: give the folder or file of a model")
    notes: tuple[str, ...] = ()
    if place.is_dir() and _is_adapter(place):
        config, tensors, notes = _adapted(place)
    elif place.is_dir():
        sealed = _sealed(place)
        config, tensors, notes = _folder(place) if sealed is None else (*sealed, ())
    elif place.suffix == ".safetensors":
        is_ours = is_named_by_content(place) and pair_stem(place) == "model"
        sealed = _sealed(place.parent) if is_ours else None
        config, tensors, notes = (
            dequantised(
                _config(place.parent, place.name),
                plain_names(tensors_of_files([SafetensorsFile(place)]), name),
                name,
            )
            if sealed is None
            else (*sealed, ())
        )
    elif place.suffix == ".bin":
        config, tensors = read_llama2c_file(place)
    elif place.suffix == ".gguf":
        config, tensors, notes = read_gguf_model(place)
    else:
        # Pickles among them: nothing is looked at.
        raise UserError(f"{name} is not a model that attlas reads{_instead(place.suffix)}")
    return Checkpoint(name, config, LazyTensors(tensors, dtype), notes)


def _is_adapter(folder: Path) -> bool:
    whole = ("model.safetensors", "model.safetensors.index.json")
    there = [os.path.lexists(folder / name) for name in (ADAPTER, *whole)]
    return there == [True, False, False]


def _adapted(folder: Path) -> tuple[dict[str, Any], dict[str, Unread], tuple[str, ...]]:
    """The base model of an adapter, merged with it."""
    name = printable(str(folder))
    settings = _json(folder / ADAPTER, CONFIGURATION)
    base = base_of(settings, folder)
    if not (folder / ADAPTER_TENSORS).is_file():
        pickle = folder / "adapter_model.bin"
        instead = _instead(pickle.suffix) if pickle.is_file() else ": save the adapter again"
        raise UserError(f"{name} holds {ADAPTER} and no {ADAPTER_TENSORS}{instead}")
    config, tensors, notes = _folder(base)
    _require_reader(config, name)
    adapter = tensors_of_files([SafetensorsFile(folder / ADAPTER_TENSORS)])
    note = f"LoRA: {name} was merged with {printable(str(base))}."
    return config, merged(tensors, adapter, settings), (*notes, note)


def _require_reader(config: Mapping[str, Any], name: str) -> None:
    """Check that attlas reads an adapter's base: PyTorch runs no folder of an adapter.

    Raises:
        UserError: if it does not.
    """
    kind = config.get("model_type")
    if kind not in architecture_table():
        raise UserError(
            f"{name} adapts a model of model_type '{printable(str(kind))[:80]}', which attlas does "
            "not read itself: merge it with its base, by "
            "model.merge_and_unload().save_pretrained(folder), and PyTorch runs that folder"
        )


def _sealed(folder: Path) -> tuple[dict[str, Any], dict[str, Unread]] | None:
    """A model that attlas saved, None if the folder is of others."""
    try:
        return _opened(folder)
    except UserError:
        # A writer may have replaced the model while we read; under the lock none does.
        with folder_lock(folder):
            return _opened(folder)


def _opened(folder: Path) -> tuple[dict[str, Any], dict[str, Unread]] | None:
    try:
        sealed = read_sealed_folder(folder)
    except Damaged as damage:
        raise UserError(f"{printable(str(damage))}: save the model again") from None
    return sealed and (sealed[0], tensors_of_files([SafetensorsFile(sealed[1])]))


def _folder(folder: Path) -> tuple[dict[str, Any], dict[str, Unread], tuple[str, ...]]:
    name = printable(str(folder))
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        tensors = tensors_of_files([SafetensorsFile(folder / "model.safetensors")])
    elif os.path.lexists(index):
        tensors = _sharded(folder, index)
    else:
        single = sorted(folder.glob("*.safetensors"))
        if len(single) > 1:
            names = ", ".join(printable(path.name) for path in single[:3])
            raise UserError(
                f"{name} holds {len(single)} .safetensors files ({names}) and no "
                "model.safetensors.index.json: give one of the files, or add the index"
            )
        if not single:
            return _without_safetensors(folder)
        tensors = tensors_of_files(SafetensorsFile(path) for path in single)
    return dequantised(_config(folder, name), plain_names(tensors, name), name)


def _without_safetensors(
    folder: Path,
) -> tuple[dict[str, Any], dict[str, Unread], tuple[str, ...]]:
    label = printable(str(folder))
    pickles = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    official = [name for name in pickles if name.startswith("pytorch_model")]
    binaries = [name for name in pickles if name.endswith(".bin") and not name.startswith("tok")]
    if len(binaries) == 1 and not official:
        return (*read_llama2c_file(folder / binaries[0]), ())
    models = sorted(folder.glob("*.gguf"))
    if len(models) == 1:
        return read_gguf_model(models[0])
    if models:
        names = ", ".join(printable(path.name) for path in models[:3])
        raise UserError(f"{label} holds {len(models)} .gguf files ({names}): give one of them")
    if pickles:
        raise UserError(f"{label} holds {printable(pickles[0])}{_instead(_PICKLES[0])}")
    raise UserError(
        f"{label} holds no model: no model.safetensors, no index of shards, no .safetensors file"
    )


def _instead(suffix: str) -> str:
    if suffix in _PICKLES:
        return (
            " only, a pickle, which can run code when it is read: convert it where you trust it, "
            "with model.save_pretrained(folder, safe_serialization=True)"
        )
    if suffix == ".onnx":
        return (
            ", which holds a graph and no named layers: give the folder that it was exported from, "
            "as save_pretrained(folder) writes it"
        )
    return ": give a folder with config.json and model.safetensors, or a .safetensors file"


def _sharded(folder: Path, index: Path) -> dict[str, Unread]:
    label = printable(str(index))
    places = _json(index, SHARD_INDEX).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(v, str) for v in places.values()):
        raise UserError(f"{label} has no weight_map from tensors to files")
    names = sorted(set(places.values()))
    if not names or len(names) > MOST_SHARDS:
        raise UserError(f"{label} names {len(names)} files, of 1 to {MOST_SHARDS}")
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise UserError(
                f"{label} names '{printable(name)[:80]}', no .safetensors file of its own folder"
            )
    tensors = tensors_of_files(SafetensorsFile(folder / name) for name in names)
    for name, file in places.items():
        if name not in tensors or Path(tensors[name].where).name != printable(file):
            raise UserError(f"{label} puts tensor '{printable(name)}' into {file}: it is not there")
    if surplus := sorted(tensors.keys() - places.keys()):
        where = tensors[surplus[0]].where
        raise UserError(f"{where} holds tensor '{printable(surplus[0])}', which {label} omits")
    return tensors


def _config(folder: Path, what: str) -> dict[str, Any]:
    config = _json(
        folder / CONFIG,
        CONFIGURATION,
        f"it says what {what} is; copy it from where the model was trained, or save the model "
        "again with save_pretrained(folder)",
    )
    # llama2.c has no file of this name; whoever writes one lists its sizes as model.py does.
    if "model_type" not in config and {"dim", "n_layers", "n_heads"} <= config.keys():
        config["model_type"] = "llama2.c"
    return config


def _json(path: Path, budget: Budget, reason: str = "") -> dict[str, Any]:
    label = printable(str(path))
    try:
        text = read_plain_file(path, budget.bytes)
    except Damaged as damage:
        raise UserError(printable(str(damage))) from None
    if text is None:
        raise UserError(f"{label} is missing: {reason or 'add it'}")
    try:
        settings = parse_json(text, budget)
    except Damaged as damage:
        raise UserError(f"{label} {damage}") from None
    if not isinstance(settings, dict):
        raise UserError(f"{label} is not a table of settings")
    return settings
