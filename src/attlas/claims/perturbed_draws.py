"""A generator whose draws can be moved: a sampler run again gives a nearby instance.

Every instance of a sampler is a function of the random numbers that it drew. Moving these
numbers, each within its law's support, reaches every instance that the sampler can give and no
other: a search needs no description of the domain. Integers, choices and permutations stay.
"""

from copy import deepcopy
from typing import Any

import numpy as np

_END = 1e-12
"""Distance that a uniform number keeps from the ends of its interval."""
_FAR = 8.0
"""Standard deviations within which a normal number stays: a draw beyond has probability 1e-15, and
far tails overflow where no statement is meant."""


class MovedGenerator(np.random.Generator):
    """A generator that gives normal and uniform numbers by place in its stream.

    The numbers of one call are kept under the state of the stream before it: normal ones in
    units of their scale, uniform ones in units of their interval. What is not kept is drawn and
    recorded.

    Attributes:
        numbers: kept draws by place.
        uniform_at: places of uniform draws.

    Examples:
        >>> first = MovedGenerator(np.random.default_rng(3))
        >>> x = first.normal(size=2)
        >>> bool((x == np.random.default_rng(3).normal(size=2)).all())
        True
        >>> moved = {place: z + 1 for place, z in first.numbers.items()}
        >>> again = MovedGenerator(np.random.default_rng(3), moved)
        >>> bool((again.normal(size=2) == x + 1).all())
        True
    """

    def __init__(self, base: np.random.Generator, numbers: dict[int, np.ndarray] | None = None):
        super().__init__(base.bit_generator)
        self.numbers: dict[int, np.ndarray] = dict(numbers or {})
        self.uniform_at: set[int] = set()

    def plain(self) -> np.random.Generator:
        """An ordinary generator on the same stream.

        Returns:
            The generator; what it draws advances this one.
        """
        return np.random.Generator(self.bit_generator)

    def beside(self, base: np.random.Generator) -> "MovedGenerator":
        """Another stream whose draws are kept with those of this one.

        Args:
            base: an ordinary generator at the start of that stream.

        Returns:
            The generator.
        """
        other = MovedGenerator(base)
        other.numbers, other.uniform_at = self.numbers, self.uniform_at
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> "MovedGenerator":
        """The same stream again, from here: NumPy's own copy would be an ordinary generator."""
        return self.beside(np.random.Generator(deepcopy(self.bit_generator, memo)))

    def law(self, place: int) -> str:
        """The law of the numbers at a place.

        Args:
            place: state of the stream before the call.

        Returns:
            "uniform" or "normal".
        """
        return "uniform" if place in self.uniform_at else "normal"

    def _kept(self, place: int, drawn: Any) -> Any:
        known = self.numbers.get(place)
        if known is None or known.shape != np.shape(drawn):
            self.numbers[place] = np.array(drawn, dtype=float)
            return drawn
        return known if known.ndim else float(known)

    def _place(self) -> int:
        return self.bit_generator.state["state"]["state"]

    def standard_normal(self, size: Any = None, *rest: Any, **more: Any) -> Any:
        """As NumPy's, moved."""
        place = self._place()
        return self._kept(place, super().standard_normal(size, *rest, **more))

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """As NumPy's, moved."""
        size = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        return loc + scale * self.standard_normal(size or None)

    def random(self, size: Any = None, *rest: Any, **more: Any) -> Any:
        """As NumPy's, moved."""
        place = self._place()
        self.uniform_at.add(place)
        return self._kept(place, super().random(size, *rest, **more))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """As NumPy's, moved."""
        size = np.broadcast_shapes(np.shape(low), np.shape(high)) if size is None else size
        return low + (np.asarray(high) - low) * self.random(size if size != () else None)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """By inversion, moved."""
        return -scale * np.log1p(-self.random(np.shape(scale) if size is None else size))


def apart(rng: np.random.Generator, seed: Any = None) -> np.random.Generator:
    """A generator of a stream of its own, whose draws move where those of the other one do.

    Args:
        rng: the generator of a sampler.
        seed: of the stream; by default two draws from `rng`.

    Returns:
        The generator.

    Examples:
        >>> rng = MovedGenerator(np.random.default_rng(3))
        >>> bool(apart(rng, 5).normal() == np.random.default_rng(5).normal())
        True
        >>> len(rng.numbers)
        1
    """
    other = np.random.default_rng(rng.integers(2**31, size=2) if seed is None else seed)
    return rng.beside(other) if isinstance(rng, MovedGenerator) else other


def within(numbers: np.ndarray, law: str) -> np.ndarray:
    """Moved numbers back to where a draw can be.

    Args:
        numbers: moved ones.
        law: "uniform" in (0, 1), standard "normal", or "free".

    Returns:
        The nearest ones inside (0, 1), within eight standard deviations, or themselves.

    Examples:
        >>> within(np.array([-0.5, 0.5]), "uniform").round(3).tolist()
        [0.0, 0.5]
    """
    if law == "free":
        return numbers
    return np.clip(numbers, _END, 1 - _END) if law == "uniform" else np.clip(numbers, -_FAR, _FAR)
