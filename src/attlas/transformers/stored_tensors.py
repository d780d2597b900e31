"""The tensors of a file, checked against the shapes that the configuration implies."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attlas.core.errors import UserError
from attlas.transformers._readers.head_blocks import dense
from attlas.transformers.canonical import Dense
from attlas.transformers.lazy_tensors import LazyTensors

Shapes = Mapping[str, tuple[int, ...]]

_OTHER_TASKS = (
    r"^(score|pre_classifier|classifier|qa_outputs|v_head|sequence_summary|multiple_choice_head)\."
)


class StoredTensors(Mapping[str, np.ndarray]):
    """Tensors by name, without the prefix that a file may add; read on access.

    Every tensor of the file has a place in `shapes` or in `optional`, matches `buffers`, which hold
    nothing that was learned, belongs to another task's head, or is refused: a tensor that nobody
    reads would change the model.

    Args:
        shapes: shape of each tensor that must be there, by name.
        optional: shape of each tensor that may be there, by name.
        prefixes: prefixes of the names in the file; the first under which the first of `shapes`
            stands counts.
        buffers: pattern of the names that are passed over.

    Attributes:
        for_language: whether no head of another task is there, such as a classifier's.

    Raises:
        UserError: if a tensor is missing, by a file's header has another shape, or has no place.

    Examples:
        >>> stored = StoredTensors(
        ...     {"model.norm": np.ones(2)}, {"norm": (2,)}, prefixes=("", "model.")
        ... )
        >>> stored["norm"].tolist(), stored.parameters
        ([1.0, 1.0], 2)
        >>> StoredTensors({"model.norm": np.ones(2)}, {"norm": (3,)}, prefixes=("model.",))["norm"]
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: tensor 'model.norm' has shape (2,), the configuration \
implies (3,): file and configuration are of different models
    """

    def __init__(
        self,
        tensors: Mapping[str, Any],
        shapes: Shapes,
        *,
        optional: Shapes | None = None,
        prefixes: Sequence[str] = ("",),
        buffers: str | None = None,
    ) -> None:
        self._marker = next(iter(shapes))
        names = set(tensors)
        prefix = next((p for p in prefixes if p + self._marker in names), prefixes[0])
        self._tensors = tensors
        self._shapes = dict(shapes)
        optional = optional or {}
        # A task's head stands beside the model, not below its prefix.
        self._full = {name: prefix + name for name in shapes}
        for name in optional:
            full = next((f for f in (prefix + name, name) if f in names), None)
            if full is not None:
                self._full[name] = full
                self._shapes[name] = optional[name]
        missing = [full for full in self._full.values() if full not in names]
        if missing:
            raise UserError(
                f"tensor '{missing[0]}' is missing, and {len(missing) - 1} more of "
                f"{len(self._full)}: file and configuration are of different models, or the file "
                "is incomplete"
            )
        if isinstance(tensors, LazyTensors):  # headers say at once what would not fit later
            shapes_of_file = tensors.shapes
            for name, full in self._full.items():
                self._require_shape(name, shapes_of_file[full])
        left = names - set(self._full.values())
        others = {name for name in left if re.match(_OTHER_TASKS, name)}
        self.for_language = not others
        for name in sorted(left - others):
            if buffers is None or not re.search(buffers, name):
                raise UserError(
                    f"tensor '{name}' has no place in a model of this configuration: read the "
                    "model as it was saved, with its own config.json"
                )

    def __getitem__(self, name: str) -> np.ndarray:
        values = np.asarray(self._tensors[self._full[name]])
        self._require_shape(name, values.shape)
        return values

    def _require_shape(self, name: str, shape: tuple[int, ...]) -> None:
        wanted = self._shapes[name]
        if shape == wanted:
            return
        remedy = "file and configuration are of different models"
        if name == self._marker and len(shape) == 2 and shape[1:] == wanted[1:]:
            remedy = f"write vocab_size = {shape[0]} into config.json if all of them are tokens"
        raise UserError(
            f"tensor '{self._full[name]}' has shape {shape}, the configuration implies {wanted}: "
            f"{remedy}"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._full)

    def __len__(self) -> int:
        return len(self._full)

    @property
    def parameters(self) -> int:
        """How many numbers the tensors hold, by their shapes."""
        return sum(math.prod(self._shapes[name]) for name in self._full)


def read_dense(stored: StoredTensors, path: str, *, outputs_first: bool = True) -> Dense:
    """A dense map of the file, without bias where the file has none.

    `outputs_first` says whether rows of the matrix are outputs, as in torch's Linear.
    """
    W = stored[f"{path}.weight"]
    return dense(W, stored.get(f"{path}.bias"), outputs_first=outputs_first)
