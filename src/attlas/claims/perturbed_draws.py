"""A generator with perturbed draws: a sampler run again gives a nearby instance.

Every instance of a sampler is a function of the random numbers that it drew. Perturbing these
numbers, each within the support of its law, gives every instance that the sampler can give and no
others: a search needs no description of the domain. Integers (and choices, which NumPy draws by
them) are recorded as uniform numbers in as many steps, permutations as uniform numbers in the order
of which they permute, gamma, beta and Dirichlet numbers and counts (binomial, Poisson, multinomial)
by their distribution functions. Single integers stay: they are sizes of instances as a rule.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

_END = 1e-12
"""Smallest distance of a uniform number from the ends of its interval."""
_FAR = 8.0
"""Standard deviations within which a normal number stays: a draw beyond has probability 1e-15, and
far tails overflow where no statement is meant."""
_MOST_STEPS = 2**16
"""Integers of a larger range stay: they are seeds."""


class PerturbedGenerator(np.random.Generator):
    """A generator that gives normal and uniform numbers by their place in its stream.

    The numbers of one call are recorded under the state of the stream before it: normal ones in
    units of their scale, uniform ones in units of their interval. Places without a record are
    drawn and recorded.

    Attributes:
        numbers: recorded draws by place.
        uniform_at: places of uniform draws.
        steps_at: places of integers.

    Examples:
        >>> first = PerturbedGenerator(np.random.default_rng(3))
        >>> x = first.normal(size=2)
        >>> bool((x == np.random.default_rng(3).normal(size=2)).all())
        True
        >>> moved = {place: z + 1 for place, z in first.numbers.items()}
        >>> again = PerturbedGenerator(np.random.default_rng(3), moved)
        >>> bool((again.normal(size=2) == x + 1).all())
        True
    """

    def __init__(self, base: np.random.Generator, numbers: dict[int, np.ndarray] | None = None):
        super().__init__(base.bit_generator)
        self.numbers: dict[int, np.ndarray] = dict(numbers or {})
        self.uniform_at: set[int] = set()
        self.steps_at: set[int] = set()

    def plain(self) -> np.random.Generator:
        """An ordinary generator on the same stream; what it draws advances this one."""
        return np.random.Generator(self.bit_generator)

    def beside(self, base: np.random.Generator) -> "PerturbedGenerator":
        """Another stream from its start `base`, whose draws are recorded with those of this one."""
        stream = PerturbedGenerator(base)
        stream.numbers, stream.uniform_at = self.numbers, self.uniform_at
        stream.steps_at = self.steps_at
        return stream

    def __deepcopy__(self, memo: dict[int, Any]) -> "PerturbedGenerator":
        """The same stream again, from here: NumPy's own copy would be an ordinary generator."""
        return self.beside(np.random.Generator(deepcopy(self.bit_generator, memo)))

    def law(self, place: int) -> str:
        """The law of the numbers at a place, the state of the stream before the call."""
        if place in self.steps_at:
            return "steps"
        return "uniform" if place in self.uniform_at else "normal"

    def _recorded(self, place: int, fresh: Any) -> Any:
        stored = self.numbers.get(place)
        if stored is None or stored.shape != np.shape(fresh):
            self.numbers[place] = np.array(fresh, dtype=float)
            return fresh
        return stored if stored.ndim else float(stored)

    def _place(self) -> int:
        return self.bit_generator.state["state"]["state"]

    def standard_normal(self, size: Any = None, *arguments: Any, **options: Any) -> Any:
        """Standard normal numbers as NumPy draws them, or as recorded."""
        place = self._place()
        return self._recorded(place, super().standard_normal(size, *arguments, **options))

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal numbers as NumPy draws them, or as recorded."""
        size = np.broadcast_shapes(np.shape(loc), np.shape(scale)) if size is None else size
        return loc + scale * self.standard_normal(size or None)

    def random(self, size: Any = None, *arguments: Any, **options: Any) -> Any:
        """Uniform numbers in [0, 1) as NumPy draws them, or as recorded."""
        place = self._place()
        self.uniform_at.add(place)
        return self._recorded(place, super().random(size, *arguments, **options))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform numbers as NumPy draws them, or as recorded."""
        size = np.broadcast_shapes(np.shape(low), np.shape(high)) if size is None else size
        return low + (np.asarray(high) - low) * self.random(size if size != () else None)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Exponential numbers, by inversion of uniform ones."""
        return -scale * np.log1p(-self.random(np.shape(scale) if size is None else size))

    def integers(
        self, low: Any, high: Any = None, size: Any = None, *rest: Any, **options: Any
    ) -> Any:
        """Integers as NumPy draws them, or the steps in which recorded uniform numbers lie."""
        place = self._place()
        fresh = super().integers(low, high, size, *rest, **options)
        first, last = (0, low) if high is None else (low, high)
        ends = options.get("endpoint", rest[1] if len(rest) > 1 else False)
        span = np.asarray(last, dtype=float) - first + bool(ends)
        if not np.ndim(fresh) or fresh.dtype == bool or np.max(span, initial=0) > _MOST_STEPS:
            return fresh
        self.steps_at.add(place)
        coded = (fresh - np.asarray(first) + 0.5) / span
        recorded = self._recorded(place, coded)
        if recorded is coded:
            return fresh
        return (first + np.minimum(np.floor(recorded * span), span - 1)).astype(fresh.dtype)

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """A permutation as NumPy draws it, or that which sorts recorded uniform numbers."""
        place = self._place()
        if not isinstance(x, int | np.integer) and axis != 0:
            return super().permutation(x, axis)
        order = super().permutation(x if isinstance(x, int | np.integer) else len(x))
        order = self._sorted_by(place, order)
        return order if isinstance(x, int | np.integer) else np.asarray(x)[order]

    def permuted(self, x: Any, *, axis: Any = None, out: Any = None) -> Any:
        """Permuted rows as NumPy draws them, or as recorded uniform numbers sort them."""
        place, values = self._place(), np.asarray(x)
        if out is not None or values.ndim != 2 or axis not in (1, -1):
            return super().permuted(x, axis=axis, out=out)
        order = super().permuted(np.tile(np.arange(values.shape[1]), (len(values), 1)), axis=1)
        return np.take_along_axis(values, self._sorted_by(place, order), axis=1)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Shuffle in place as NumPy does, or as recorded uniform numbers sort the entries."""
        if axis != 0:
            super().shuffle(x, axis)
            return
        place, order = self._place(), np.arange(len(x))
        super().shuffle(order)
        order = self._sorted_by(place, order)
        x[:] = x[order] if isinstance(x, np.ndarray) else [x[k] for k in order]

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, **options: Any
    ) -> Any:
        """Entries as NumPy chooses them; without replacement by the order of uniform numbers."""
        population = a if isinstance(a, int | np.integer) else len(a)
        if replace or p is not None or size is None or options or population > _MOST_STEPS:
            return super().choice(a, size, replace, p, **options)
        place = self._place()
        selected = super().choice(population, size, replace=False)
        others = np.setdiff1d(np.arange(population), selected)
        order = self._sorted_by(place, np.concatenate([selected.ravel(), others]))
        selected = order[: selected.size].reshape(selected.shape)
        return selected if isinstance(a, int | np.integer) else np.asarray(a)[selected]

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Binomial numbers as NumPy draws them, or those of recorded ranks."""
        place, fresh = self._place(), super().binomial(n, p, size)
        if not np.ndim(fresh):
            return fresh
        law = _binomial(n, p)
        recorded = self._ranked(place, ranks := law.ranks(fresh))
        return fresh if recorded is ranks else law.quantiles(recorded).astype(fresh.dtype)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """Poisson numbers as NumPy draws them, or those of recorded ranks."""
        from scipy import special

        place, fresh = self._place(), super().poisson(lam, size)
        if not np.ndim(fresh):
            return fresh
        law = _Counts(lambda k: special.pdtr(k, lam), lambda u: special.pdtrik(u, lam), np.inf)
        recorded = self._ranked(place, ranks := law.ranks(fresh))
        return fresh if recorded is ranks else law.quantiles(recorded).astype(fresh.dtype)

    def multinomial(self, n: Any, pvals: Any, size: Any = None, **options: Any) -> Any:
        """Multinomial numbers as NumPy draws them, or by recorded ranks of one after the other."""
        place, shares = self._place(), np.asarray(pvals, dtype=float)
        fresh = super().multinomial(n, pvals, size, **options)
        if np.ndim(n) or shares.ndim != 1 or options:
            return fresh
        ranks, left = np.zeros(fresh.shape), np.full(fresh.shape[:-1], n)
        later = np.maximum(np.cumsum(shares[::-1])[::-1], np.finfo(float).tiny)
        for k, share in enumerate(np.minimum(shares / later, 1.0)):
            ranks[..., k] = _binomial(left, share).ranks(fresh[..., k])
            left = left - fresh[..., k]
        recorded = self._ranked(place, ranks)
        if recorded is ranks:
            return fresh
        moved, left = np.zeros_like(fresh), np.full(fresh.shape[:-1], n)
        for k, share in enumerate(np.minimum(shares / later, 1.0)):
            moved[..., k] = _binomial(left, share).quantiles(recorded[..., k])
            left = left - moved[..., k]
        moved[..., -1] += left
        return moved

    def _sorted_by(self, place: int, order: np.ndarray) -> np.ndarray:
        self.uniform_at.add(place)
        keys = (np.argsort(order, axis=-1) + 0.5) / order.shape[-1]
        recorded = self._recorded(place, keys)
        return order if recorded is keys else np.argsort(recorded, axis=-1, kind="stable")

    def dirichlet(self, alpha: Any, size: Any = None) -> Any:
        """Dirichlet numbers as NumPy draws them, or gamma numbers of recorded ranks, normalised."""
        from scipy import special

        place, alpha = self._place(), np.asarray(alpha, dtype=float)
        fresh = super().dirichlet(alpha, size)
        ranks = special.gammainc(alpha, fresh * alpha.sum())
        recorded = self._ranked(place, ranks)
        if recorded is ranks:
            return fresh
        gammas = special.gammaincinv(alpha, recorded)
        return gammas / np.maximum(gammas.sum(axis=-1, keepdims=True), np.finfo(float).tiny)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        """Gamma numbers as NumPy draws them, or those of recorded ranks."""
        from scipy import special

        place = self._place()
        fresh = super().gamma(shape, scale, size)
        ranks = special.gammainc(shape, fresh / np.asarray(scale))
        recorded = self._ranked(place, ranks)
        return fresh if recorded is ranks else scale * special.gammaincinv(shape, recorded)

    def beta(self, a: Any, b: Any, size: Any = None) -> Any:
        """Beta numbers as NumPy draws them, or those of recorded ranks."""
        from scipy import special

        place = self._place()
        fresh = super().beta(a, b, size)
        ranks = special.betainc(a, b, fresh)
        recorded = self._ranked(place, ranks)
        return fresh if recorded is ranks else special.betaincinv(a, b, recorded)

    def _ranked(self, place: int, ranks: Any) -> Any:
        self.uniform_at.add(place)
        return self._recorded(place, ranks)


class _Counts(NamedTuple):
    """A law of whole numbers from 0 on: its distribution function and the inverse."""

    below: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    most: Any

    def ranks(self, counts: np.ndarray) -> np.ndarray:
        """The middle of the step at each number."""
        lower = np.where(counts > 0, self.below(np.maximum(counts - 1, 0)), 0.0)
        return (lower + self.below(counts)) / 2

    def quantiles(self, ranks: np.ndarray) -> np.ndarray:
        """The numbers in whose steps the ranks lie."""
        # The inverse is NaN below the first step.
        steps = np.minimum(np.nan_to_num(np.ceil(self.inverse(ranks))), self.most)
        steps = np.maximum(steps, 0)
        high = (steps > 0) & (self.below(np.maximum(steps - 1, 0)) >= ranks)
        return np.where(high, steps - 1, steps)


def _binomial(n: Any, p: Any) -> _Counts:
    from scipy import special

    n, p = np.asarray(n, dtype=int), np.asarray(p, dtype=float)

    def inverse(ranks: Any) -> Any:
        # SciPy's inverse is NaN at the ends, where one number has all of the probability.
        return np.where(p >= 1, n, np.where(p <= 0, 0.0, special.bdtrik(ranks, n, p)))

    return _Counts(lambda k: special.bdtr(k, n, p), inverse, n)


def apart(rng: np.random.Generator, seed: Any = None) -> np.random.Generator:
    """A separate stream, whose draws are perturbed wherever those of `rng` are.

    Args:
        seed: seed of the stream; by default two draws from `rng`.

    Examples:
        >>> rng = PerturbedGenerator(np.random.default_rng(3))
        >>> bool(apart(rng, 5).normal() == np.random.default_rng(5).normal())
        True
        >>> len(rng.numbers)
        1
    """
    stream = np.random.default_rng(rng.integers(2**31, size=2) if seed is None else seed)
    return rng.beside(stream) if isinstance(rng, PerturbedGenerator) else stream


def within(numbers: np.ndarray, law: str) -> np.ndarray:
    """Perturbed numbers clipped to where a draw can be.

    Args:
        law: "uniform" and "steps" clip to (0, 1), "normal" to eight standard deviations,
            "free" not at all.

    Examples:
        >>> within(np.array([-0.5, 0.5]), "uniform").round(3).tolist()
        [0.0, 0.5]
    """
    if law == "free":
        return numbers
    return np.clip(numbers, -_FAR, _FAR) if law == "normal" else np.clip(numbers, _END, 1 - _END)
