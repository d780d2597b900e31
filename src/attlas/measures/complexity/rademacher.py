r"""Empirical Rademacher complexity of a class of functions, from below.

    Rad(F, S) = E_sigma sup_{f in F} (1/m) sum_i sigma_i f(x_i)

of section 2.3 of trauger2023sequence. The expectation is an average over random sign vectors. For a
nonlinear class the supremum has no formula: projected ascent from many starts finds a function of
the class, hence a value of at most the supremum, and the estimate is a LOWER bound on Rad.
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas._jax.factorising import one_at_a_time
from attlas._jax.loop_jit import loop_jit
from attlas.core.argument_validation import validate_arguments
from attlas.core.arrays import precision_of, read_array
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.ranges import require_at_least
from attlas.core.trees import as_tree, require_finite_tree
from attlas.measures.statistics.student_interval import student_interval


@runtime_checkable
class FunctionClass(Protocol):
    """A class of functions on the parameters of a norm ball.

    Parameters are any pytree of arrays. Inputs are a pytree whose leaves share the leading axis m.
    """

    def __call__(self, parameters: Any, inputs: Any) -> Float[Array, " m"]:
        """Values of one function on the m inputs."""
        ...

    def draw(self, draws: np.random.Generator, shape: tuple[int, ...], inputs: Any) -> Any:
        """Random parameters, one set for each index of the shape."""
        ...

    def project(self, parameters: Any) -> Any:
        """The nearest parameters of the class."""
        ...

    def ascend(self, parameters: Any, gradient: Any, step: Float[Array, ""], even: Array) -> Any:
        """The parameters moved along the normalised gradient, not yet projected."""
        ...

    def largest(self, inputs: Any) -> float:
        """An upper bound on |f| on the inputs; infinite if none is known."""
        ...


class Rademacher(NamedTuple):
    """An estimate of an empirical Rademacher complexity.

    Attributes:
        value: mean over sign vectors of the best value found.
        low: lower limit of Student's interval of that mean over sign vectors.
        high: upper limit, for the mean of the values found; it bounds the complexity itself only if
            the suprema are exact.
        certain: lower confidence limit of the complexity without any assumption on the spread:
            McDiarmid's inequality, as one sign moves one supremum by at most 2 max|f| / m.
        suprema: the best value found for each sign vector.
    """

    value: float
    low: float
    high: float
    certain: float
    suprema: np.ndarray


@refuse_misfits
def rademacher_complexity(
    key: PRNGKeyArray,
    function_class: FunctionClass,
    inputs: Any,
    *,
    sign_vectors: int = 64,
    starts: int = 32,
    steps: int = 100,
    step: float = 1.0,
    chunk: int = 2,
    confidence: float = 0.95,
    repeats: int = 1,
) -> Rademacher:
    r"""A lower estimate of the empirical Rademacher complexity, by projected ascent.

    One program runs all sign vectors and starts, `chunk` sign vectors at a time. Step t moves by
    step (1 - t / steps) times the ball's radius; the best value on the path counts. There are many
    local maxima: compare two numbers of starts before trusting a trend.

    Args:
        key: random key of signs and starts; the signs do not depend on the other arguments.
        function_class: the class, an `equinox.Module` or another pytree.
        inputs: a pytree of arrays with the leading axis m; a list of numbers is one array.
        sign_vectors: number of drawn sign vectors, at least two.
        starts: starting points for each sign vector.
        step: first step in radii.
        chunk: sign vectors computed at a time; chunks larger than the cache are slower (8: 1.5
            times).
        confidence: level of the interval (two sides) and of the certain limit (one side).
        repeats: number of copies of each example in the sample, at no cost: its signs add up.

    Raises:
        UserError: if a number is too small, the confidence outside (0, 1), or the sample invalid.

    Examples:
        >>> from trauger2023sequence.library.measures.norm_ball_classes import LinearClass
        >>> linear = LinearClass("frobenius", jnp.array(2.0))
        >>> x = jnp.zeros((4, 1, 3)).at[:, 0, 0].set(jnp.array([1.0, 0.0, 0.0, 0.0]))
        >>> found = rademacher_complexity(jax.random.key(0), linear, x, sign_vectors=2)
        >>> print(f"{found.value:.3f}")
        0.500
    """
    smallest = min(sign_vectors - 1, starts, chunk, steps + 1, repeats)
    if smallest < 1 or not 0 < confidence < 1:
        raise UserError("choose two sign vectors, one start, chunk, repeat, confidence in (0, 1)")
    inputs = _finite(as_tree(inputs, "inputs"), function_class)
    with precision_of(inputs):
        inputs = jax.tree.map(_as_array, inputs)
        m = _sample_size(inputs)
        signs = draw_signs(key, sign_vectors, m, repeats) / repeats
        shape, draws = (sign_vectors, starts), generator(jax.random.fold_in(key, 1))
        lengths = step * (1 - np.arange(steps + 1) / max(steps, 1))
        dtype = jax.tree.leaves(inputs)[0].dtype
        sigma, lengths = jnp.asarray(signs, dtype), jnp.asarray(lengths, dtype)
        how = (draws, shape, min(chunk, sign_vectors))
        suprema, largest = _search(function_class, inputs, sigma, lengths, how)
        return rademacher_estimate(suprema, repeats * m, largest, confidence)


def _finite(inputs: Any, function_class: Any) -> Any:
    require_finite_tree(inputs, "inputs")
    require_finite_tree(function_class, "function_class")
    return inputs


def _search(function_class: FunctionClass, inputs: Any, sigma: Array, lengths: Array, how: Any):
    draws, shape, width = how
    try:
        first = function_class.draw(draws, shape, inputs)
        suprema = _suprema(function_class, inputs, sigma, first, lengths, width)
        return suprema, function_class.largest(inputs)
    except (TypeError, ValueError, OverflowError) as error:
        raise _not_taken(inputs, error) from error


def _not_taken(inputs: Any, error: Exception) -> UserError:
    described = ", ".join(f"{a.dtype}{list(a.shape)}" for a in jax.tree.leaves(inputs))
    reason = str(error).partition("\n")[0]
    return UserError(
        f"inputs are {described}, which this class of functions does not take ({reason}): "
        "give samples and parameters as it reads them"
    )


def _as_array(leaf: Any) -> Array:
    is_array = isinstance(leaf, jax.Array | np.ndarray)
    return jnp.asarray(leaf if is_array else read_array(leaf, "inputs"))


def _sample_size(inputs: Any) -> int:
    """M, the leading axis of all arrays of a sample."""
    leaves = jax.tree.leaves(inputs)
    sizes = {leaf.shape[0] if leaf.ndim else 0 for leaf in leaves}
    if len(sizes) != 1 or 0 in sizes or min(leaf.size for leaf in leaves) < 1:
        raise UserError(
            f"leading axes {sorted(sizes)} of the sample: give m examples in each array"
        )
    return sizes.pop()


@validate_arguments
def draw_signs(key: PRNGKeyArray, sign_vectors: int, m: int, repeats: int = 1) -> np.ndarray:
    """Sign vectors, one per row; equal keys give equal signs for every class.

    Returns:
        Entries +1 and -1, [sign_vectors, m], or the sums of `repeats` of them.

    Examples:
        >>> draw_signs(jax.random.key(0), 2, 3).shape
        (2, 3)
    """
    require_at_least(1, sign_vectors=sign_vectors, m=m, repeats=repeats)
    if repeats > 1:
        return 2.0 * generator(key).binomial(repeats, 0.5, (sign_vectors, m)) - repeats
    return generator(key).choice([-1.0, 1.0], (sign_vectors, m))


@validate_arguments
def rademacher_estimate(
    suprema: Float[Array | np.ndarray, " s"], m: int, largest: float, confidence: float = 0.95
) -> Rademacher:
    r"""Mean and limits from one supremum, or a value below it, for each sign vector.

    Args:
        suprema: values for s >= 2 independent sign vectors, already divided by m.
        largest: bound on |f| on the sample.

    Examples:
        >>> found = rademacher_estimate(np.array([0.4, 0.6]), 100, 1.0)
        >>> print(f"{found.value:.3f} {found.certain:.3f}")
        0.500 0.327
    """
    require_at_least(1, m=m)
    values = np.asarray(suprema, float)
    count, mean = values.size, float(values.mean())
    half_width = student_interval(values, confidence).half_width
    # s m signs, each moving the mean of the true suprema by at most 2 largest / (s m).
    slack = largest * np.sqrt(2 * np.log(1 / (1 - confidence)) / (count * m))
    return Rademacher(
        mean, mean - float(half_width), mean + float(half_width), mean - float(slack), values
    )


@one_at_a_time
@loop_jit(jit=eqx.filter_jit)
def _suprema(
    function_class: FunctionClass,
    inputs: Any,
    signs: Float[Array, "s m"],
    first: Any,
    lengths: Float[Array, " steps"],
    chunk: int,
) -> Float[Array, " s"]:
    """The best value for each sign vector; the projection on a ball may factorise."""
    m = signs.shape[1]

    def ascent(sign: Array, start: Any) -> Array:
        def objective(parameters: Any) -> Array:
            return sign @ function_class(parameters, inputs) / m

        def climb(carry: tuple[Any, Array], schedule: tuple[Array, Array]):
            parameters, best = carry
            length, even = schedule
            value, gradient = jax.value_and_grad(objective)(parameters)
            moved = function_class.ascend(parameters, gradient, length, even)
            return (function_class.project(moved), jnp.maximum(best, value)), None

        begin = function_class.project(start)
        even = jnp.arange(lengths.shape[0]) % 2 == 0
        least = jnp.asarray(-jnp.inf, sign.dtype)
        # The last length is 0: the last value counts without a further step.
        (_, best), _ = jax.lax.scan(climb, (begin, least), (lengths, even))
        return best

    def of_sign(pair: tuple[Array, Any]) -> Array:
        sign, starts = pair
        return jnp.max(jax.vmap(ascent, (None, 0))(sign, starts))

    return jax.lax.map(of_sign, (signs, first), batch_size=chunk)
