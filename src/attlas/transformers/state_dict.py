"""Models that are in memory: PyTorch modules and mappings of tensors; torch is not imported."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attlas.core.arrays import read_array, read_mask
from attlas.core.errors import UserError
from attlas.transformers.lazy_tensors import Unread
from attlas.transformers.safetensors_file import DTYPES
from attlas.transformers.stored_names import plain_names


def is_module(value: Any) -> bool:
    """Whether it behaves like a torch.nn.Module."""
    return callable(getattr(value, "state_dict", None)) and callable(
        getattr(value, "named_parameters", None)
    )


def module_config(module: Any, config: Any = None) -> dict[str, Any]:
    """The configuration of a module, as config.json would hold it.

    Args:
        module: a module with `config`, as Hugging Face's models have; any object where `config` is
            given.
        config: a mapping, or an object with `to_dict`; the module's own when None.

    Raises:
        UserError: if there is none.
    """
    settings: Any = getattr(module, "config", None) if config is None else config
    if callable(getattr(settings, "to_dict", None)):
        settings = settings.to_dict()
    if not isinstance(settings, Mapping):
        raise UserError(
            f"a model of type {type(module).__name__} has no configuration: give config=, the "
            "settings of its config.json with 'model_type'"
        )
    return dict(settings)


def tensors_of_state(state: Mapping[Any, Any], name: str) -> dict[str, Unread]:
    """The tensors of a state dict; each is converted on access.

    Returns:
        Tensors by name, see `plain_names`.

    Raises:
        UserError: if a name is not a text, or a value no array.

    Examples:
        >>> tensors_of_state({"module.W": np.ones((2, 3))}, "model")["W"].shape
        (2, 3)
    """
    if not state:
        raise UserError(f"{name} holds no tensors: give the whole state dict")
    tensors = {}
    for key, value in state.items():
        if not isinstance(key, str):
            raise UserError(f"{name} has a tensor named {key!r:.80}: name tensors by strings")
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            kind = type(value).__name__
            raise UserError(f"{name}['{key}'] is of type {kind}: give arrays of NumPy, JAX, torch")
        shape = tuple(int(size) for size in value.shape)
        tensors[key] = Unread(shape, _dtype(value, f"{name}['{key}']"), name, _reader(value, key))
    return plain_names(tensors, name)


def _dtype(value: Any, name: str) -> np.dtype:
    said = str(value.dtype).removeprefix("torch.")
    for dtype in DTYPES.values():
        # Eight bits are a weight together with the scales of a folder alone.
        if dtype.name == said and not said.startswith("float8"):
            return dtype
    raise UserError(
        f"{name} has dtype {said}: give a model in float16, bfloat16, float32 or float64"
    )


def _reader(value: Any, key: str) -> Callable[[np.dtype], np.ndarray]:
    def read(dtype: np.dtype) -> np.ndarray:
        if dtype.kind == "b":
            return np.asarray(read_mask(value, key, tuple(value.shape)))
        return read_array(value, key).astype(dtype, copy=False)

    return read
