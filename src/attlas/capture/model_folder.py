"""A Hugging Face folder, opened by transformers, whole and with settings that it understands."""

import importlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attlas._files.budget import MOST_LAYERS
from attlas._files.plain_file import printable
from attlas.capture.captured_model import CapturedModel, captured_module
from attlas.capture.known_settings import require_known_settings
from attlas.core.errors import UserError, install_command
from attlas.transformers.architecture_table import architecture_table
from attlas.transformers.configuration import Configuration
from attlas.transformers.pooling import folder_pooling

_WIDE = 2**31
"""Bytes of a folder's weights up to which a model runs in float64."""


def _require_layers_in_budget(config: Mapping[str, Any]) -> None:
    """Refuse more layers than attlas itself would read; the library builds them one by one."""
    for key, value in config.items():
        if isinstance(value, int) and value > MOST_LAYERS and key.endswith(("layer", "layers")):
            Configuration(config).layers(key)
        if isinstance(value, dict):
            _require_layers_in_budget(value)


def open_folder(
    folder: Path,
    name: str | None = None,
    mask: int | None = None,
    *,
    ignore_settings: bool = False,
) -> CapturedModel:
    """A Hugging Face folder, opened by the installed transformers.

    No code of the folder runs, and nothing is unpickled: the architecture has to be one of the
    library's own, and the weights .safetensors.

    Args:
        folder: path with config.json and the weights of the model.
        name: title of the model in tables; the folder's when None.
        mask: token that hides another.
        ignore_settings: whether keys of config.json that the library does not know are ignored.

    Raises:
        UserError: if a library is missing, the architecture is none of the library's, its
            configuration has unknown keys, the library cannot read the folder, or the folder lacks
            tensors of the model.
    """
    library = _transformers()
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = config.get("model_type")
    if kind not in library.CONFIG_MAPPING:
        raise UserError(
            f"{folder.name}: transformers {library.__version__} has no model_type "
            f"'{printable(str(kind))[:80]}': install a version that has it; code beside the "
            "weights is never run"
        )
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    if not size:
        raise UserError(
            f"{folder.name} has no .safetensors file: save the model with "
            "save_pretrained(folder), which writes one"
        )
    _require_layers_in_budget(config)
    with _refusal(folder.name, kind in architecture_table()), _quiet(library):
        if not ignore_settings:
            settings = library.CONFIG_MAPPING[kind]
            read = settings.from_pretrained(str(folder), local_files_only=True)
            require_known_settings(library, config, read)
        module, loading = _loaded(library, folder, config, wide=size <= _WIDE)
    _require_all_tensors(folder.name, loading)
    model = captured_module(module, name or folder.name, mask)
    return replace(model, pooling=folder_pooling(folder))


def _loaded(
    library: Any, folder: Path, config: Mapping[str, Any], *, wide: bool
) -> tuple[nn.Module, Mapping[str, Any]]:
    """The model of a folder, by the class that its configuration names, and what was lacking."""
    named = [getattr(library, str(name), None) for name in config.get("architectures") or []]
    classes = [value for value in named if isinstance(value, type) and issubclass(value, nn.Module)]
    loader: Any = classes[0] if classes else library.AutoModel
    dtype = torch.float64 if wide else torch.float32
    settings = {"local_files_only": True, "use_safetensors": True, "dtype": dtype}
    settings |= {"attn_implementation": "eager"}
    if not classes:
        settings["trust_remote_code"] = False
    if any("experts" in key for key in config):
        settings["experts_implementation"] = "eager"
    return loader.from_pretrained(str(folder), output_loading_info=True, **settings)


@contextmanager
def _refusal(name: str, has_reader: bool) -> Iterator[None]:
    """One line where the library cannot read a folder; `has_reader` of a type that attlas reads."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # of any class: it is the library's own code that fails
        line = printable(str(error).strip().splitlines()[0]) if str(error).strip() else ""
        if "ignore_mismatched_sizes" in line:
            remedy = (
                "where heads are pruned (bert, roberta, electra, distilbert, gpt2) or the "
                "vocabulary is padded, attlas reads it without --capture"
                if has_reader
                else "give config.json the sizes of the tensors, or save the model again with "
                "save_pretrained(folder)"
            )
            line = f"tensors have other shapes than config.json implies; {remedy}"
        raise UserError(f"{name} is not read by transformers ({line[:300]})") from error


def _require_all_tensors(name: str, loading: Mapping[str, Any]) -> None:
    """Check that no tensor was drawn at random; a pooler, of which nothing here reads, may be.

    Raises:
        UserError: names a tensor that the files lack, and one that they have in its place.
    """
    missing = sorted(key for key in loading["missing_keys"] if "pooler." not in f".{key}")
    if not missing:
        return
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    others = sorted(loading["unexpected_keys"])
    beside = f"; of '{printable(others[0])[:80]}' it makes no use" if others else ""
    raise UserError(
        f"{name} lacks the tensor '{printable(missing[0])[:80]}'{more}, which transformers would "
        f"draw at random{beside}: save the whole model, without wrappers, by "
        "save_pretrained(folder)"
    )


@contextmanager
def _quiet(library: Any) -> Iterator[None]:
    """Without the bars and remarks of the library, which stand between lines of ours."""
    log = library.utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise UserError(
            "capture runs models by transformers, which is not installed: "
            + install_command("torch", "transformers")
        ) from error
