"""A simple instance that violates a claim, as a line of LaTeX and a line of Python."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attlas.core.errors import refuse_misfits, refuse_unreadable

LONGEST = 600
"""Characters up to which the line of Python is written."""


@dataclass(frozen=True, eq=False)
class ShrunkWitness:
    r"""An instance that violates a claim, made simpler where its sampler declares that it may be.

    Attributes:
        claim: its name, or of a claim of a user's file the place, by which it is found again.
        arrays: the instance.
        as_drawn: names of arrays that stay as they were, because their support is not declared.
        left: the left side at the entry that decides, in decimal.
        right: the right side there.
        reason: how the violation was confirmed in digits.
        evaluations: of the sides, that it took.

    Examples:
        >>> arrays = {"x": np.array([3.0, 0.0]), "y": np.zeros(16)}
        >>> sides = ("3.0", "2.0", "confirmed in 60 digits")
        >>> witness = ShrunkWitness("mine/total", arrays, (), *sides, 40)
        >>> print("\n".join(witness.lines()))
        shrunk     x = 3 e_{1} \in \mathbb{R}^{2},\; y = 0 \in \mathbb{R}^{16}
        sides      left 3.0, right 2.0; confirmed in 60 digits
        replay     attlas.replay("mine/total", {"x": [3.0, 0.0], "y": [0.0] * 16})
    """

    claim: str
    arrays: Mapping[str, np.ndarray]
    as_drawn: tuple[str, ...]
    left: str
    right: str
    reason: str
    evaluations: int

    @property
    def ratio(self) -> float | None:
        """The ratio of the left to the right side where both are positive."""
        left, right = float(self.left), float(self.right)
        return left / right if left > 0 and right > 0 else None

    def latex(self) -> str:
        """The arrays in one line of LaTeX; large ones by their size and largest entry."""
        return witness_latex(self.arrays)

    def python(self) -> str:
        """A call that evaluates the instance again; empty where it would be too long."""
        return witness_python(self.claim, self.arrays)

    def lines(self) -> list[str]:
        """The instance, its sides and how to evaluate it again, for a terminal."""
        sides = f"left {self.left}, right {self.right}"
        lines = [f"shrunk     {self.latex()}", f"sides      {sides}; {self.reason}"]
        if self.as_drawn:
            names = ", ".join(self.as_drawn)
            lines.append(
                f"as drawn   {names}: kept as it was, since no domain of the claim says which "
                "values are allowed"
            )
        python = self.python()
        return [*lines, f"replay     {python}"] if python else lines

    def document(self) -> dict[str, object]:
        """The witness as plain JSON."""
        return {
            "claim": self.claim,
            "latex": self.latex(),
            "python": self.python(),
            "left": self.left,
            "right": self.right,
            "reason": self.reason,
            "as_drawn": list(self.as_drawn),
            "evaluations": self.evaluations,
        }


@refuse_unreadable
def witness_latex(arrays: Mapping[str, np.ndarray]) -> str:
    r"""An instance in one line of LaTeX; large arrays by their size.

    Examples:
        >>> print(witness_latex({"p": np.array(0.25), "x": np.array([0.0, 2.0])}))
        p = 0.25,\; x = 2 e_{2} \in \mathbb{R}^{2}
    """
    items = sorted(arrays.items())
    return r",\; ".join(f"{_symbol(name)} = {_latex(np.asarray(v))}" for name, v in items)


@refuse_misfits
def witness_python(claim: str, arrays: Mapping[str, np.ndarray]) -> str:
    """A call that evaluates a claim on an instance; empty where it is longer than `LONGEST`.

    Args:
        claim: its name, or the place of a claim of a user's file.

    Examples:
        >>> witness_python("mine/total", {"x": np.array([3.0, 0.0])})
        'attlas.replay("mine/total", {"x": [3.0, 0.0]})'
        >>> witness_python("mine/total", {"x": np.arange(1000.0)})
        ''
    """
    items = sorted(arrays.items())
    text = ", ".join(f'"{name}": {_python(np.asarray(value))}' for name, value in items)
    line = f'attlas.replay("{claim}", {{{text}}})'
    return line if len(line) <= LONGEST else ""


def _symbol(name: str) -> str:
    if len(name) == 1:
        return name
    escaped = name.replace("_", r"\_")
    return rf"\mathrm{{{escaped}}}"


def _number(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return rf"\text{{{bool(value)}}}"
    number = float(value)
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    mantissa, exponent, power = repr(number).partition("e")
    return rf"{mantissa} \cdot 10^{{{int(power)}}}" if exponent else mantissa


def _latex(array: np.ndarray) -> str:
    if array.ndim == 0:
        return _number(array[()])
    size = r" \times ".join(map(str, array.shape))
    space = rf"\mathbb{{R}}^{{{size}}}"
    nonzero = np.flatnonzero(array)
    if not len(nonzero):
        return rf"0 \in {space}"
    square = array.ndim == 2 and array.shape[0] == array.shape[1]
    if square and np.array_equal(array, array[0, 0] * np.eye(len(array))) and len(array) > 1:
        return f"{_factor(array[0, 0])}I_{{{len(array)}}}"
    if np.all(array == array.flat[0]) and array.size > 3:
        return rf"{_factor(array.flat[0])}\mathbf{{1}} \in {space}"
    few = len(nonzero) == 1 or len(nonzero) <= 3 < array.size
    if array.ndim == 1 and few:
        terms = [f"{_factor(array[k])}e_{{{k + 1}}}" for k in nonzero]
        return " + ".join(terms).replace("+ -", "- ") + rf" \in {space}"
    if array.size > 64 or array.ndim > 2:
        return rf"({array.size} \text{{ entries}}) \in {space}"
    if array.ndim == 1:
        return f"({', '.join(map(_number, array))})"
    rows = [" & ".join(map(_number, row)) for row in array]
    lines = r" \\ ".join(rows)
    return rf"\begin{{pmatrix}} {lines} \end{{pmatrix}}"


def _factor(value: Any) -> str:
    text = _number(value)
    return {"1": "", "-1": "-"}.get(text, f"{text} ")


def _python(array: np.ndarray) -> str:
    if array.ndim == 0:
        return repr(array[()].item())
    if array.size and np.all(array == array.flat[0]) and array.shape[0] > 4:
        return f"[{_python(array[0])}] * {len(array)}"
    return f"[{', '.join(_python(np.asarray(row)) for row in array)}]"
