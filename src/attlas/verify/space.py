"""What a search moves: arrays of an instance, or the random numbers that a sampler drew."""

from collections.abc import Callable, Hashable, Mapping
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import jax
import numpy as np

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas._jax.device_arrays import generator
from attlas.claims.claim import Claim
from attlas.claims.perturbed_draws import PerturbedGenerator
from attlas.claims.sampling import Instance, Sampler, draws_by_key
from attlas.claims.sides import Doubling, read_detail
from attlas.core.errors import UserError
from attlas.core.names import call_by_name
from attlas.verify.evidence import Batch

if TYPE_CHECKING:
    from attlas.verify.key_draws import KeyDraws


@dataclass(frozen=True)
class Block:
    """Numbers that move together: their first axis runs over `rows`, instances of the batch.

    Attributes:
        values: the numbers, in units of `unit`.
        rows: the instance of each.
        law: "free", "normal", "uniform" or "steps".
        unit: what a one stands for in the array itself.
    """

    values: np.ndarray
    rows: np.ndarray
    law: str = "free"
    unit: np.ndarray | float = 1.0

    def at(self, values: np.ndarray) -> "Block":
        """The same block with other numbers of the same shape."""
        return Block(values, self.rows, self.law, self.unit)


Blocks = dict[Any, Block]


@runtime_checkable
class Space(Protocol):
    """The numbers that a search moves."""

    blocks: Blocks

    def batch(self, blocks: Blocks) -> Batch | None:
        """The instances at moved numbers, of the same shapes; None where the sampler fails."""
        ...

    def settled(self, blocks: Blocks, batch: Mapping[str, np.ndarray]) -> Blocks:
        """The numbers of instances after their projection."""
        ...

    def copied(self, rows: np.ndarray) -> "Space | None":
        """The space in which each instance is a copy of that of `rows`; None if it cannot be."""
        ...


class Arrays:
    """The arrays of `search_over`, each in units of its own size on the instance."""

    def __init__(self, claim: Claim, batch: Batch):
        self._start = dict(batch)
        self._inside = _projection(claim.project) if claim.project else None
        self._unit, self.blocks = {}, {}
        for name in claim.search_over:
            value = np.asarray(batch[name])
            size = np.sqrt(np.mean(value**2, axis=tuple(range(1, value.ndim)), keepdims=True))
            self._unit[name] = np.where(size > 0, size, 1.0)
            unit = self._unit[name]
            self.blocks[name] = Block(value / unit, np.arange(len(value)), unit=unit)

    def numbers(self, batch: Batch) -> Blocks:
        """Arrays of other instances of the same shapes, in the units of these."""
        return {
            name: block.at(np.asarray(batch[name]) / self._unit[name])
            for name, block in self.blocks.items()
        }

    def batch(self, blocks: Blocks) -> Batch | None:
        """The instances, brought back by `project`."""
        arrays = self._start | {
            name: block.values * self._unit[name] for name, block in blocks.items()
        }
        return arrays if self._inside is None else self._inside(arrays)

    def settled(self, blocks: Blocks, batch: Mapping[str, np.ndarray]) -> Blocks:
        """The arrays as `project` left them, beside all others that it made of the instance."""
        self._start = dict(batch)
        return {name: block.at(batch[name] / self._unit[name]) for name, block in blocks.items()}

    def copied(self, rows: np.ndarray) -> "Arrays":
        """Copies of the arrays, in the units of their origins."""
        result = copy(self)
        result._start = {name: np.asarray(value)[rows] for name, value in self._start.items()}
        result._unit = {name: unit[rows] for name, unit in self._unit.items()}
        result.blocks = {
            name: Block(block.values[rows], block.rows, block.law, result._unit[name])
            for name, block in self.blocks.items()
        }
        return result


@lru_cache(maxsize=32)
def _projection(project: Callable[..., Mapping[str, Any]]) -> Callable[[Batch], Batch]:
    """One program for all searches of a claim, which differ in their methods."""

    def inside(instance: Instance) -> Instance:
        return {**instance, **call_by_name(project, instance)}

    return jax.jit(jax.vmap(inside), compiler_options=CHEAP_COMPILATION)


def _stream(seed: int) -> np.random.BitGenerator:
    return generator(jax.random.key(seed)).bit_generator


@lru_cache(maxsize=1)
def _recorded(sample: Sampler, seed: int, count: int) -> "PerturbedGenerator | KeyDraws":
    """What a sampler drew by a generator or a key, once for all methods of one search."""
    if draws_by_key(sample):
        from attlas.verify.key_draws import KeyDraws  # few samplers draw by keys

        return KeyDraws(sample, seed, count)
    recording = PerturbedGenerator(np.random.Generator(_stream(seed)))
    sample(recording, count)
    return recording


class Draws:
    """The normal and uniform numbers that the claim's sampler draws."""

    def __init__(self, claim: Claim, batch: Batch, seed: int):
        self._claim, self._like = claim, batch
        self._stream = _stream(seed)
        self._count = len(next(iter(batch.values())))
        sampler = claim.sampler()
        is_cached = sampler is claim.sample and isinstance(sampler, Hashable)
        recorded = _recorded if is_cached else _recorded.__wrapped__
        first = self._first = recorded(sampler, seed, self._count)
        # A sampler may draw several arrays at once: A, B = rng.normal(size=(2, count, 3)).
        self._axis = {
            place: value.shape[:2].index(self._count)
            for place, value in first.numbers.items()
            if self._count in value.shape[:2]
        }
        self.blocks = {
            place: Block(
                np.moveaxis(first.numbers[place], axis, 0), np.arange(self._count), first.law(place)
            )
            for place, axis in self._axis.items()
        }
        # Where a sampler draws instance by instance, its calls come in equal shares.
        others = [place for place in first.numbers if place not in self.blocks]
        if others and len(others) % self._count == 0:
            share = len(others) // self._count
            self.blocks |= {
                place: Block(first.numbers[place][None], np.array([k // share]), first.law(place))
                for k, place in enumerate(others)
            }
        if claim.kind.rule.scaled:
            longest = largest_scale(claim, batch)
            self.blocks = {
                place: block
                for place, block in self.blocks.items()
                if block.values[0].size < longest
            }

    def _instances(self, numbers: dict[int, np.ndarray]) -> Mapping[str, Any]:
        if not isinstance(self._first, PerturbedGenerator):
            return self._first.instances(numbers)
        stream = np.random.Generator(deepcopy(self._stream))
        return self._claim.sampler()(PerturbedGenerator(stream, numbers), self._count)

    def batch(self, blocks: Blocks) -> Batch | None:
        """The instances that the sampler makes from moved numbers."""
        numbers = {
            place: np.moveaxis(block.values, 0, self._axis[place])
            if place in self._axis
            else block.values[0]
            for place, block in blocks.items()
        }
        try:
            drawn_arrays = self._instances(numbers)
        except (ArithmeticError, ValueError, RuntimeError, UserError):
            # A solver of the sampler may not converge on an extreme instance: not a move.
            return None
        # NumPy arrays stay: a program takes them, and `device_put` costs 0.3 ms for each.
        drawn_arrays = {
            name: value if isinstance(value, jax.Array) else np.asarray(value)
            for name, value in drawn_arrays.items()
        }
        same = all(
            drawn_arrays[name].shape == value.shape and drawn_arrays[name].dtype == value.dtype
            for name, value in self._like.items()
        )
        return drawn_arrays if same else None

    def settled(self, blocks: Blocks, batch: Mapping[str, np.ndarray]) -> Blocks:
        """The numbers themselves: a sampler has no projection."""
        del batch
        return blocks

    def copied(self, rows: np.ndarray) -> "Draws | None":
        """Copies of the draws; None where instances have draws of different shapes."""
        single: dict[int, list[np.ndarray]] = {}
        for place, block in self.blocks.items():
            if place not in self._axis:
                single.setdefault(int(block.rows[0]), []).append(block.values)
        used, blocks = dict.fromkeys(single, 0), {}
        for place, block in self.blocks.items():
            if place in self._axis:
                blocks[place] = block.at(block.values[rows])
                continue
            row = int(block.rows[0])
            origin = single[int(rows[row])]
            if used[row] >= len(origin) or origin[used[row]].shape != block.values.shape:
                return None
            blocks[place] = block.at(origin[used[row]])
            used[row] += 1
        result = copy(self)
        result.blocks = blocks
        return result


def largest_scale(claim: Claim, batch: Batch) -> float:
    """The largest scale on the first instance of a batch; infinite where the sides alone know it.

    As many numbers of one draw are noise along the scales, which is not moved.
    """
    instance = {name: np.asarray(value)[0] for name, value in batch.items()}
    if isinstance(claim.scales, Doubling):
        return float(claim.scales.values[-1])
    scales = instance.get("scales", np.inf) if claim.scales is None else claim.scales
    return float(np.max(read_detail(scales, instance, {})))


def space_of(claim: Claim, batch: Batch, seed: int) -> Space:
    """The arrays of `search_over`, or without any the draws of the sampler."""
    return Arrays(claim, batch) if claim.search_over else Draws(claim, batch, seed)


def spread(mask: np.ndarray, like: np.ndarray) -> np.ndarray:
    """A number per instance, shape (count,), with the axes of `like`, so that it multiplies blocks.

    Examples:
        >>> spread(np.ones(2), np.ones((2, 3, 4))).shape
        (2, 1, 1)
    """
    return mask.reshape(-1, *(1,) * (like.ndim - 1))


def select_gained(blocks: Blocks, proposed: Blocks, gained: np.ndarray) -> Blocks:
    """The proposed numbers where an instance `gained`, a vector; the present ones of all others."""
    return {
        name: block.at(
            np.where(spread(gained[block.rows], block.values), proposed[name].values, block.values)
        )
        for name, block in blocks.items()
    }
