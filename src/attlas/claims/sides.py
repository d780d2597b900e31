"""The two sides of a claim, and the rule by which its kind decides them.

`attlas.verify` asks the rule and knows no kind by name. A rule turns the sides of a batch into a
verdict, lists the statements that are too strong by a factor, and says which parts of a check
concern it. Rounding is allowed for by gamma_t * magnitude + error, where gamma_t = t eps /
(1 - t eps) bounds t roundings (Higham, Accuracy and Stability, Lemma 3.1), `t` is the claim's count
of roundings and `error` the certified error of a solver. Nothing else is tolerated.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.claims.verdict import Verdict
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.names import call_by_name

LARGEST_SCALE = 2**53
"""Whole numbers up to this are exact in float64."""


class Sides(NamedTuple):
    r"""The two sides of one instance, arrays of one common shape.

    `identity`: left = right. `inequality`: left <= right. `existence`: left <= right says that
    the object was found. `limit`: left[k] -> right[k] along the last axis, whose scales grow
    geometrically. `rate`: left[k] = O(right[k]) likewise. `probability`: left in {0, 1} and
    P(left = 1) >= right. `expectation`: E left <= E right.

    Attributes:
        magnitude: size of the terms that were added up to reach the sides, for rounding; the
            larger side when None.
        error: certified absolute error of the sides (a solver's gap), beyond rounding.
        scales: the growing parameter of a limit or rate; the engine fills it in.
        range: length of an interval that contains left - right, for an expectation; the engine
            fills it in, as it does the two others.
        deviation: sub-Gaussian parameter of left - right.
        variance: bound on the variance of left - right.
    """

    left: Array
    right: Array
    magnitude: Array | None = None
    error: Array | float = 0.0
    scales: Array | None = None
    range: Array | None = None
    deviation: Array | None = None
    variance: Array | None = None


Batch = Mapping[str, Array | np.ndarray]
"""Arrays by name with a leading axis of instances, of JAX or of NumPy."""
Program = Callable[[Batch], tuple[Array | np.ndarray, tuple[Sides, ...]]]
"""From a batch to whether each assumption holds, shape (count, assumptions), and the sides of the
claim and of each control."""


@refuse_misfits
def complete(sides: Sides, xp: Any = jnp) -> Sides:
    """Fill in the magnitude and broadcast all arrays to one shape; `scales` stay as they are.

    Args:
        xp: `jax.numpy`, or `numpy` for a claim in plain NumPy.

    Examples:
        >>> complete(Sides(np.array([1.0, -3.0]), 2.0), np).magnitude.tolist()
        [2.0, 3.0]
    """
    left, right = (xp.asarray(side, dtype=float) for side in (sides.left, sides.right))
    shape = np.broadcast_shapes(left.shape, right.shape)
    left, right = xp.broadcast_to(left, shape), xp.broadcast_to(right, shape)
    largest = xp.maximum(xp.abs(left), xp.abs(right))
    magnitude = largest if sides.magnitude is None else xp.asarray(sides.magnitude)
    error = xp.asarray(sides.error, dtype=left.dtype)
    conditions = (sides.range, sides.deviation, sides.variance)
    return Sides(
        left,
        right,
        xp.broadcast_to(magnitude, shape),
        xp.broadcast_to(error, shape),
        None if sides.scales is None else xp.asarray(sides.scales),
        *(
            None if each is None else xp.broadcast_to(xp.asarray(each), shape)
            for each in conditions
        ),
    )


@refuse_misfits
def read_detail(detail: Any, instance: Mapping[str, Any], changes: Mapping[str, Any]) -> Any:
    """A detail that is a number, the name of an array, or a function of named arrays.

    Args:
        detail: a level, a range or scales, as the claim declares them.
        instance: arrays by name.
        changes: what a control changes, for a function.

    Raises:
        UserError: if it names no array, or is no number.

    Examples:
        >>> read_detail("n", {"n": 3}, {}), read_detail(lambda n: n + 1, {"n": 3}, {})
        (3, 4)
    """
    if callable(detail):
        return call_by_name(detail, instance, changes)
    if isinstance(detail, str):
        if detail not in instance:
            raise UserError(f"'{detail}' is no array of the instance: name one, or give a number")
        return instance[detail]
    if np.asarray(detail).dtype.kind not in "biuf":
        raise UserError(f"{detail!r:.40} is no number: give one, or the name of an array")
    return detail


@dataclass(frozen=True)
class Evidence:
    """The sides of a batch as NumPy arrays; the leading axis is the instance.

    Attributes:
        left: left sides, shape (count, ...); `right`, `magnitude` and `error` have the same shape.
        magnitude: size of the terms that were added up.
        error: certified absolute error.
        applicable: which instances satisfy every assumption, shape (count,).
        scales: growing parameter of limits and rates, or None.
        range: of expectations, same shape as the sides, or None; `deviation` and `variance` too.
        failed_assumption: text of the assumption that failed most often, "" if none failed.
        distinct: number of different applicable instances, in the arrays that the claim reads;
            None if they were not counted, and all are taken to differ.
    """

    left: np.ndarray
    right: np.ndarray
    magnitude: np.ndarray
    error: np.ndarray
    applicable: np.ndarray
    scales: np.ndarray | None = None
    range: np.ndarray | None = None
    deviation: np.ndarray | None = None
    variance: np.ndarray | None = None
    failed_assumption: str = ""
    distinct: int | None = None

    def select(self, index: int) -> "Evidence":
        """The evidence of one instance, as a batch of one."""
        arrays = {part.name: getattr(self, part.name) for part in fields(self)}
        row = {
            name: value[index : index + 1]
            for name, value in arrays.items()
            if isinstance(value, np.ndarray)
        }
        return replace(self, **row, distinct=None)

    def component(self, entry: int, scaled: bool) -> "Evidence":
        """The evidence of one component of the sides; with scales, a component is a row."""
        names = [*Sides._fields]
        if not scaled:
            names.remove("scales")
        tail = self.left.shape[-1:] if scaled else ()
        arrays = {}
        for name in names:
            if (array := getattr(self, name)) is not None:
                full = np.broadcast_to(array, self.left.shape)
                arrays[name] = full.reshape(len(self.left), -1, *tail)[:, entry]
        return replace(self, **arrays)


def flat(array: np.ndarray) -> np.ndarray:
    """An array with a leading axis of instances as a matrix: a row is an instance.

    Examples:
        >>> flat(np.zeros((4, 2, 3))).shape, flat(np.zeros(4)).shape
        ((4, 6), (4, 1))
    """
    return array.reshape(len(array), -1)


class Rule(ABC):
    """One kind of claim: its rule, its stronger variants, its limits and its words.

    Attributes:
        noun: the kind with its article, as in "decided as an identity".
        plural: as in "search_over is for inequalities".
        details: arguments of a claim's decorator that no other kind has, the usual one first.
        equality: whether the sides must be equal, entry by entry; computer algebra may prove it.
        scaled: whether the last axis of the sides runs over growing scales.
        trials: whether each instance is an independent random trial.
        searchable: whether an attack looks for a counterexample, and a ratio can be attained.
        single_instance: whether one stored instance supports the statement.
        coarsest: the largest detection limit that a component may have, None where any may do.
    """

    noun: ClassVar[str]
    plural: ClassVar[str]
    details: ClassVar[tuple[str, ...]] = ()
    equality: ClassVar[bool] = False
    scaled: ClassVar[bool] = False
    trials: ClassVar[bool] = False
    searchable: ClassVar[bool] = False
    single_instance: ClassVar[bool] = False
    coarsest: ClassVar[float | None] = None

    def sides(self, value: Any) -> Sides:
        """The sides of one instance, from what the claim's function returns for it."""
        return value if isinstance(value, Sides) else Sides(*value)

    def tolerance(self, evidence: Evidence, roundings: int) -> np.ndarray:
        """The absolute error that rounding and certificates allow, of the shape of the sides.

        Raises:
            UserError: if so many roundings bound no error.
        """
        eps = float(np.finfo(evidence.left.dtype).eps)
        if not 0 <= roundings < 1 / eps:
            raise UserError(f"roundings must lie between 0 and 1 / eps = {1 / eps:.3g}: give fewer")
        step = roundings * eps
        return step / (1 - step) * evidence.magnitude + evidence.error

    @abstractmethod
    def decide(self, evidence: Evidence, roundings: int, alpha: float) -> Verdict:
        """The verdict on a batch of finite sides with at least one applicable instance.

        Args:
            roundings: number of roundings on the longest path to a side.
            alpha: error probability granted to a statistical verdict.
        """

    @abstractmethod
    def stronger(self, evidence: Evidence, factor: float) -> Iterator[Evidence]:
        """The evidence of statements that are too strong by a factor; below 1, too weak."""

    def weaker(self, evidence: Evidence, factor: float) -> Evidence:
        """The evidence of a statement that is too weak by a factor above 1."""
        return next(self.stronger(evidence, 1 / factor))

    def persistent(self) -> "Rule":
        """The rule for scales that a check doubles; the same one for a kind without scales."""
        return self

    def violating(self, evidence: Evidence, roundings: int) -> np.ndarray:
        """Which instances violate the statement by themselves, shape (count,); none by default."""
        del roundings
        return np.zeros(len(evidence.left), dtype=bool)


@dataclass(frozen=True)
class Doubling:
    """The scales `first`, 2 `first`, 4 `first`, ..., which a check doubles until it decides.

    The function of the claim, and the sampler if it has a keyword-only parameter of that name, read
    them as an array of NumPy: its numbers are known when the function is compiled, so that the last
    one may be the length of a `jax.lax.scan`. The function returns one entry for each.

    Attributes:
        name: of the parameter that reads the scales.
        first: the first scale, a positive whole number.
        count: number of scales with which a check begins, if its error probability needs no more.

    Raises:
        UserError: if there is no positive whole scale to begin with.

    Examples:
        >>> import attlas as at
        >>> Doubling("t", 16, count=4).values.tolist()
        [16, 32, 64, 128]
        >>> @at.rate(
        ...     scales=Doubling("t", 16),
        ...     sample=lambda rng, count: {"x": rng.uniform(1, 2, size=count)},
        ...     controls=[at.Control("1/t^2", power=2)],
        ... )
        ... def harmonic(x, t, *, power=1):
        ...     r"$$x / (t + 1) = O(1 / t)$$"
        ...     return x / (t + 1.0), t ** -float(power)
        >>> at.check(harmonic).verdict.outcome.value
        'SUPPORTED'
    """

    name: str
    first: int
    count: int = 8

    def __post_init__(self):
        whole = all(isinstance(n, int) and n > 0 for n in (self.first, self.count))
        if not isinstance(self.name, str) or not whole or self.values[-1] > LARGEST_SCALE:
            raise UserError(
                f"Doubling({self.name!r}, {self.first!r}, count={self.count!r}): give the name of "
                "a parameter, and positive whole numbers such as Doubling('t', 16)"
            )

    @property
    def values(self) -> np.ndarray:
        """The scales, shape (count,)."""
        return np.array([self.first * 2**k for k in range(self.count)])

    @property
    def named(self) -> dict[str, np.ndarray]:
        """The scales under the name of the parameter that reads them."""
        return {self.name: self.values}

    def declare(self, function: Any) -> None:
        """Let the signature of a function name the scales in place of its other keywords."""
        signature = inspect.signature(function)
        listed = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        keyword = inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY)
        function.__signature__ = signature.replace(parameters=[*listed, keyword])

    def extension(self, doublings: int) -> "Doubling | None":
        """The same scales and so many doublings more; None beyond 2^53."""
        if self.first << (self.count + doublings - 1) > LARGEST_SCALE:
            return None
        return replace(self, count=self.count + doublings)
