"""A cache of the pieces of a computation, so that a killed one resumes after the last of them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np

from attlas.core.checkpoint import Named, new_stage

Tree = TypeVar("Tree")


def cached_pieces(
    origin: Any,
    count: int,
    compute: Callable[[Sequence[int]], Iterable[Tree]],
    like: Callable[[], Any],
) -> list[Tree]:
    """Compute the pieces that no earlier process has stored, and return all in their order.

    Pieces are stored where the states of trainings are, see `attlas.core.checkpoint`; without a
    store this is `list(compute(range(count)))`.

    Args:
        origin: a tree whose arrays differ from those of other computations.
        compute: gives the pieces of some numbers in their order, trees of NumPy arrays.
        like: gives a tree of the structure of a piece, whose leaves are not read; called only if
            some pieces are stored.

    Examples:
        >>> cached_pieces(0, 3, lambda some: ({"square": np.array(k**2)} for k in some), dict)
        [{'square': array(0)}, {'square': array(1)}, {'square': array(4)}]
    """
    stage = new_stage(origin)
    if stage is None:
        return list(compute(range(count)))
    cached = stage.restored() or {}
    state = {name: array for name, array in cached.items() if name.startswith(f"{_PIECE}.")}
    ended = {int(name.split(".")[1]) for name in state}
    structure = jax.tree.structure(like()) if ended else None
    pieces = {k: _piece(state, k, structure) for k in ended}
    waiting = [k for k in range(count) if k not in ended]
    for k, piece in zip(waiting, compute(waiting), strict=True):
        pieces[k] = piece
        leaves = enumerate(jax.tree.leaves(piece))
        state.update({f"{_PIECE}.{k}.{place}": np.asarray(leaf) for place, leaf in leaves})
        stage.offer(1, lambda: state, is_last=len(pieces) == count)
    return [pieces[k] for k in range(count)]


_PIECE = "piece"


def _piece(arrays: Named, k: int, structure: Any) -> Any:
    """A stored piece."""
    leaves = [arrays[f"{_PIECE}.{k}.{place}"] for place in range(structure.num_leaves)]
    return jax.tree.unflatten(structure, leaves)
