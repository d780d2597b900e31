"""The result of a solver: a value, a result code and a certificate.

No solver of attlas returns a bare array, and no unconverged number is shown as a number.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import numpy as np

from attlas.display.tables import arrays_table, described

Value = TypeVar("Value")


class Result(IntEnum):
    """How a computation ended; every code but `CONVERGED` carries advice.

    Examples:
        >>> Result.INFEASIBLE.advice
        'no point satisfies the constraints: see the Farkas certificate'
    """

    CONVERGED = 0
    INFEASIBLE = 1
    MAX_STEPS = 2
    NOT_FINITE = 3
    GRADIENT_BELOW_ROUNDING = 4
    PRECISION = 5

    @property
    def advice(self) -> str:
        """What a user should do about this code."""
        return _ADVICE[self]


_ADVICE = {
    Result.CONVERGED: "nothing to do",
    Result.INFEASIBLE: "no point satisfies the constraints: see the Farkas certificate",
    Result.MAX_STEPS: "the steps ran out before the tolerance was met: raise max_steps",
    Result.NOT_FINITE: "a number was infinite or NaN: check the scale of the data",
    Result.GRADIENT_BELOW_ROUNDING: "the gradient fell below its rounding error: stop here",
    Result.PRECISION: "the tolerance is finer than this dtype can certify: use float64",
}


class NotConverged(ArithmeticError):
    """The value of a `Solution` was read that is unconverged."""


def _outcome(result: Any) -> str:
    """The code and its advice, or how many problems of a batch have which code."""
    codes, counts = np.unique(np.asarray(result), return_counts=True)
    if np.ndim(result):
        return ", ".join(
            f"{count} {Result(int(code)).name}" for code, count in zip(codes, counts, strict=True)
        )
    code = Result(int(codes[0]))
    return code.name if code is Result.CONVERGED else f"{code.name}: {code.advice}"


class Solution(eqx.Module, Generic[Value]):
    r"""A solver's answer with its evidence.

    Attributes:
        value: the answer; meaningful only where `converged`.
        result: integer code of `Result`, one per problem of a batch.
        certificate: arrays by name that bound the error (duality gap, primal violation, residual,
            confidence interval) or prove infeasibility (Farkas multipliers).
        stats: counts and times by name that are not evidence.

    Examples:
        >>> found = Solution(1.5, np.asarray(0), {"gap": np.asarray(1e-12)})
        >>> found.unwrap()
        1.5
        >>> Solution(1.5, np.asarray(4)).unwrap()
        Traceback (most recent call last):
            ...
        attlas.core.solution.NotConverged: GRADIENT_BELOW_ROUNDING: the gradient fell below ...
    """

    value: Value
    result: Any
    certificate: Mapping[str, Any] = eqx.field(default_factory=dict)
    stats: Mapping[str, Any] = eqx.field(default_factory=dict)

    def __repr__(self) -> str:
        try:
            value = ", ".join(map(described, jax.tree.leaves(self.value)))
            evidence = (f"{name}={described(array)}" for name, array in self.certificate.items())
            answer = value if np.ndim(self.result) or np.all(self.converged) else "none"
            return f"Solution({_outcome(self.result)}; {answer}; {', '.join(evidence)})"
        except jax.errors.TracerArrayConversionError:
            # Inside a transformation there are no numbers to show.
            return eqx.tree_pformat(self)

    def _repr_html_(self) -> str:
        leaves = jax.tree.leaves(self.value)
        if np.ndim(self.result) == 0 and not np.all(self.converged):
            leaves = []
        value = {f"value {k}" if len(leaves) > 1 else "value": a for k, a in enumerate(leaves)}
        return arrays_table({**value, **self.certificate}, _outcome(self.result))

    @property
    def converged(self) -> Any:
        """Boolean array: which problems of the batch converged."""
        return self.result == Result.CONVERGED.value

    def unwrap(self) -> Value:
        """The value, if every problem converged.

        Raises:
            NotConverged: naming the first code that is not `CONVERGED`.
        """
        codes = np.atleast_1d(np.asarray(jax.device_get(self.result)))
        failed = codes[codes != Result.CONVERGED.value]
        if failed.size:
            code = Result(int(failed.flat[0]))
            raise NotConverged(f"{code.name}: {code.advice}")
        return self.value
