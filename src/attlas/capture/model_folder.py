"""A Hugging Face folder, opened by transformers, whole and with settings that it understands."""

import importlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from attlas._files.budget import MOST_LAYERS
from attlas._files.plain_file import printable
from attlas.capture.captured_model import CapturedModel, captured_module
from attlas.core.errors import UserError
from attlas.transformers.configuration import Configuration
from attlas.transformers.pooling import folder_pooling
from attlas.transformers.settings import UnknownSetting

_WIDE = 2**31
"""Bytes of a folder's weights up to which a model runs in float64."""


def _require_layers_in_budget(config: Mapping[str, Any]) -> None:
    """Refuse more layers than attlas itself would read; the library builds them one by one."""
    for key, value in config.items():
        if isinstance(value, int) and value > MOST_LAYERS and key.endswith(("layer", "layers")):
            Configuration(config).layers(key)
        if isinstance(value, dict):
            _require_layers_in_budget(value)


def open_folder(folder: Path, name: str | None = None, mask: int | None = None) -> CapturedModel:
    """A Hugging Face folder, opened by the installed transformers.

    No code of the folder runs, and nothing is unpickled: the architecture has to be one of the
    library's own, and the weights .safetensors.

    Raises:
        UserError: if a library is missing, the architecture is none of the library's, the library
            cannot read the folder, or the folder lacks tensors of the model.
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
    dtype = torch.float64 if size <= _WIDE else torch.float32
    names = [each for each in config.get("architectures") or [] if hasattr(library, str(each))]
    loader = getattr(library, names[0]) if names else library.AutoModel
    settings = {"local_files_only": True, "use_safetensors": True, "dtype": dtype}
    settings |= {"attn_implementation": "eager"}
    if not names:
        settings["trust_remote_code"] = False
    if any("experts" in key for key in config):
        settings["experts_implementation"] = "eager"
    try:
        with _quiet(library):
            module, loading = loader.from_pretrained(
                str(folder), output_loading_info=True, **settings
            )
    except (OSError, ValueError, ImportError, RuntimeError, KeyError, TypeError) as error:
        line = printable(str(error).strip().splitlines()[0]) if str(error).strip() else ""
        if "ignore_mismatched_sizes" in line:
            line = (
                "tensors have other shapes than config.json implies; where heads are pruned (bert, "
                "roberta, electra, distilbert, gpt2) or the vocabulary is padded, attlas reads it "
                "without --capture"
            )
        raise UserError(f"{folder.name} is not read by transformers ({line[:300]})") from error
    _require_all_tensors(folder.name, loading)
    model = captured_module(module, name or folder.name, mask)
    return replace(model, pooling=folder_pooling(folder))


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


def require_known_setting(folder: Path, refusal: UnknownSetting) -> None:
    """Check that transformers knows a setting that attlas does not: else both would ignore it.

    Raises:
        UserError: if it does not.
    """
    library = _transformers()
    kind = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
    if kind not in library.CONFIG_MAPPING:
        return  # transformers does not open the folder
    if not _has_key(library.CONFIG_MAPPING[kind]().to_dict(), refusal.key):
        raise UserError(
            f"{refusal}; transformers {library.__version__} does not know it either: --capture "
            "runs the model as if the key were not there"
        ) from refusal


def _has_key(config: Any, key: str) -> bool:
    if not isinstance(config, Mapping):
        return False
    return key in config or any(_has_key(value, key) for value in config.values())


def _transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise UserError(
            "capture runs models by transformers, which is not installed: "
            "pip install 'attlas[torch]' transformers"
        ) from error
