r"""Sides that rotations of all their vectors leave as they are, and the vectors up to one rotation.

The program of left - right runs on vectors of symbols and on the same vectors after a reflection
and rotations by free angles in all planes, with every function other than +, -, *, / unknown: equal
arguments give equal values, and that is all. If both results agree at a random point, left - right
is the same for all orthogonal changes of the axes. Then each vector, in the order of their names,
may be taken to lie in the span of the first axes: it has a positive number at its own place and
zeros behind it, as the rows of a triangle.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Unconfirmed
from attlas.verify.proofs.elements import Atom, Field, NotProvedError
from attlas.verify.proofs.exact_rules import Exact
from attlas.verify.proofs.functions import Functions
from attlas.verify.proofs.nodes import Node
from attlas.verify.proofs.points import Point, PointError
from attlas.verify.proofs.polynomials import Number

_MOST_AXES = 8
_MOST_NUMBERS = 256
"""Entries of all arrays."""
_OPERATIONS = 10**5
"""Operations on symbols that an answer may take."""


class _Unknown(Functions):
    """Functions of which only that equal arguments have equal values is known."""

    def _named(self, name: str, *values: int, positive: bool = False) -> Node:
        text = ", ".join(f"{value:x}" for value in values)
        atom = Atom(f"{name}({text})", positive, "large")
        return Node.of(self.field.symbol(atom))

    def power(self, a: Node, exponent: Number) -> Node:
        """A power; one with a fractional exponent is unknown."""
        if Fraction(exponent).denominator == 1:
            return a.to_the(int(exponent))
        return self._named(f"power {exponent}", a.value)

    def real_power(self, a: Node, exponent: Node) -> Node:
        """An unknown power, unless the exponent is a number."""
        if exponent.number is not None:
            return self.power(a, exponent.number)
        return self._named("power", a.value, exponent.value)

    def exp(self, a: Any) -> Node:
        """An unknown exponential."""
        return self._named("exp", self._read(a).value)

    def log(self, a: Node) -> Node:
        """An unknown logarithm."""
        return self._named("log", a.value)

    def wave(self, a: Node) -> tuple[Node, Node]:
        """An unknown cosine and sine."""
        return self._named("cos", a.value), self._named("sin", a.value)

    def absolute(self, a: Any) -> Node:
        """An unknown even function."""
        return self._named("abs", self._canonical(self._read(a))[0].value)

    def extreme(self, kind: str, a: Any, b: Any) -> Node:
        """An unknown function of two numbers in any order."""
        return self._named(kind, *sorted((self._read(a).value, self._read(b).value)))

    def sign(self, a: Node, strict: bool = True) -> int:
        """The sign of a number."""
        del strict
        if a.number is None:
            raise NotProvedError("a comparison may depend on the axes")
        return (a.number > 0) - (a.number < 0)

    def is_zero(self, a: Any) -> bool:
        """Whether a number is zero."""
        return self.sign(self._read(a)) == 0

    def _read(self, a: Any) -> Node:
        if isinstance(a, float):
            raise NotProvedError("an infinity may depend on the axes")
        return a


def is_rotation_invariant(program: Any, inputs: Mapping[str, Any], vectors: list[str]) -> bool:
    """Whether a program has the same outputs after any orthogonal change of the last axis.

    Args:
        inputs: arrays by name, in whose order the program takes them.
        vectors: names of those that are changed, with equal lengths of their last axes.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> x = {"x": np.ones(3), "y": np.ones(3)}
        >>> angle = lambda v: [v["x"] @ v["y"] / jnp.linalg.norm(v["x"])]
        >>> is_rotation_invariant(jax.make_jaxpr(angle)(x), x, ["x", "y"])
        True
        >>> largest = lambda v: [jnp.max(v["x"])]
        >>> is_rotation_invariant(jax.make_jaxpr(largest)(x), x, ["x", "y"])
        False
    """
    if sum(np.size(value) for value in inputs.values()) > _MOST_NUMBERS:
        return False
    field = Field(Point("rotations"), left=_OPERATIONS)
    exact = Exact(_Unknown(field))
    symbols = {
        name: _symbols(field, name, np.shape(value))
        if np.asarray(value).dtype.kind == "f"
        else value
        for name, value in sorted(inputs.items())
    }
    change = _orthogonal(exact, np.shape(inputs[vectors[0]])[-1])
    changed = {name: symbols[name].dot(change) for name in vectors}
    results = []
    for arrays in (symbols, symbols | changed):
        try:
            outputs = evaluate(exact, program, list(arrays.values()))
        except (Unconfirmed, NotProvedError, PointError):
            return False
        results.append([node.value for array in outputs for node in exact.exact(array).ravel()])
    return results[0] == results[1]


def _symbols(field: Field, name: str, shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        array[place] = Node.of(field.symbol(Atom(f"{name}{list(place)}", False)))
    return array


def _orthogonal(exact: Exact, n: int) -> np.ndarray:
    """Rotations by free angles in each plane of two axes, and a reflection."""
    field = exact.field
    change = exact.exact(np.diag([-1.0] + [1.0] * (n - 1)))
    for i in range(n):
        for j in range(i):
            half = Node.of(field.symbol(Atom(f"angle {i} {j}", False)))
            below = half * half + 1
            cosine, sine = (half * half * -1 + 1) / below, half * 2 / below
            turn = exact.exact(np.eye(n))
            turn[i, i], turn[j, j], turn[i, j], turn[j, i] = cosine, cosine, sine, -sine
            change = change.dot(turn)
    return change


def groups(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[list[str]]:
    """Names of arrays whose last axes have one length, in the order in which they are turned.

    Examples:
        >>> list(groups({"W": (4, 3), "x": (3,), "s": ()}))
        [['x', 'W']]
    """
    lengths = sorted({shape[-1] for shape in shapes.values() if shape})
    for length in lengths:
        names = [name for name, shape in shapes.items() if shape and shape[-1] == length]
        if 1 < length <= _MOST_AXES:
            yield sorted(names, key=lambda name: (len(shapes[name]), name))


def turned(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Vectors after the change of axes that makes a triangle of them, with its positive diagonal.

    Args:
        arrays: vectors along the last axes, in the order of their rows.

    Examples:
        >>> {name: v.round(12).tolist() for name, v in turned({"x": np.array([3.0, 4.0])}).items()}
        {'x': [5.0, 0.0]}
    """
    rows = np.concatenate([array.reshape(-1, array.shape[-1]) for array in arrays.values()])
    triangle = np.linalg.qr(rows.T)[1].T
    signs = np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
    triangle = np.tril(triangle * signs)
    full = np.zeros(rows.shape)
    full[:, : triangle.shape[1]] = triangle
    result, begin = {}, 0
    for name, array in arrays.items():
        count = array.size // array.shape[-1]
        result[name] = full[begin : begin + count].reshape(array.shape)
        begin += count
    return result
