r"""Reading a trained Transformer, wherever it is, into the canonical form."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import numpy as np

from attlas._files.plain_file import printable
from attlas.core.errors import UserError
from attlas.transformers.architecture_table import architecture_of
from attlas.transformers.attlas_model import stored_form
from attlas.transformers.checkpoint_folder import Checkpoint, read_checkpoint
from attlas.transformers.layer_reader import LayerReader
from attlas.transformers.lazy_tensors import LazyTensors
from attlas.transformers.settings import LIBRARY, require_settings
from attlas.transformers.state_dict import is_module, module_config, tensors_of_state
from attlas.transformers.trained_transformer import TrainedTransformer

_DTYPES = ("float32", "float64")


def load_model(
    source: Any,
    *,
    dtype: str | None = None,
    name: str | None = None,
    config: Any = None,
) -> TrainedTransformer:
    r"""A trained Transformer in canonical form; its layers are read on access.

    Nothing is unpickled, and what a file says about itself is checked before it is believed.

    Args:
        source: path of a Hugging Face folder or of a LoRA adapter's, of a .safetensors file with
            config.json beside it, of llama.cpp's .gguf file, of llama2.c's folder or .bin file, or
            of a model that a run of attlas saved; or a torch.nn.Module, a state dict, or an
            `Encoder` or `Translator` of attlas.
        dtype: "float32" or "float64", which needs `jax.enable_x64(True)` around all that is done
            with the model; the source's when None, where halves become float32.
        name: name of the model in tables; its path or class when None.
        config: settings of config.json, for a state dict or a module without its own.

    Raises:
        UserError: if the source cannot be read, in one line.

    Examples:
        >>> from attlas.models.networks.encoder import make_encoder
        >>> encoder = make_encoder(jax.random.key(0), 9, 5, width=4, blocks=2, heads=2, hidden=8)
        >>> model = load_model(encoder)
        >>> model.attention([9, 1, 2, 3, 4, 5]).shape
        (2, 2, 6, 6)
    """
    checkpoint = open_checkpoint(source, dtype=dtype, name=name, config=config)
    architecture = architecture_of(checkpoint.config, checkpoint.name)
    require_settings(
        checkpoint.config, architecture.SETTINGS[checkpoint.config["model_type"]], LIBRARY
    )
    model = architecture.read(checkpoint.config, checkpoint.tensors, checkpoint.name)
    model = replace(
        model,
        fused_attention=lambda index, x: architecture.fused_attention(
            checkpoint.config, checkpoint.tensors, index, x
        ),
        notes=(*checkpoint.notes, *model.notes),
    )
    if checkpoint.tensors.dtype == np.float64:
        return _in_float64(model)
    return model


def open_checkpoint(
    source: Any,
    *,
    dtype: str | None = None,
    name: str | None = None,
    config: Any = None,
) -> Checkpoint:
    """Configuration and tensors of a source, before any architecture looks at them.

    Raises:
        UserError: if the source cannot be read, in one line.
    """
    if dtype is not None and dtype not in _DTYPES:
        raise UserError(f"dtype = {dtype!r} is not known: choose {' or '.join(_DTYPES)}")
    wanted = None if dtype is None else np.dtype(dtype)
    if isinstance(source, str | os.PathLike):
        checkpoint = read_checkpoint(source, wanted)
        if config is not None:
            checkpoint = replace(checkpoint, config=module_config(source, config))
    else:
        checkpoint = _of_memory(source, wanted, config)
    if checkpoint.tensors.dtype == np.float64:
        _require_float64(checkpoint.name)
    return replace(checkpoint, name=name or checkpoint.name)


def _of_memory(source: Any, dtype: np.dtype | None, config: Any) -> Checkpoint:
    called = type(source).__name__
    if is_module(source):
        settings = module_config(source, config)
        return _checkpoint(called, settings, source.state_dict(), dtype)
    if isinstance(source, Mapping):
        return _checkpoint("state dict", module_config(source, config), source, dtype)
    if isinstance(source, eqx.Module):
        settings, tensors = stored_form(source)
        return _checkpoint(called, settings, tensors, dtype)
    raise UserError(
        f"{printable(called)} is not a model: give the path of a folder or file, a "
        "torch.nn.Module, a state dict, or a model of attlas"
    )


def _checkpoint(
    name: str, config: dict[str, Any], state: Mapping[Any, Any], dtype: np.dtype | None
) -> Checkpoint:
    return Checkpoint(name, config, LazyTensors(tensors_of_state(state, name), dtype))


def _in_float64(model: TrainedTransformer) -> TrainedTransformer:
    """Check the precision at each later read, where JAX would narrow the weights silently."""

    def checked(read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(*stored: int) -> Any:
            _require_float64(model.name)
            return read(*stored)

        return reading

    layers = model.read_layer
    if isinstance(layers, LayerReader):
        layers = LayerReader(checked(layers.block), checked(layers.feedforward))
    return replace(
        model,
        read_layer=layers,
        read_embedding=checked(model.read_embedding),
        read_readout=checked(model.read_readout),
    )


def _require_float64(name: str) -> None:
    if jax.dtypes.canonicalize_dtype(float) != np.float64:
        raise UserError(
            f"{name} in float64 needs JAX's: work inside `with jax.enable_x64(True):`, or load it "
            'with dtype="float32"'
        )
