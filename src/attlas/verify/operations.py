"""How many operations a program makes, counted in its equations: what it costs by no clock."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from attlas.claims.claim import Claim
from attlas.verify.evidence import Batch, Program

_EQUATION = 300.0
"""Operations that an equation counts as, beside those on its entries: small arrays cost no less."""
_PASSES = 1000.0
"""Passes of a loop whose number depends on its data."""
_DECOMPOSITIONS = ("eig", "eigh", "svd", "qr", "geqrf", "lu", "cholesky", "schur", "hessenberg")
_SWEEPS = 10.0
"""Operations of a decomposition on each entry of a matrix, beside its number of rows."""
_STATEMENT = 3e4
"""Operations that one step of plain NumPy counts as: some statements of Python."""


def operations(claim: Claim, program: Program, batch: Batch) -> float:
    """The estimated number of operations of a program on a batch, with all steps of its scans.

    A function in plain NumPy, which has no equations, counts as one that makes a step for each unit
    of its largest scale.

    Args:
        claim: the claim whose program it is.
        program: the compiled program, see `attlas.verify.evidence.compile_program`.
        batch: instances with a leading axis.

    Examples:
        >>> from attlas.verify.evidence import compile_program
        >>> from attlas.verify.registry import one_claim
        >>> claim = one_claim("julistiono2024optimizing/lemma-12")
        >>> batch = claim.draw(0, 8)
        >>> operations(claim, compile_program(claim), batch) > 1e3
        True
    """
    if claim.backend == "numpy":
        scales = [float(np.max(values)) for values in claim.declared.values()]
        count = len(next(iter(batch.values())))
        return _STATEMENT * count * max(scales, default=1.0) * (1 + len(claim.controls))
    traced = program.trace  # of a function that JAX compiles
    return counted_operations(traced(dict(batch)).jaxpr.jaxpr)


def counted_operations(body: Any) -> float:
    """The operations of the equations of a jaxpr.

    Examples:
        >>> import jax
        >>> def descend(x):
        ...     return jax.lax.scan(lambda w, _: (w - w / 2, None), x, None, length=1000)[0]
        >>> steps = counted_operations(jax.make_jaxpr(descend)(1.0).jaxpr)
        >>> 1000 * 300 < steps < 1000 * 1000
        True
    """
    return sum(_of_equation(equation) for equation in body.eqns)


def _of_equation(equation: Any) -> float:
    name, parameters = equation.primitive.name, equation.params
    inner = [counted_operations(body) for body in _bodies(parameters)]
    if name == "scan":
        return parameters["length"] * sum(inner)
    if name == "while":
        return _PASSES * sum(inner)
    if name == "cond":
        return max(inner, default=0.0)
    if inner:
        return sum(inner)
    shapes: list[tuple[int, ...]] = [
        getattr(v.aval, "shape", ()) for v in (*equation.invars, *equation.outvars)
    ]
    size = max((float(np.prod(shape)) for shape in shapes), default=0.0)
    if name == "dot_general":
        (contracted, _), _ = parameters["dimension_numbers"]
        out = float(np.prod(equation.outvars[0].aval.shape))
        size = 2 * out * float(np.prod([shapes[0][axis] for axis in contracted]))
    elif name == "triangular_solve":
        size *= shapes[0][-1]
    elif name in _DECOMPOSITIONS:
        size *= _SWEEPS * max(shapes[0][-2:], default=1)
    return _EQUATION + size


def _bodies(parameters: Any) -> Iterator[Any]:
    """The jaxprs among the parameters of an equation: of loops, of branches, of called programs."""
    for value in parameters.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            body = getattr(each, "jaxpr", each)
            if hasattr(body, "eqns"):
                yield body
