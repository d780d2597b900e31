"""Instances of a claim: its sampler runs once in a process for equal arguments, in float64."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Array

from attlas._jax.device_arrays import generator, on_device
from attlas.core.errors import UserError, refuse_unreadable
from attlas.core.names import parameters

Instance = Mapping[str, Array]
"""One instance: arrays by name. A batch of instances has a leading axis on every array."""

Sampler = Callable[..., Mapping[str, Any]]
"""`(rng, count)` -> arrays by name with a leading axis of `count`; `(key, count)` likewise, for
draws by JAX: the name of the first parameter decides."""

Value = TypeVar("Value")

_REMEMBERED = 48
_memory: OrderedDict[Any, tuple[Any, float]] = OrderedDict()
"""Values, and the processor seconds that they took."""
_saved = [0.0]
"""Processor seconds that remembered values took, at each use of them."""


def _remember(key: Any, compute: Callable[[], Value]) -> Value:
    """The value cached under a key, computed if it is not there; the oldest are dropped."""
    try:
        hash(key)
    except TypeError:
        return compute()
    if key in _memory:
        value, seconds = _memory[key]
        _saved[0] += seconds
    else:
        started, saved = time.process_time(), _saved[0]
        value = compute()
        # What it shared with others it would have computed itself.
        seconds = time.process_time() - started + _saved[0] - saved
        _memory[key] = value, seconds
    _memory.move_to_end(key)
    while len(_memory) > _REMEMBERED:
        _memory.popitem(last=False)
    return value


def _identity(function: Any) -> Any:
    """A key that equal samplers share, also where each claim binds the same options again."""
    if isinstance(function, partial):
        return _identity(function.func), function.args, tuple(sorted(function.keywords.items()))
    return function


def draws_by_key(sample: Sampler) -> bool:
    """Whether a sampler draws by a JAX key: its first parameter is `key`.

    Examples:
        >>> draws_by_key(lambda key, count: {}), draws_by_key(lambda rng, count: {})
        (True, False)
    """
    return parameters(sample).arrays[:1] == ("key",)


def draw(sample: Sampler, seed: int, count: int) -> Instance:
    """A batch of instances in float64; equal arguments draw once in a process.

    Args:
        sample: its first parameter is `rng` (a NumPy generator) or `key` (a JAX key), then `count`.

    Examples:
        >>> draw(lambda rng, count: {"x": rng.integers(5, 6, size=count)}, 0, 2)["x"].tolist()
        [5, 5]
    """
    return _remember((_identity(sample), seed, count), lambda: draw_anew(sample, seed, count))


def seconds_to_draw(sample: Sampler, seed: int, count: int) -> float:
    """Processor seconds that a batch took, with what it shared with others; draws it once.

    Examples:
        >>> seconds_to_draw(lambda rng, count: {"x": rng.integers(5, 6, size=count)}, 0, 2) < 1
        True
    """
    started, saved = time.process_time(), _saved[0]
    draw(sample, seed, count)
    return time.process_time() - started + _saved[0] - saved


def draw_anew(sample: Sampler, seed: int, count: int) -> Instance:
    """A batch of instances in float64, drawn at each call: for batches that are needed once.

    Args:
        sample: as in `draw`.

    Examples:
        >>> draw_anew(lambda rng, count: {"x": rng.integers(5, 6, size=count)}, 0, 2)["x"].tolist()
        [5, 5]
    """
    with jax.enable_x64(True):
        key = jax.random.key(seed)
        source = key if draws_by_key(sample) else generator(key)
        return {name: on_device(value) for name, value in sample(source, count).items()}


def _state(source: Any) -> str:
    if isinstance(source, np.random.Generator):
        return str(source.bit_generator.state)
    return str(np.asarray(jax.random.key_data(source)).tolist())


def shared(function: Callable[..., Value], *, perturbed: bool = True) -> Callable[..., Value]:
    """A computation that several samplers start from, done once in a process for equal draws.

    Args:
        function: takes a generator (or a JAX key) and hashable arguments; callers must not write
            to its value.
        perturbed: whether a search runs it again with perturbed numbers; False for computations
            that take long.

    Returns:
        The same function, cached. A cached call leaves the generator in the state after the
        computation, so that later draws do not depend on the cache.

    Examples:
        >>> calls = []
        >>> @shared
        ... def runs(rng, count):
        ...     calls.append(count)
        ...     return rng.random(count)
        >>> first, again = (runs(np.random.default_rng(0), 3) for _ in range(2))
        >>> bool((first == again).all()), calls
        (True, [3])
    """
    # Few claims share what they draw.
    from attlas.claims.perturbed_draws import PerturbedGenerator

    @wraps(function)
    def once(source: Any, *arguments: Any, **options: Any) -> Value:
        def compute() -> tuple[Value, Any]:
            # The cache holds what an ordinary generator gives, also where a search calls first.
            plain = source.plain() if isinstance(source, PerturbedGenerator) else source
            value = function(plain, *arguments, **options)
            after = source.bit_generator.state if isinstance(source, np.random.Generator) else None
            return value, after

        if perturbed and isinstance(source, PerturbedGenerator):
            return function(source, *arguments, **options)
        key = (function, _state(source), arguments, tuple(sorted(options.items())))
        value, after = _remember(key, compute)
        if after is not None:
            source.bit_generator.state = after
        return value

    return once


def six_decades(
    rng: np.random.Generator,
    shape: int | tuple[int, ...],
    low: float = -1.0,
    high: float = 1.0,
    largest: float = 2.0,
) -> np.ndarray:
    r"""Scales that no statement bounds: half of them span six decades evenly.

    $$10^{u_i},\quad u_i \in [\text{largest} - 6, \text{largest}] \text{ for half of the
    scales, } u_i \in [\text{low}, \text{high}] \text{ for the others}$$

    Args:
        rng: draws the places and the exponents.
        shape: axes of the result; the half is one of all its entries, so that a batch is drawn by
            one call.
        low: exponent of ten of the least ordinary scale.
        high: exponent of ten of the largest ordinary scale.
        largest: exponent of ten of the largest in the half of six decades.

    Returns:
        Array of shape `shape`, in random order.

    Examples:
        >>> scales = six_decades(np.random.default_rng(0), 64, -0.5, 0.5)
        >>> bool(np.ptp(np.log10(scales)) > 5.5), int(np.sum(abs(np.log10(scales)) < 0.5)) >= 32
        (True, True)
        >>> six_decades(np.random.default_rng(0), (2, 3, 1)).shape
        (2, 3, 1)
    """
    count = math.prod(np.atleast_1d(shape).tolist())
    place, half = rng.permutation(count), (count + 1) // 2
    even = largest - 6 + 6 * (place + rng.random(count)) / max(half, 1)
    exponents = np.where(place < half, even, rng.uniform(low, high, count))
    return (10**exponents).reshape(shape)


@refuse_unreadable
def in_turn(
    batches: Sequence[Mapping[str, np.ndarray]], count: int | None = None
) -> dict[str, np.ndarray]:
    """Instances in turn from batches of several sizes, padded by zeros to the largest.

    Args:
        batches: arrays by name with a leading axis of instances; the same names in each.
        count: largest number of instances, all by default; the first few have every size.

    Raises:
        UserError: if there is no batch, or one without arrays.

    Examples:
        >>> batches = [{"x": np.full((2, 1), 3.0)}, {"x": np.full((2, 2), 7.0)}]
        >>> in_turn(batches, 3)["x"].tolist()
        [[3.0, 0.0], [7.0, 7.0], [3.0, 0.0]]
    """
    arrays = [{name: np.asarray(array) for name, array in batch.items()} for batch in batches]
    if not arrays or not all(arrays):
        raise UserError("batches have no arrays: give at least one array in each batch")
    lengths = [len(next(iter(batch.values()))) for batch in arrays]
    order = np.argsort(np.concatenate([np.arange(n) for n in lengths]), kind="stable")[:count]
    interleaved = {}
    for name in arrays[0]:
        variants = [batch[name] for batch in arrays]
        if len({array.ndim for array in variants}) > 1:
            raise UserError(f"{name} has several numbers of axes: give it the same in each batch")
        largest = np.max([array.shape[1:] for array in variants], axis=0).astype(int)
        widths = [[(0, 0), *((0, n) for n in largest - array.shape[1:])] for array in variants]
        padded = [np.pad(array, width) for array, width in zip(variants, widths, strict=True)]
        interleaved[name] = np.concatenate(padded)[order]
    return interleaved
