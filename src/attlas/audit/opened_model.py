"""Which of the two ways reads a model: the forward passes of attlas, or a run in PyTorch."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attlas.core.errors import UserError, install_command
from attlas.transformers.load_model import load_model
from attlas.transformers.state_dict import is_module
from attlas.transformers.trained_transformer import TrainedTransformer

if TYPE_CHECKING:
    from attlas.capture.captured_model import CapturedModel

INSTALL = install_command("torch", "transformers")


def opened(
    source: Any,
    capture: bool | None = None,
    *,
    name: str | None = None,
    mask: int | None = None,
    ignore_settings: bool = False,
) -> "TrainedTransformer | CapturedModel":
    """A model, read or ready to run.

    Args:
        source: an argument of `load_model`, or the result of this function.
        capture: True to run it in PyTorch, False to read it by attlas; when None, PyTorch runs
            what `load_model` refuses, if it is installed.
        name: name of the model in tables.
        mask: token that hides another.
        ignore_settings: whether PyTorch may run a folder whose config.json has keys that
            transformers does not know, as if they were not there.

    Raises:
        UserError: if neither way reads it, with both reasons.
    """
    if isinstance(source, TrainedTransformer) or type(source).__name__ == "CapturedModel":
        return source
    runs = is_module(source) or (
        isinstance(source, str | os.PathLike) and (Path(source) / "config.json").is_file()
    )
    if capture and not runs:
        raise UserError("capture runs a Hugging Face folder or a torch.nn.Module: give one")
    if capture:
        return _captured(source, name, mask, ignore_settings)
    try:
        return load_model(source, name=name)
    except UserError as error:
        if capture is False or not runs:
            raise
        if find_spec("torch") is None:
            raise UserError(f"{error}; or run it in PyTorch: {INSTALL}") from error
        refusal = error
    try:
        return _captured(source, name, mask, ignore_settings)
    except UserError as error:
        raise UserError(f"{refusal}; and capture by PyTorch: {error}") from error


def _captured(
    source: Any, name: str | None, mask: int | None, ignore_settings: bool
) -> "CapturedModel":
    if find_spec("torch") is None:
        raise UserError(f"capture runs models in PyTorch, which is not installed: {INSTALL}")
    from attlas.capture.captured_model import captured_module
    from attlas.capture.model_folder import open_folder

    if is_module(source):
        return captured_module(source, name, mask)
    return open_folder(Path(source), name, mask, ignore_settings=ignore_settings)
