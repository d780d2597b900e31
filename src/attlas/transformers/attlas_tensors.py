"""Tensors of a model that attlas saved, checked against its configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attlas.core.errors import UserError
from attlas.transformers.lazy_tensors import LazyTensors

NOTES = ("cell", "experiment", "key", "name", "notes", "sequences")
"""Keys of a saved model's configuration that say where it comes from, or what it was tested on; the
first four stood beside the sizes before `notes` did."""


@dataclass(frozen=True)
class AttlasTensors:
    """Sizes and tensors of a file; what does not fit raises an error of one line.

    Attributes:
        name: what the user called the model.
        config: parsed config.json.

    Examples:
        >>> AttlasTensors("model", {"heads": 0}, {}).size("heads")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: model: heads = 0 in the configuration is not a whole number \
from 1 to 2147483647
    """

    name: str
    config: Mapping[str, Any]
    tensors: Mapping[str, np.ndarray]

    def size(self, key: str, most: int = 2**31 - 1) -> int:
        """A whole number of the configuration, from 1 to `most`.

        Raises:
            UserError: if the value is not one.
        """
        value = self.config.get(key)
        if type(value) is not int or not 0 < value <= most:
            raise UserError(
                f"{self.name}: {key} = {value!r:.80} in the configuration is not a whole "
                f"number from 1 to {most}"
            )
        return value

    def head_size(self) -> int:
        """Width of a head.

        Raises:
            UserError: if the heads do not divide the width.
        """
        width, heads = self.size("width"), self.size("heads")
        if width % heads:
            raise UserError(
                f"{self.name}: heads = {heads} in the configuration do not divide width = {width}"
            )
        return width // heads

    def require_names(self, names: set[str]) -> None:
        """Check that a file has exactly the named tensors.

        Raises:
            UserError: naming the first.
        """
        for kind, wrong in (
            ("lacks", names - set(self.tensors)),
            ("has a superfluous", set(self.tensors) - names),
        ):
            if wrong:
                raise UserError(
                    f"{self.name} {kind} tensor '{min(wrong)}' for its configuration: file and "
                    "configuration are of different models"
                )

    def require_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Check the shapes before anything is read.

        Raises:
            UserError: naming the first.
        """
        headers = self.tensors.shapes if isinstance(self.tensors, LazyTensors) else None
        for name, shape in shapes.items():
            stored = np.shape(self.tensors[name]) if headers is None else headers[name]
            self._require_shape(name, stored, shape)

    def _require_shape(self, tensor: str, stored: tuple[int, ...], shape: tuple[int, ...]) -> None:
        if stored != shape:
            raise UserError(
                f"{self.name}: tensor '{tensor}' has shape {stored}, the configuration "
                f"implies {shape}"
            )

    def read(self, tensor: str, *shape: int) -> np.ndarray:
        """One tensor.

        Raises:
            UserError: if it has another shape.
        """
        values = self.tensors[tensor]
        self._require_shape(tensor, values.shape, shape)
        return values
