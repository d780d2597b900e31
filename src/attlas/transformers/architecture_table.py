"""The architectures that are read: every module of `attlas.transformers.architectures`."""

import difflib
import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from attlas._files.plain_file import printable
from attlas.core.errors import UserError
from attlas.transformers import architectures
from attlas.transformers.settings import LIBRARY, Settings
from attlas.transformers.trained_transformer import TrainedTransformer


@runtime_checkable
class Architecture(Protocol):
    """What a module of `attlas.transformers.architectures` offers.

    Attributes:
        SETTINGS: what it knows of config.json, by each value of `model_type` that it reads.
    """

    SETTINGS: Mapping[str, Settings]

    def read(
        self, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], name: str
    ) -> TrainedTransformer:
        """The model in canonical form."""
        ...

    def fused_attention(
        self, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], index: int, x: Any
    ) -> np.ndarray:
        """A layer's attention from the file's own matrices, in NumPy float64."""
        ...


@cache
def architecture_table() -> Mapping[str, Architecture]:
    """All architectures by the values of `model_type` that they read.

    Raises:
        TypeError: if a module lacks one of the three names.
        ValueError: if two modules read one `model_type`.

    Examples:
        >>> "attlas_encoder" in architecture_table()
        True
    """
    table: dict[str, Architecture] = {}
    for info in sorted(pkgutil.iter_modules(architectures.__path__), key=lambda i: i.name):
        module = importlib.import_module(f"{architectures.__name__}.{info.name}")
        if not isinstance(module, Architecture):
            raise TypeError(f"{module.__name__} lacks SETTINGS, read or fused_attention")
        for kind in module.SETTINGS:
            if kind in table:
                raise ValueError(f"{info.name} reads '{kind}', and so does another")
            table[kind] = cast(Architecture, module)
    return table


def architecture_of(config: Mapping[str, Any], name: str) -> Architecture:
    """The architecture that a configuration names.

    Raises:
        UserError: if it names none that is read, with the nearest one and the remedy. The
            nearest is the one that knows most of the configuration's keys; of several, the one
            that is spelt most alike.

    Examples:
        >>> architecture_of({"model_type": "deberta", "type_vocab_size": 2}, "model")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: model: model_type 'deberta' is not read; the nearest known \
one is 'bert': correct model_type if it is that, or give the model's folder or torch.nn.Module, \
which PyTorch can run
    """
    table = architecture_table()
    kind = config.get("model_type")
    kinds = ", ".join(sorted(table))
    if kind is None:
        raise UserError(
            f"{name}: the configuration has no 'model_type': add one of {kinds} to config.json"
        )
    if not isinstance(kind, str):
        raise UserError(f"{name}: model_type = {kind!r:.80} is not a string: choose one of {kinds}")
    if kind in table:
        return table[kind]
    nearest = max(table, key=lambda known: _nearness(config, kind, known))
    raise UserError(
        f"{name}: model_type '{printable(kind)[:80]}' is not read; the nearest known one is "
        f"'{nearest}': correct model_type if it is that, or give the model's folder or "
        "torch.nn.Module, which PyTorch can run"
    )


def _nearness(config: Mapping[str, Any], kind: str, known: str) -> tuple[int, float]:
    """How many keys of a configuration an architecture knows, and how alike the names are."""
    settings = architecture_table()[known].SETTINGS[known]
    keys = [key for key in config if key in settings or key in LIBRARY]
    return len(keys), difflib.SequenceMatcher(None, printable(kind)[:80], known).ratio()
