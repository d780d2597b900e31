"""Simpler forms of arrays, in the order in which they are tried."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from attlas.verify.shrink.simplicity import significant
from attlas.verify.shrink.support import Support

Arrays = Mapping[str, np.ndarray]
Supports = Mapping[str, Support]
Change = dict[str, np.ndarray]
"""Arrays that replace those of the instance."""
PALETTE = (1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 4.0, 5.0, 10.0, -10.0, 0.5, -0.5, 0.25, 0.1)
MOST = 256
"""Entries up to which each is tried by itself with all values of the palette."""
_PAIRS = 12


def _values(support: Support, own: float | None = None) -> Iterator[float]:
    """Short numbers of a support, its ends, and an entry's own number."""
    ends = [end for end in (support.low, support.high) if np.isfinite(end)]
    inside = [int(np.floor(end)) for end in ends] + [int(np.ceil(end)) for end in ends]
    numbers = [*PALETTE, *map(float, inside), *ends]
    yield from dict.fromkeys(value for value in numbers if support.contains(np.array(value)))
    if own is not None:
        yield own


def whole_arrays(arrays: Arrays, supports: Supports) -> Iterator[Change]:
    """Each array zero, constant, the identity, or a multiple of it."""
    for name, support in supports.items():
        value = arrays[name]
        yield {name: np.full_like(value, support.nearest_zero)}
        if value.ndim >= 2 and value.shape[-1] == value.shape[-2]:
            eye = np.broadcast_to(np.eye(value.shape[-1]), value.shape)
            yield from ({name: (c * eye).astype(value.dtype)} for c in _values(support))
            yield {name: value * eye.astype(value.dtype)}
        yield from ({name: np.full_like(value, c)} for c in _values(support))
        yield {name: np.where(value > 0, 1, np.where(value < 0, -1, 0)).astype(value.dtype)}


def zero_blocks(arrays: Arrays, supports: Supports) -> Iterator[Change]:
    """Slices along each axis at zero, then halves, quarters, ... and single entries."""
    for name, support in supports.items():
        value, least = arrays[name], support.nearest_zero
        for axis in range(value.ndim if value.ndim > 1 else 0):
            for k in range(value.shape[axis]):
                changed = np.moveaxis(value.copy(), axis, 0)
                changed[k] = least
                yield {name: np.moveaxis(changed, 0, axis)}
        length = value.size
        while length > 1:
            length = -(-length // 2)
            for start in range(0, value.size, length):
                changed = value.copy().reshape(-1)
                changed[start : start + length] = least
                yield {name: changed.reshape(value.shape)}
        if value.size == 1:
            yield {name: np.full_like(value, least)}


def single_entries(arrays: Arrays, supports: Supports) -> Iterator[Change]:
    """One entry of an array at a short number, all others zero."""
    for name, support in supports.items():
        value = arrays[name]
        if not 1 < value.size <= MOST or np.count_nonzero(value) < 2:
            continue
        for k in range(value.size):
            for number in _values(support, float(value.reshape(-1)[k])):
                changed = np.full(value.size, support.nearest_zero, dtype=value.dtype)
                changed[k] = number
                yield {name: changed.reshape(value.shape)}


def traded_entries(arrays: Arrays, supports: Supports) -> Iterator[Change]:
    """One entry zero, while another takes a short number."""
    for name, support in supports.items():
        value = arrays[name].reshape(-1)
        places = np.flatnonzero(value != support.nearest_zero)
        if not 1 < len(places) <= _PAIRS:
            continue
        for zero in places:
            for place in places[places != zero]:
                for number in _values(support):
                    changed = value.copy()
                    changed[zero], changed[place] = support.nearest_zero, number
                    yield {name: changed.reshape(arrays[name].shape)}


def rounded_arrays(arrays: Arrays, supports: Supports) -> Iterator[Change]:
    """All arrays, then each, in whole numbers and with few digits; symmetric, shared, rescaled."""
    rounded = [np.round, *(lambda x, k=k: significant(x, k) for k in (1, 2, 3))]
    for change in rounded:
        yield {name: change(arrays[name]).astype(arrays[name].dtype) for name in supports}
    for name, support in supports.items():
        value = arrays[name]
        forms = [value]
        if value.ndim >= 2 and value.shape[-1] == value.shape[-2]:
            forms.append((value + np.swapaxes(value, -1, -2)) / 2)
        largest = np.abs(value).max(initial=0)
        if largest > 0 and np.isfinite(largest):
            forms += [value / largest * c for c in (1, 2, 3, 5, 10)]
        for form in map(np.asarray, forms):
            yield from ({name: change(form).astype(value.dtype)} for change in rounded)
        for number in _values(support):
            signs = np.sign(value) * abs(number)
            yield {name: signs.astype(value.dtype)}
            yield {name: np.where(value != 0, number, 0).astype(value.dtype)}


def rounded_entries(arrays: Arrays, supports: Supports) -> Iterator[Change]:
    """Each entry at a shorter number by itself."""
    for name, support in supports.items():
        value = arrays[name].reshape(-1)
        places = np.flatnonzero(value)
        if len(places) > MOST:
            continue
        for k in places:
            own = float(value[k])
            shorter = [np.trunc(own), np.ceil(own), np.floor(own), np.round(2 * own) / 2]
            shorter += [float(significant(np.array(own), n)) for n in (1, 2, 3)]
            shorter += [own - 1, own + 1, -own, *_values(support)]
            for number in dict.fromkeys(map(float, shorter)):
                changed = value.copy()
                changed[k] = number
                yield {name: changed.reshape(arrays[name].shape)}


PASSES: tuple[Callable[[Arrays, Supports], Iterator[Change]], ...] = (
    whole_arrays,
    zero_blocks,
    single_entries,
    traded_entries,
    rounded_arrays,
    rounded_entries,
)
