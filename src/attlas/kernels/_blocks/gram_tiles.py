"""How many samples and heads to take at once so that a Gram matrix stays within a budget."""

from collections.abc import Iterator
from typing import NamedTuple

from attlas.core.errors import UserError

# A product this deep runs at the speed of BLAS; deeper ones cost memory and gain nothing.
DEPTH = 8192
# The arrays of one call of the feature function should fit the second-level cache.
SCRATCH = 2**19


class GramShape(NamedTuple):
    """The sizes that a plan depends on.

    Attributes:
        rows: samples of the first set.
        columns: samples of the second set.
        symmetric: whether both sets are the same.
        widths: features per head, one number for each Gram matrix that is accumulated.
        scratch: floats that the feature function holds for one sample and head.
        parameters: parameters of one head, which are laid out anew for each block.
        itemsize: bytes per float.
    """

    rows: int
    columns: int
    symmetric: bool
    heads: int
    widths: tuple[int, ...]
    scratch: int
    parameters: int
    itemsize: int


class GramTiles(NamedTuple):
    """The plan: samples per tile, heads per block, samples per call of the feature function."""

    samples: int
    heads: int
    chunk: int

    def blocks(self, heads: int) -> Iterator[slice]:
        """The blocks of heads."""
        return ranges(heads, self.heads)


def ranges(size: int, step: int) -> Iterator[slice]:
    """Consecutive ranges of length `step` of an axis; the last one may be shorter.

    Examples:
        >>> list(ranges(5, 3))
        [slice(0, 3, None), slice(3, 5, None)]
    """
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def _chunk(shape: GramShape, samples: int, heads: int) -> int:
    bytes_per_sample = shape.scratch * heads * shape.itemsize
    return max(1, min(samples, SCRATCH // bytes_per_sample))


def tile_bytes(shape: GramShape, samples: int, heads: int) -> int:
    """Bytes of all working arrays of a plan.

    Returns:
        Features, accumulators, scratch of the feature function and parameters in its layout.

    Examples:
        >>> shape = GramShape(4, 4, True, 1, (10,), 7, 5, 8)
        >>> tile_bytes(shape, 4, 1)
        640
    """
    rows, columns = min(samples, shape.rows), min(samples, shape.columns)
    single_tile = samples >= max(shape.rows, shape.columns)
    sides = rows if single_tile and shape.symmetric else rows + columns
    # The first accumulator is the output itself when one tile is all; a second one is joined in
    # after a product with a Gram matrix of last tokens of the same size.
    accumulators = len(shape.widths) - 1 if single_tile else len(shape.widths)
    joined = 0
    if len(shape.widths) > 1:
        joined = rows * columns + sides * shape.widths[1]
    floats = (
        sides * heads * sum(shape.widths)
        + accumulators * rows * columns
        + joined
        + _chunk(shape, samples, heads) * heads * shape.scratch
        + heads * shape.parameters
    )
    # NumPy's buffers of strided operands, at most one sample and block of heads.
    return shape.itemsize * (floats + heads * shape.scratch)


def _most_samples(shape: GramShape, memory: int, heads: int) -> int:
    """The most samples of a tile, fewer than all, that fit; 0 if not even one does."""
    low, high = 0, max(shape.rows, shape.columns) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if tile_bytes(shape, middle, heads) <= memory:
            low = middle
        else:
            high = middle - 1
    return low


def plan_tiles(shape: GramShape, memory: int) -> GramTiles:
    """The plan with the fewest tiles, and the largest blocks of heads that keep it so.

    Features of a sample are recomputed for every tile it meets: one tile is best, and deep
    products only help until BLAS runs at its own speed.

    Args:
        memory: budget for all working arrays, bytes.

    Raises:
        UserError: if one sample and one head do not fit.

    Examples:
        >>> plan_tiles(GramShape(4, 4, True, 1, (10,), 7, 5, 8), 1000)
        GramTiles(samples=4, heads=1, chunk=4)
    """
    single_tile = max(shape.rows, shape.columns)
    smallest = min(tile_bytes(shape, samples, 1) for samples in (1, single_tile))
    if memory < smallest:
        raise UserError(
            f"memory = {memory} bytes holds no tile of one sample and one head: "
            f"give at least {smallest}"
        )
    deep = max(1, min(shape.heads, DEPTH // sum(shape.widths)))
    blocks = [deep >> power for power in range(deep.bit_length())]
    for heads in blocks:
        if tile_bytes(shape, single_tile, heads) <= memory:
            return GramTiles(single_tile, heads, _chunk(shape, single_tile, heads))
    # Several tiles: a block of an eighth of the depth leaves room for more samples.
    plans = [
        (_most_samples(shape, memory, heads), heads) for heads in blocks[min(3, len(blocks) - 1) :]
    ]
    samples, heads = next((plan for plan in plans if 8 * plan[0] >= single_tile), plans[-1])
    return GramTiles(samples, heads, _chunk(shape, samples, heads))
