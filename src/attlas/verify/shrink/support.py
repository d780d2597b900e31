"""Where the entries of an array may lie: the law of the draw that gave it, or what it declares."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from attlas._jax.device_arrays import generator
from attlas.claims.claim import Claim
from attlas.claims.sampling import Sampler
from attlas.claims.verdict import Witness
from attlas.core.names import parameters

_COUNT = 8
"""Instances by which the draw behind an array is recognised."""


@dataclass(frozen=True)
class Support:
    """Entries between two ends, both included, where they are whole numbers if `whole`.

    Examples:
        >>> Support(-3.0, 3.0).contains(np.array([3.0, 0.5])), Support(1.0, 3.0, True).nearest_zero
        (True, 1.0)
    """

    low: float = -np.inf
    high: float = np.inf
    whole: bool = False

    def contains(self, values: np.ndarray) -> bool:
        """Whether all entries lie in it."""
        inside = (values >= self.low) & (values <= self.high)
        return bool(np.all(inside) and (not self.whole or np.all(values == np.round(values))))

    @property
    def nearest_zero(self) -> float:
        """Its entry of least size."""
        return float(np.clip(0.0, self.low, self.high))


class LawRecorder(np.random.Generator):
    """A generator that records the arrays it draws, each with the support of its law.

    Attributes:
        draws: the output of each call and its support.
        rolled: index of the call whose output is rolled by one instance, None for none.

    Examples:
        >>> rng = LawRecorder(np.random.default_rng(0))
        >>> x = rng.uniform(-3, 3, size=4)
        >>> rng.draws[0][1]
        Support(low=-3.0, high=3.0, whole=False)
    """

    def __init__(self, base: np.random.Generator, rolled: int | None = None):
        super().__init__(base.bit_generator)
        self.draws: list[tuple[np.ndarray, Support]] = []
        self.rolled = rolled

    def _record(self, values: Any, low: Any, high: Any, whole: bool = False) -> Any:
        if not np.ndim(values) or np.ndim(low) or np.ndim(high):
            return values
        if self.rolled == len(self.draws):
            values = np.roll(values, 1, axis=0)
        self.draws.append((np.array(values), Support(float(low), float(high), whole)))
        return values

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform numbers; their support is the interval."""
        return self._record(super().uniform(low, high, size), low, high)

    def random(self, size: Any = None, *arguments: Any, **options: Any) -> Any:
        """Uniform numbers between 0 and 1."""
        return self._record(super().random(size, *arguments, **options), 0.0, 1.0)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal numbers, whose support is the line where the scale is one positive number."""
        values = super().normal(loc, scale, size)
        spread_out = np.ndim(scale) == 0 and scale > 0
        return self._record(values, -np.inf, np.inf) if spread_out else values

    def standard_normal(self, size: Any = None, *arguments: Any, **options: Any) -> Any:
        """Standard normal numbers."""
        values = super().standard_normal(size, *arguments, **options)
        return self._record(values, -np.inf, np.inf)

    def integers(self, low: Any, high: Any = None, size: Any = None, **options: Any) -> Any:
        """Integers; their support is all between the ends."""
        values = super().integers(low, high, size, **options)
        first, last = (0, low) if high is None else (low, high)
        return self._record(values, first, last - (not options.get("endpoint")), True)


def drawn_supports(sample: Sampler, seed: int) -> dict[str, Support]:
    """Supports of the arrays that a sampler draws by one call each, on which no other depends.

    An array counts where it is a multiple of the output of a call, plus a constant, and where no
    other array changes when that output is drawn anew.

    Examples:
        >>> def draw(rng, count):
        ...     x = 2 * rng.uniform(size=(count, 3))
        ...     z = rng.normal(size=count)
        ...     return {"x": x, "z": z, "more": z + 1}
        >>> drawn_supports(draw, 0)
        {'x': Support(low=0.0, high=2.0, whole=False)}
    """
    if parameters(sample).arrays[:1] == ("key",):
        return {}

    def run(rolled: int | None) -> tuple[LawRecorder, dict[str, np.ndarray]]:
        rng = LawRecorder(generator(jax.random.key(seed)), rolled)
        return rng, {name: np.asarray(value) for name, value in sample(rng, _COUNT).items()}

    rng, arrays = run(None)
    supports: dict[str, Support] = {}
    for call, (output, law) in enumerate(rng.draws):
        names = [name for name, value in arrays.items() if _affine(value, output) is not None]
        if len(names) != 1:
            continue
        other_rng, others = run(call)
        same_calls = len(other_rng.draws) == len(rng.draws)
        changed = [name for name in arrays if not np.array_equal(arrays[name], others[name])]
        if same_calls and changed == names:
            slope, offset = _affine(arrays[names[0]], output) or (1.0, 0.0)
            low, high = sorted(_end(slope * end + offset) for end in (law.low, law.high))
            whole = law.whole and slope == int(slope) and offset == int(offset)
            if not law.whole or (whole and abs(slope) == 1):
                supports[names[0]] = Support(low, high, whole)
    return supports


def _end(value: float) -> float:
    """An end without the rounding of slope and offset."""
    return float(np.round(value, 12)) if np.isfinite(value) else value


def _affine(values: np.ndarray, output: np.ndarray) -> tuple[float, float] | None:
    """Slope and offset by which all entries of an array follow from an output; None without."""
    if values.shape != output.shape or values.dtype.kind not in "fiu":
        return None
    if np.array_equal(values, output):
        return 1.0, 0.0
    first, last = np.argmin(output), np.argmax(output)
    width = float(output.flat[last] - output.flat[first])
    if width == 0:
        return None
    slope = float(values.flat[last] - values.flat[first]) / width
    offset = float(values.flat[first]) - slope * float(output.flat[first])
    size = np.abs(values).max()
    if slope == 0 or np.abs(slope * output + offset - values).max() > 1e-12 * size:
        return None
    return slope, offset


def supports_of(claim: Claim, witness: Witness, seed: int) -> tuple[dict[str, Support], set[str]]:
    """Where the entries of each array of a witness may lie.

    Arrays of a declared domain may lie anywhere, since their domain is an assumption. Of others
    that were drawn by one call, the law of the draw decides. An array of `search_over` without
    either stays in the hull of the entries that the sampler gives and of its own.

    Returns:
        Supports by name, and the names of the arrays that stay as they are.
    """
    domains = {domain.name for domain in claim.domains}
    laws = _tried(lambda: drawn_supports(claim.sample, seed)) or {}
    batch = _tried(lambda: claim.draw(seed, _COUNT)) or {}
    supports: dict[str, Support] = {}
    for name, value in witness.items():
        own = np.asarray(value)
        if own.dtype.kind not in "fiu":
            continue
        whole = own.dtype.kind in "iu"
        if name in domains:
            supports[name] = Support(whole=whole)
        elif name in laws and laws[name].contains(own):
            supports[name] = laws[name]
        elif name in claim.search_over and name in batch:
            entries = np.concatenate([np.asarray(batch[name]).ravel(), own.ravel()])
            if entries.size:
                integral = bool(np.all(entries == np.round(entries)))
                supports[name] = Support(float(entries.min()), float(entries.max()), integral)
    return supports, set(witness) - set(supports)


def _tried(compute: Callable[[], Any]) -> Any:
    """A value, or None where the sampler of a stored witness takes no such call."""
    try:
        return compute()
    except (TypeError, ValueError, ArithmeticError, RuntimeError, KeyError, AttributeError):
        return None
