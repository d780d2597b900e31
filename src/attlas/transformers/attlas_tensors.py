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
    """Sizes and tensors of a file; whatever does not fit is refused in one line.

    Attributes:
        name: what the user called the model.
        config: its settings.
        tensors: of the file.

    Examples:
        >>> AttlasTensors("model", {"heads": 0}, {}).size("heads")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: model: heads = 0 in the configuration is no whole number \
above 0
    """

    name: str
    config: Mapping[str, Any]
    tensors: Mapping[str, np.ndarray]

    def size(self, key: str) -> int:
        """A whole number of the configuration.

        Args:
            key: of the configuration.

        Returns:
            The number, at least 1.

        Raises:
            UserError: if it is none.
        """
        value = self.config.get(key)
        if type(value) is not int or not 0 < value < 2**31:
            raise UserError(
                f"{self.name}: {key} = {value!r:.80} in the configuration is no whole number "
                "above 0"
            )
        return value

    def head_size(self) -> int:
        """Width of a head.

        Returns:
            width / heads.

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
        """Refuse a file that lacks a tensor, or has one that nobody reads.

        Args:
            names: of all tensors of such a model.

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
        """Refuse now what would not fit when it is read.

        Args:
            shapes: of tensors, by name.

        Raises:
            UserError: naming the first.
        """
        known = self.tensors.shapes if isinstance(self.tensors, LazyTensors) else None
        for name, shape in shapes.items():
            found = np.shape(self.tensors[name]) if known is None else known[name]
            self._require_shape(name, found, shape)

    def _require_shape(self, tensor: str, found: tuple[int, ...], shape: tuple[int, ...]) -> None:
        if found != shape:
            raise UserError(
                f"{self.name}: tensor '{tensor}' has shape {found}, the configuration "
                f"implies {shape}"
            )

    def read(self, tensor: str, *shape: int) -> np.ndarray:
        """One tensor.

        Args:
            tensor: its name.
            *shape: what the configuration implies.

        Returns:
            The numbers.

        Raises:
            UserError: if it has another shape.
        """
        found = self.tensors[tensor]
        self._require_shape(tensor, found.shape, shape)
        return found
