"""The random numbers of a sampler that draws by a JAX key, in the program that JAX traces of it.

Each draw of the program is given from outside where it can be: normal numbers as they are, integers
between two numbers as uniform numbers in as many steps, gamma numbers (thus Dirichlet and beta
ones) by their ranks, and all others by the uniform numbers behind their random bits. Draws inside
loops and branches, and bits that no float can give back, stay those of the key.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.sampling import Sampler

_EXACT = 53
"""Bits that a float holds."""
_END = 1e-12
"""Smallest distance of a uniform number from the ends of its interval."""

_Recorded = tuple[str, Any]
"""The law of a draw, and its numbers."""


class KeyDraws:
    """What a sampler draws by a key, and its instances at other numbers.

    Attributes:
        numbers: normal numbers, or uniform ones in (0, 1), by their place in the program; none
            where the sampler leaves JAX.

    Examples:
        >>> draws = KeyDraws(lambda key, count: {"x": jax.random.normal(key, (count, 2))}, 0, 3)
        >>> moved = draws.instances({place: z + 1 for place, z in draws.numbers.items()})
        >>> bool(np.allclose(moved["x"], draws.numbers[0] + 1)), draws.law(0)
        (True, 'normal')
    """

    def __init__(self, sample: Sampler, seed: int, count: int):
        self._key = jax.random.key(seed)
        self._programs = opened(sample, count)
        self.numbers: dict[int, np.ndarray] = {}
        if self._programs is not None:
            with jax.enable_x64(True):
                recorded = self._programs.record(self._key)
            self.numbers = {place: np.asarray(value) for place, value in enumerate(recorded)}

    def law(self, place: int) -> str:
        """The law of the numbers at a place: "normal", "uniform" or "steps"."""
        return "" if self._programs is None else self._programs.laws[place]

    def instances(self, numbers: Mapping[int, np.ndarray]) -> Mapping[str, Any]:
        """The instances at some numbers; those of all other draws are the key's."""
        if self._programs is None:
            return {}
        with jax.enable_x64(True):
            return self._programs.again(self._key, dict(numbers))


class Opened(NamedTuple):
    """The programs of a sampler: from a key its numbers, and from both its instances."""

    record: Callable[..., list[Any]]
    again: Callable[..., Mapping[str, Any]]
    laws: list[str]


@lru_cache(maxsize=8)
def opened(sample: Sampler, count: int) -> Opened | None:
    """The programs of a sampler; None where it leaves JAX for NumPy, a Python number or a branch.

    Examples:
        >>> opened(lambda key, count: {"x": np.asarray(jax.random.normal(key))}, 3) is None
        True
    """
    try:
        with jax.enable_x64(True):
            program, shapes = jax.make_jaxpr(
                lambda key: dict(sample(key, count)), return_shape=True
            )(jax.random.key(0))
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        return None  # `attlas.verify.searchable.why_not_moved` says so
    laws: list[str] = []

    def record(key: Any) -> list[Any]:
        draws = _Draws()
        _run(program.jaxpr, program.consts, [key], draws)
        laws[:] = [law for law, _ in draws.recorded]
        return [numbers for _, numbers in draws.recorded]

    def again(key: Any, numbers: Mapping[int, Any]) -> Mapping[str, Any]:
        values = _run(program.jaxpr, program.consts, [key], _Draws(numbers))
        return jax.tree.unflatten(jax.tree.structure(shapes), values)

    return Opened(
        jax.jit(record, compiler_options=CHEAP_COMPILATION),
        jax.jit(again, compiler_options=CHEAP_COMPILATION),
        laws,
    )


class _Draws:
    """Draws in the order of a program: recorded, or given."""

    def __init__(self, numbers: Mapping[int, Any] | None = None):
        self.recorded: list[_Recorded] = []
        self._numbers = {} if numbers is None else numbers
        self._place = 0

    def value(self, fresh: Any, law: str, code: Callable[[Any], Any], read: Callable) -> Any:
        """What the next draw is: `fresh` with its numbers recorded, or what given ones stand for.

        Args:
            code: the numbers behind a draw.
            read: the draw at some numbers.
        """
        place, self._place = self._place, self._place + 1
        if place in self._numbers:
            return read(self._numbers[place]).astype(fresh.dtype)
        numbers = code(fresh).astype(float)
        inside = numbers if law == "normal" else jnp.clip(numbers, _END, 1 - _END)
        self.recorded.append((law, inside))
        return fresh


def _run(jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Any], draws: _Draws) -> list[Any]:
    """The outputs of a program, with its draws replaced where they are given."""
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, inputs, strict=True))
    for equation in jaxpr.eqns:
        operands = [v.val if isinstance(v, Literal) else values[v] for v in equation.invars]
        values.update(zip(equation.outvars, _step(jaxpr, equation, operands, draws), strict=True))
    return [v.val if isinstance(v, Literal) else values[v] for v in jaxpr.outvars]


def _step(jaxpr: Jaxpr, equation: JaxprEqn, operands: list[Any], draws: _Draws) -> Sequence[Any]:
    name, inner = equation.primitive.name, equation.params.get("jaxpr")
    if name == "random_bits":
        return [_bits(jaxpr, equation, _bound(equation, operands)[0], draws)]
    if name == "random_gamma":
        return [_gamma(equation, operands, draws)]
    if name in ("jit", "pjit") and isinstance(inner, ClosedJaxpr):
        called = equation.params.get("name")
        if called == "_normal_real":
            fresh = _bound(equation, operands)[0]
            return [draws.value(fresh, "normal", lambda z: z, lambda z: z)]
        if called == "_randint" and all(np.ndim(end) == 0 for end in operands[1:]):
            return [_integers(operands, _bound(equation, operands)[0], draws)]
        if called != "_randint":
            return _run(inner.jaxpr, inner.consts, operands, draws)
    return _bound(equation, operands)


def _bound(equation: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
    details = equation.primitive.get_bind_params(equation.params)
    functions, settings = details if isinstance(details, tuple) else ((), details)
    outputs = equation.primitive.bind(*functions, *operands, **settings)
    return outputs if equation.primitive.multiple_results else [outputs]


def _bits(jaxpr: Jaxpr, equation: JaxprEqn, fresh: Any, draws: _Draws) -> Any:
    width = equation.params["bit_width"]
    bits = equation.outvars[0]
    uses = [use for use in jaxpr.eqns if bits in use.invars]
    shifts = [use.invars[1] for use in uses if use.primitive.name == "shift_right_logical"]
    least = min((int(s.val) for s in shifts if isinstance(s, Literal)), default=0)
    if len(shifts) < len(uses) or bits in jaxpr.outvars:
        least = 0
    if width - least > _EXACT:
        return fresh
    steps = 2.0**width
    return draws.value(
        fresh,
        "uniform",
        lambda n: (n.astype(float) + 0.5) / steps,
        lambda u: jnp.minimum(jnp.floor(u * steps), np.nextafter(steps, 0)),
    )


def _integers(operands: list[Any], fresh: Any, draws: _Draws) -> Any:
    low, high = (jnp.asarray(end).astype(float) for end in operands[1:])
    span = jnp.maximum(high - low, 1.0)
    return draws.value(
        fresh,
        "steps",
        lambda integers: (integers.astype(float) - low + 0.5) / span,
        lambda u: low + jnp.minimum(jnp.floor(u * span), span - 1),
    )


def _gamma(equation: JaxprEqn, operands: list[Any], draws: _Draws) -> Any:
    is_log, shape = equation.params["log_space"], operands[1]
    fresh = _bound(equation, operands)[0]

    def read(ranks: Any) -> Any:
        quantiles = jax.pure_callback(
            _quantiles, jax.ShapeDtypeStruct(fresh.shape, float), shape, ranks
        )
        return jnp.log(quantiles) if is_log else quantiles

    def code(numbers: Any) -> Any:
        return jax.scipy.special.gammainc(shape, jnp.exp(numbers) if is_log else numbers)

    return draws.value(fresh, "uniform", code, read)


def _quantiles(shape: Any, ranks: Any) -> np.ndarray:
    from scipy import special

    quantiles = special.gammaincinv(np.asarray(shape, dtype=float), np.asarray(ranks))
    return np.maximum(quantiles, np.finfo(float).tiny)
