"""The matrix products that every program must make to remove heads, and nothing else.

Without one head of layer l, the feedforward products of layer l, all products of the layers behind
it and the readout are to be made again; what stands before is that of the unchanged model. Scores
and mixing count the half that a causal mask leaves. Norms, softmax, activations, the loss and all
moves of memory between the products are left out: their seconds are a lower bound.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

Product = tuple[int, int, int, int]
"""Matrices in a batch, rows, inner size, columns."""


class Shape(NamedTuple):
    """A causal Transformer and its batch.

    Attributes:
        layers: L.
        heads: H of each layer.
        groups: of keys and values.
        width: d.
        inner: sizes of the feedforward matrices, (inputs, outputs) of each.
        words: of the readout.
        sequences: n.
        tokens: T of each.
    """

    layers: int
    heads: int
    groups: int
    width: int
    inner: tuple[tuple[int, int], ...]
    words: int
    sequences: int
    tokens: int


def products_of(shape: Shape) -> tuple[list[Product], list[Product], list[Product]]:
    """Products of the attention, the feedforward unit and the readout, for the whole batch.

    Args:
        shape: the model.

    Returns:
        Three lists.
    """
    rows, k = shape.sequences * shape.tokens, shape.width // shape.heads
    batch, seen = shape.sequences * shape.heads, shape.tokens // 2
    projections = [(1, rows, shape.width, shape.width)] * 2  # queries and outputs
    projections += [(1, rows, shape.width, shape.groups * k)] * 2
    maps = [(batch, shape.tokens, k, seen), (batch, shape.tokens, seen, k)]
    feedforward = [(1, rows, *sizes) for sizes in shape.inner]
    return projections + maps, feedforward, [(1, rows, shape.width, shape.words)]


def seconds_of(
    products: Iterable[Product],
    rounds: int = 15,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Seconds of float32 products into arrays that are there, the median over rounds.

    Args:
        products: their sizes.
        rounds: how often all of them are made.
        clock: of the process.

    Returns:
        Seconds of one round.
    """
    import numpy as np  # after the process was pinned to one core

    rng = np.random.default_rng(0)
    arrays = [
        tuple(rng.standard_normal(size, np.float32) for size in ((b, m, k), (b, k, n), (b, m, n)))
        for b, m, k, n in products
    ]
    taken = []
    for _ in range(rounds + 1):
        started = clock()
        for x, W, out in arrays:
            np.matmul(x, W, out=out)
        taken.append(clock() - started)
    return float(np.median(taken[1:]))


def removal_roofline(shape: Shape, ours: float, loop: float, removals: int) -> dict[str, float]:
    """What the products alone take, beside what was measured.

    Args:
        shape: the model.
        ours: measured seconds of all removals that start at the removed head's layer.
        loop: the same of a loop that passes the whole model for each.
        removals: how many; those of one layer are as many as those of another.

    Returns:
        Seconds of the products of either, their share of what was measured, and the ratio of the
        loop to the products of ours: more than any program reaches that removes heads exactly.
    """
    attention, feedforward, readout = (seconds_of(each) for each in products_of(shape))
    behind = (shape.layers - 1) / 2
    least = removals * (feedforward + behind * (attention + feedforward) + readout)
    whole = removals * (shape.layers * (attention + feedforward) + readout)
    return {
        "products_seconds": least,
        "products_share": least / ours,
        "loop_products_seconds": whole,
        "loop_products_share": whole / loop,
        "ratio_of_bare_products": loop / least,
        "ratio_at_equal_speed": whole / least,
    }


def removal_operations(shape: Shape, removals: int) -> tuple[float, float]:
    """Additions and multiplications of the products that removals need, and of a loop.

    Args:
        shape: the model.
        removals: as for `removal_roofline`.

    Returns:
        Those of removals that start at the removed head's layer, and of whole passes.
    """
    attention, feedforward, readout = (
        sum(2.0 * b * m * k * n for b, m, k, n in products) for products in products_of(shape)
    )
    behind = (shape.layers - 1) / 2
    least = removals * (feedforward + behind * (attention + feedforward) + readout)
    return least, removals * (shape.layers * (attention + feedforward) + readout)


def feedforward_sizes(width: int, hidden: int, gated: bool) -> Sequence[tuple[int, int]]:
    """Sizes of the matrices of a feedforward unit.

    Args:
        width: d.
        hidden: its inner size.
        gated: whether two matrices lead to it.

    Returns:
        (inputs, outputs) of each.
    """
    return [(width, hidden)] * (2 if gated else 1) + [(hidden, width)]
