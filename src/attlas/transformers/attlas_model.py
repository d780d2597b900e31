"""Models of attlas as configuration and tensors, so that they are saved and read like others."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np

from attlas._files.plain_file import printable
from attlas.core.arrays import read_array
from attlas.core.errors import UserError, refuse_unreadable
from attlas.models.networks.encoder import Encoder
from attlas.models.networks.translator import MultiHeadAttention, Translator, TranslatorBlock
from attlas.transformers.sealed_folder import CONFIG, write_sealed_folder

StoredForm = tuple[dict[str, Any], dict[str, np.ndarray]]


@refuse_unreadable
def stored_form(
    model: eqx.Module,
    *,
    continuous: bool = False,
    sequences: Sequence[np.ndarray] = (),
) -> StoredForm:
    """Configuration and tensors of a model.

    Args:
        continuous: whether an encoder reads vectors instead of tokens, which its arrays do not say.
        sequences: token numbers of some held-out sequences, for an audit of the model.

    Raises:
        UserError: if it is not a model that has the form of a Transformer with residual sums.

    Examples:
        >>> import jax
        >>> from attlas.models.networks.encoder import make_encoder
        >>> model = make_encoder(jax.random.key(0), 9, 5, width=4, blocks=2, heads=2, hidden=8)
        >>> config, tensors = stored_form(model)
        >>> config["model_type"], tensors["blocks.1.query"].shape
        ('attlas_encoder', (4, 4))
    """
    if isinstance(model, Encoder):
        config, tensors = _of_encoder(model, continuous)
    elif isinstance(model, Translator):
        config, tensors = _of_translator(model)
    else:
        raise UserError(
            f"a {type(model).__name__} cannot be audited: give an Encoder or Translator of "
            "attlas.models.networks; other networks have no residual sums of attention and "
            "feedforward"
        )
    if len(sequences):
        config["sequences"] = [np.asarray(tokens).tolist() for tokens in sequences]
    return config, tensors


def save_model(
    folder: str | os.PathLike[str],
    form: StoredForm,
    notes: Mapping[str, Any] | None = None,
    on_damage: Callable[[str], None] = warnings.warn,
) -> Path:
    """Write a model as config.json and the .safetensors file that it names, in one step.

    Args:
        folder: made if missing.
        notes: plain JSON that config.json holds below `notes`, such as where the model comes from.
        on_damage: receives one line if the model that is replaced was damaged.

    Raises:
        UserError: if it cannot be written.
    """
    place = Path(folder)
    config, tensors = form
    settings = config | ({"notes": dict(notes)} if notes else {})
    try:
        write_sealed_folder(place, settings, tensors, on_damage)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"cannot write {printable(str(place / CONFIG))} ({reason}): free space or rights "
            "there, or name another folder"
        ) from error
    return place


def _of_encoder(model: Encoder, continuous: bool) -> StoredForm:
    first = model.blocks[0]
    tensors = {name: getattr(model, name) for name in ("embedding", "start", "positions")}
    for index, block in enumerate(model.blocks):
        for name in ("query", "key", "value", "output", "up", "down", "scales"):
            tensors[f"blocks.{index}.{name}"] = getattr(block, name)
    tensors["readout"] = model.readout
    config = {
        "model_type": "attlas_encoder",
        "vocabulary": model.embedding.shape[0],
        "width": model.embedding.shape[1],
        "length": model.positions.shape[0] - 1,
        "blocks": len(model.blocks),
        "heads": first.heads,
        "hidden": first.up.shape[1],
        "continuous": continuous,
    }
    return config, _arrays(tensors)


def _of_translator(model: Translator) -> StoredForm:
    tensors: dict[str, Any] = {
        "source_words": model.source_words,
        "target_words": model.target_words,
    }
    for side in ("encoder", "decoder"):
        blocks: tuple[TranslatorBlock, ...] = getattr(model, side)
        for index, block in enumerate(blocks):
            place = f"{side}.{index}"
            tensors |= _of_attention(block.own, f"{place}.own")
            if block.source is not None:
                tensors |= _of_attention(block.source, f"{place}.source")
            for name in ("up", "down", "scales"):
                tensors[f"{place}.{name}"] = getattr(block, name)
    tensors["readout"] = model.readout
    config = {
        "model_type": "attlas_translator",
        "source_vocabulary": model.source_words.shape[0],
        "target_vocabulary": model.target_words.shape[0],
        "width": model.source_words.shape[1],
        "blocks": len(model.encoder),
        "heads": model.encoder[0].own.heads,
        "hidden": model.encoder[0].up.shape[1],
    }
    return config, _arrays(tensors)


def _of_attention(attention: MultiHeadAttention, place: str) -> dict[str, Any]:
    names = ("query", "key", "value", "output")
    return {f"{place}.{name}": getattr(attention, name) for name in names}


def _arrays(tensors: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: read_array(value, name) for name, value in tensors.items()}
