"""A folder of the model without the heads that an audit removed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attlas.core.errors import UserError
from attlas.transformers.pruned_folder import write_pruned_folder
from attlas.transformers.trained_transformer import TrainedTransformer

if TYPE_CHECKING:
    from attlas.capture.captured_model import CapturedModel


def export_without(
    model: "TrainedTransformer | CapturedModel",
    source: Path,
    target: Path,
    heads: Sequence[tuple[int, int]],
) -> list[str]:
    """Write the folder of a model with the blocks of some heads at zero.

    Args:
        model: the model as the audit read it, from the source.
        source: a Hugging Face folder.
        target: a new folder.
        heads: layer and number of each head.

    Returns:
        Names of the tensors that changed.

    Raises:
        UserError: if there are no heads, the source is not a Hugging Face folder, or the output
            projections are not found among its tensors.
    """
    if not heads:
        raise UserError("no heads can be removed within the budget: nothing is exported")
    require_exportable(source)
    members: dict[int, list[int]] = {}
    for layer, head in heads:
        members.setdefault(layer, []).append(head)
    if isinstance(model, TrainedTransformer):
        matrices = {layer: model.block(layer).attention.W_O for layer in members}
    else:
        from attlas.audit.captured.captured_audit import recognised_heads

        layers = recognised_heads(model)
        matrices = {}
        for layer in members:
            found = layers[layer]
            if found is None or found.W_O is None:
                raise UserError(
                    f"layer {layer} of {model.name} has no output projection that reads its heads: "
                    "they cannot be removed from its files"
                )
            matrices[layer] = found.W_O
    blocks = {layer: (np.asarray(matrices[layer]), members[layer]) for layer in members}
    return write_pruned_folder(source, target, blocks)


def require_exportable(source: Path) -> None:
    """Check that a folder's files can be written without some heads, before hours of an audit.

    Raises:
        UserError: if it is not a Hugging Face folder, holds an adapter or quantised weights, or has
            no .safetensors files.
    """
    if (source / "adapter_config.json").is_file():
        raise UserError(
            f"{source} holds an adapter, which has no heads of its own: merge it with its base in "
            "PEFT (merge_and_unload), and save it with save_pretrained(folder)"
        )
    config = source / "config.json"
    text = config.read_text(encoding="utf-8") if config.is_file() else ""
    if not text or "tensors_sha256" in text:
        raise UserError(f"{source} is not a Hugging Face folder: only these are exported")
    if '"model_type"' not in text:
        raise UserError(
            f"{config} names no model_type, as llama2.c's does not: transformers would not load "
            "the folder without heads, so nothing is exported; convert it to a Hugging Face folder"
        )
    if '"quantization_config"' in text:
        raise UserError(
            f"{source} has quantised weights, of which no heads are removed: dequantise it in "
            "transformers, and save it with save_pretrained(folder)"
        )
    if not any(source.glob("*.safetensors")):
        raise UserError(
            f"{source} has no .safetensors files, of which alone heads are removed: load it with "
            "transformers, and save it with save_pretrained(folder)"
        )
