"""Files that hold a model in fewer or more rows than its configuration counts.

Where heads were pruned, matrices are smaller: the heads come back with zeros, which adds nothing to
what a layer returns. Where a vocabulary was padded for speed, its matrices have rows of no token:
they are left out.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from attlas.core.errors import UserError
from attlas.transformers.lazy_tensors import LazyTensors
from attlas.transformers.tensor_names import Names

PADDING_STEP = 8
"""Sizes of padded vocabularies are multiples of it."""
MOST_PADDING = 1024
"""Rows of no token stay below it: 128 on each of eight devices."""

Tensors = Mapping[str, np.ndarray]
Change = Callable[[np.ndarray], np.ndarray]


@runtime_checkable
class Table(Protocol):
    """What is asked of a `StoredTransformer`, which says what each of these is."""

    @property
    def names(self) -> Names: ...  # noqa: D102
    @property
    def prefixes(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def layers(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def heads(self) -> int: ...  # noqa: D102
    @property
    def pruned(self) -> Mapping[int, tuple[int, ...]]: ...  # noqa: D102
    @property
    def vocabulary(self) -> int: ...  # noqa: D102
    @property
    def inputs_first(self) -> bool: ...  # noqa: D102
    def layer_shapes(self, path: str) -> dict[str, tuple[int, ...]]: ...  # noqa: D102


def in_full_form(table: Table, tensors: Tensors) -> Tensors:
    """The tensors of a file in the shapes that a table without pruned heads and padding has.

    Raises:
        UserError: if heads are in the file that its configuration calls pruned.

    Examples:
        >>> from attlas.transformers.stored_transformer import StoredTransformer
        >>> from attlas.transformers.tensor_names import Names
        >>> table = StoredTransformer(
        ...     architecture="", names=Names(tokens="wte"), layers=(), width=1, heads=1, hidden=1,
        ...     vocabulary=3, eps=1.0, activation="gelu", norm_placement="pre-norm", causal=False,
        ... )
        >>> in_full_form(table, {"wte.weight": np.ones((8, 1))})["wte.weight"].shape
        (3, 1)
    """
    for name in dict(_padding_rows(table, tensors)):
        shape = (table.vocabulary, *_shape(tensors, name)[1:])
        tensors = _with_change(tensors, name, shape, lambda values: values[: table.vocabulary])
    for layer, heads in table.pruned.items():
        tensors = _with_heads(table, tensors, table.layers[layer], heads)
    return tensors


def added_zeros(table: Table, tensors: Tensors) -> int:
    """How many numbers `in_full_form` adds to those of a file, where heads were pruned."""
    if not table.pruned:
        return 0
    full = in_full_form(table, tensors)
    sizes = ((math.prod(_shape(full, name)), math.prod(_shape(tensors, name))) for name in tensors)
    return sum(max(after - before, 0) for after, before in sizes)


def form_notes(table: Table, tensors: Tensors) -> tuple[str, ...]:
    """Sentences on what `in_full_form` changes."""
    notes = []
    padded = dict(_padding_rows(table, tensors))
    if padded:
        name, rows = next(iter(padded.items()))
        notes.append(
            f"'{name}' has {rows} rows, and the vocabulary {table.vocabulary} tokens: the "
            f"{rows - table.vocabulary} rows behind them are of no token, and left out."
        )
    heads = [(layer, head) for layer, gone in table.pruned.items() for head in gone]
    if heads:
        named = ", ".join(f"{layer}.{head}" for layer, head in heads[:12])
        more = f" and {len(heads) - 12} more" if len(heads) > 12 else ""
        notes.append(
            f"Heads that were pruned before (layer.head {named}{more}) are read as zeros, which "
            "add nothing."
        )
    return tuple(notes)


def _padding_rows(table: Table, tensors: Tensors) -> Iterator[tuple[str, int]]:
    """Tensors with rows of no token, and how many rows they have."""
    names = table.names
    roles = [f"{path}.weight" for path in (names.tokens, *names.lm_heads)] + [*names.lm_biases]
    for full in _full_names(table, tensors, roles):
        rows = _shape(tensors, full)[0]
        if rows % PADDING_STEP == 0 and 0 < rows - table.vocabulary < MOST_PADDING:
            yield full, rows


def _with_heads(table: Table, tensors: Tensors, layer: str, gone: Sequence[int]) -> Tensors:
    """The tensors with zeros where heads of a layer were taken out."""
    names, sizes = table.names, table.layer_shapes(layer)
    remaining = [head for head in range(table.heads) if head not in gone]
    for role, parts in (("query", 1), ("key", 1), ("value", 1), ("fused", 3), ("output", 1)):
        below: str = getattr(names, role)
        ends = ["weight", "bias"] if role != "output" else ["weight"]
        paths = [f"{layer}{below}.{end}" for end in ends] if below else []
        for full in _full_names(table, tensors, [path for path in paths if path in sizes]):
            wanted = next(sizes[path] for path in paths if full.endswith(path))
            # Blocks of heads are outputs of all maps but the last, whose inputs they are.
            is_first = len(wanted) == 1 or (role == "output") == table.inputs_first
            axis = 0 if is_first else 1
            blocks = [part * table.heads + head for part in range(parts) for head in remaining]
            stored = list(wanted)
            stored[axis] = wanted[axis] // (parts * table.heads) * len(blocks)
            if _shape(tensors, full) == wanted:
                raise UserError(
                    f"tensor '{full}' has all heads, some of which pruned_heads in config.json "
                    "says are gone: remove the key"
                )
            if _shape(tensors, full) == tuple(stored):
                change = _in_places(wanted, axis, parts * table.heads, blocks)
                tensors = _with_change(tensors, full, wanted, change)
    return tensors


def _in_places(shape: tuple[int, ...], axis: int, number: int, blocks: Sequence[int]) -> Change:
    """Put blocks of an axis in their places, with zeros in the others."""

    def change(values: np.ndarray) -> np.ndarray:
        size = shape[axis] // number
        places = [block * size + entry for block in blocks for entry in range(size)]
        spread = np.zeros(shape, values.dtype)
        spread[(slice(None),) * axis + (places,)] = values
        return spread

    return change


def _full_names(table: Table, tensors: Tensors, names: Sequence[str]) -> Iterator[str]:
    """Names in the file, with the prefix that it adds, of those that it has."""
    for name in names:
        full = next((p + name for p in ("", *table.prefixes) if p + name in tensors), None)
        if full is not None:
            yield full


def _shape(tensors: Tensors, name: str) -> tuple[int, ...]:
    return tensors.shapes[name] if isinstance(tensors, LazyTensors) else np.shape(tensors[name])


def _with_change(tensors: Tensors, name: str, shape: tuple[int, ...], change: Change) -> Tensors:
    if isinstance(tensors, LazyTensors):
        return tensors.with_change(name, shape, change)
    return {**tensors, name: change(np.asarray(tensors[name]))}
