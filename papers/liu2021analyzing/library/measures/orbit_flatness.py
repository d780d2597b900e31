r"""Flatness along and across the orbit T_a (W1, w2) = (a W1, w2 / a).

Theorem 5 of liu2021analyzing. A positively homogeneous activation makes the risk constant on
the orbit. Its Hessian and its volumes are not: diag(1/a, a) H diag(1/a, a) has eigenvalues
without bound, and the set where the risk is at most L + epsilon has images of itself of any
volume a^(P1 - P2) along the orbit. Norm balls for the two layers leave a piece of the orbit,
and both stay bounded on it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.core.ranges import is_finite
from attlas.core.solution import Solution
from attlas.measures.curvature.exact_spectrum import hessian_spectra

Risk = Callable[..., Array]
Balls = tuple[float, float]

# A ray is looked at on a geometric grid of this many radii, half an octave apart, and the first
# interval that leaves the set is halved so often; a set that is left and entered again within
# half an octave cannot be distinguished from one that is not left.
_RADII, _HALVINGS = 64, 50


class FlatVolume(NamedTuple):
    """Volume of the part of an epsilon-flat set that is seen from its centre.

    Attributes:
        log_volume: logarithm; a lower bound of the connected set's, but for sampling.
        effective_directions: (sum of weights)^2 / sum of squared weights of the directions; the
            relative error of the volume is about its square root's inverse.
        capped: share of directions that reached the end of the search: where it is not 0 and
            there are no balls, the volume may be infinite.
    """

    log_volume: float
    effective_directions: float
    capped: float


def rescaled_layers(first: Any, second: Any, alpha: float | Array) -> tuple[Any, Any]:
    r"""T_alpha: the first layer times alpha, the second over alpha.

    Args:
        first: pytree of the arrays of the first layer.
        second: pytree of the arrays of the second layer.

    Raises:
        UserError: if the scale is a number that is not positive or not finite.

    Source: Theorem 5 of liu2021analyzing.

    Examples:
        >>> [part.tolist() for part in rescaled_layers(jnp.ones(2), jnp.ones(1), 4.0)]
        [[4.0, 4.0], [0.25]]
    """
    if isinstance(alpha, int | float) and not (alpha > 0 and is_finite(alpha)):
        raise UserError(f"alpha = {alpha}: choose a positive finite scale")
    return jax.tree.map(lambda a: alpha * a, first), jax.tree.map(lambda a: a / alpha, second)


def orbit_in_balls(first: Any, second: Any, balls: Balls) -> Balls:
    r"""The scales at which both layers lie in their l2 balls.

    $$\|w_2\|/C_2\le\alpha\le C_1/\|W_1\|$$

    Args:
        first: pytree of the arrays of the first layer, not all zero.
        second: pytree of the arrays of the second layer.
        balls: C_1 and C_2.

    Returns:
        Least and largest scale; the first is above the second where there is none.

    Examples:
        >>> orbit_in_balls(jnp.ones(4), jnp.ones(1), (4.0, 2.0))
        (0.5, 2.0)
    """
    norms = [float(jnp.linalg.norm(ravel_pytree(part)[0])) for part in (first, second)]
    if not (0 < norms[0] < math.inf and norms[1] < math.inf and min(balls) > 0):
        raise UserError(
            f"||W1|| = {norms[0]}, ||w2|| = {norms[1]}, radii {balls}: give a first layer that is "
            "not zero, finite layers and positive radii"
        )
    return norms[1] / balls[1], balls[0] / norms[0]


def orbit_curvature(
    risk: Risk, first: Any, second: Any, alphas: Float[np.ndarray, " k"], *args: Any
) -> Solution[np.ndarray]:
    r"""Largest eigenvalue of the Hessian at T_alpha (W1, w2), for each alpha.

    Args:
        risk: scalar function risk(first, second, *args).
        first: pytree of the arrays of the first layer.
        second: pytree of the arrays of the second layer.

    Returns:
        One eigenvalue a scale, with the certificate of `hessian_spectra`.

    Raises:
        UserError: if there is no scale, or one is not positive or not finite.

    Examples:
        >>> found = orbit_curvature(
        ...     lambda a, b: (a[0] * b[0] - 1) ** 2 / 2, jnp.ones(1), jnp.ones(1),
        ...     np.array([1.0, 0.1]))
        >>> print(np.round(found.unwrap(), 6).tolist())  # alpha^2 + alpha^-2
        [2.0, 100.01]
    """
    checked = np.asarray(alphas)
    if checked.size < 1 or not np.all(np.isfinite(checked) & (checked > 0)):
        raise UserError(f"alphas = {checked.tolist()}: give at least one, all positive and finite")
    scales = jnp.asarray(alphas)
    stack = jax.vmap(rescaled_layers, in_axes=(None, None, 0))(first, second, scales)
    spectra = hessian_spectra(_Joined(risk), stack, *args)
    return Solution(spectra.value[:, -1], spectra.result, spectra.certificate, spectra.stats)


def orbit_extent(
    risk: Risk, first: Any, second: Any, *args: Any, epsilon: float, most: float = 1e6
) -> Balls:
    r"""Range of alpha for which the orbit stays in the set where the risk is at most L + epsilon.

    Args:
        risk: scalar function risk(first, second, *args).
        first: pytree of the arrays of the first layer.
        second: pytree of the arrays of the second layer.
        epsilon: rise of the risk allowed, positive.
        most: largest scale tried, above 1, and the inverse of the least.

    Returns:
        Least and largest alpha; 0 and infinity where the risk stays below all the way.

    Examples:
        >>> same = lambda a, b: (a[0] * b[0]) ** 2
        >>> orbit_extent(same, jnp.ones(1), jnp.ones(1), epsilon=0.1)
        (0.0, inf)
    """
    _require_search(epsilon, most - 1)
    longest = math.log(most)
    (low, level), (high, _) = (
        _orbit_exit(risk, first, second, args, jnp.asarray([epsilon, sign, longest])).tolist()
        for sign in (-1.0, 1.0)
    )
    _require_level(level)
    return (
        math.exp(-low) if low < longest else 0.0,
        math.exp(high) if high < longest else math.inf,
    )


def flat_volume(
    risk: Risk,
    first: Any,
    second: Any,
    *args: Any,
    epsilon: float,
    key: PRNGKeyArray,
    balls: Balls | None = None,
    alpha: float = 1.0,
    directions: int = 2000,
    longest: float = 1e3,
) -> FlatVolume:
    r"""Volume of {theta + r v : the risk is at most L + epsilon on the whole segment}.

    $$|\det T_\alpha|\,\frac{\pi^{P/2}}{\Gamma(P/2+1)}\,E\,r(u)^P$$

    over uniform u, r(u) the largest r for which theta + r' T_alpha u stays in the set for
    r' <= r. The variance grows with the number P of parameters: for tiny networks.

    Args:
        risk: scalar function risk(first, second, *args).
        first: pytree of the arrays of the first layer.
        second: pytree of the arrays of the second layer.
        epsilon: rise of the risk allowed.
        balls: C_1 and C_2, radii beyond which the layers may not go; none when None.
        alpha: stretch of the directions. At T_alpha theta the same draws as at theta with
            alpha = 1 show the volume to be alpha^(P1 - P2) times as large.
        longest: longest ray, in units of T_alpha u.

    Returns:
        The volume. A centre outside the balls or of a risk that is not finite is refused.

    Source: Definition 1 and Theorem 5 of liu2021analyzing.

    Examples:
        >>> bowl = lambda a, b: jnp.sum(a**2) + jnp.sum(b**2)
        >>> zero, key = jnp.zeros(1), jax.random.key(0)
        >>> found = flat_volume(bowl, zero, zero, epsilon=4.0, key=key)
        >>> print(f"{math.exp(found.log_volume):.4f}")  # a disc of radius 2
        12.5664
    """
    layers = [ravel_pytree(part)[0] for part in (first, second)]
    _require_search(epsilon, min(longest, float(directions), alpha))
    _require_inside(layers, balls)
    size, dtype = sum(part.size for part in layers), layers[0].dtype
    draws = generator(key).standard_normal((directions, size))
    draws = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    draws[:, : layers[0].size] *= alpha
    draws[:, layers[0].size :] /= alpha
    settings = jnp.asarray([epsilon, longest, *(balls or (math.inf, math.inf))], dtype)
    exits = _ray_exits(risk, first, second, args, jnp.asarray(draws, dtype), settings)
    _require_level(exits[1])
    radii = np.asarray(exits[0], float)
    stretch = (layers[0].size - layers[1].size) * math.log(alpha)
    log_mean, effective = _mean_power(radii, size)
    ball = size / 2 * math.log(math.pi) - math.lgamma(size / 2 + 1)
    return FlatVolume(stretch + ball + log_mean, effective, float(np.mean(radii >= longest)))


def _mean_power(radii: np.ndarray, size: int) -> tuple[float, float]:
    """Logarithm of the mean of r^P, and the effective number of its terms."""
    powers = size * np.log(np.maximum(radii, np.finfo(float).tiny))
    weights = np.exp(powers - powers.max())
    effective = float(weights.sum() ** 2 / np.sum(weights**2))
    return float(powers.max() + np.log(weights.mean())), effective


class _Joined(eqx.Module):
    """The risk as a function of one pair; equal risks make equal programs."""

    risk: Risk = eqx.field(static=True)

    def __call__(self, layers: tuple[Any, Any], *args: Any) -> Array:
        return self.risk(*layers, *args)


@eqx.filter_jit
def _orbit_exit(
    risk: Risk, first: Any, second: Any, args: tuple[Any, ...], settings: Float[Array, " 3"]
) -> Float[Array, " 2"]:
    level = risk(first, second, *args) + settings[0]

    def outside(r: Array) -> Array:
        return ~(risk(*rescaled_layers(first, second, jnp.exp(settings[1] * r)), *args) <= level)

    return jnp.stack([_first_exit(outside, settings[2]), level])


@eqx.filter_jit
def _ray_exits(
    risk: Risk,
    first: Any,
    second: Any,
    args: tuple[Any, ...],
    rays: Float[Array, "k P"],
    settings: Float[Array, " 4"],
) -> tuple[Float[Array, " k"], Float[Array, ""]]:
    centre, unravel = ravel_pytree((first, second))
    count = ravel_pytree(first)[0].size
    level = risk(first, second, *args) + settings[0]

    def exit_of(ray: Array) -> Array:
        def outside(r: Array) -> Array:
            point = centre + r * ray
            left = ~(risk(*unravel(point), *args) <= level)
            left = left | (jnp.linalg.norm(point[:count]) > settings[2])
            return left | (jnp.linalg.norm(point[count:]) > settings[3])

        return _first_exit(outside, settings[1])

    return jax.lax.map(exit_of, rays, batch_size=256), level


def _first_exit(outside: Callable[[Array], Array], longest: Array) -> Array:
    """Least r at which a ray leaves the set, `longest` where it does not."""
    octaves = jnp.arange(1 - _RADII, 1).astype(longest.dtype) / 2
    grid = longest * 2.0**octaves
    left = jax.vmap(outside)(grid)
    index = jnp.argmax(left)
    inner = jnp.where(index > 0, grid[jnp.maximum(index - 1, 0)], 0.0)

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (ends[0] + ends[1]) / 2
        out = outside(middle)
        return jnp.where(out, ends[0], middle), jnp.where(out, middle, ends[1])

    ends = jax.lax.fori_loop(0, _HALVINGS, halve, (inner, grid[index]))
    return jnp.where(jnp.any(left), ends[0], longest)


def _require_search(epsilon: float, room: float) -> None:
    if not (epsilon > 0 and room > 0):
        raise UserError(
            f"epsilon = {epsilon}: choose a positive rise, a largest scale above 1, a positive "
            "longest ray and stretch, and at least one direction"
        )


def _require_inside(layers: list[Array], balls: Balls | None) -> None:
    for part, radius in zip(layers, balls or (math.inf, math.inf), strict=True):
        size = float(np.linalg.norm(np.asarray(part)))
        # A centre on its sphere may be outside by the rounding of its own norm.
        if not size <= radius * (1 + part.size * float(jnp.finfo(part.dtype).eps)):
            raise UserError(f"a layer of norm {size} in a ball of radius {radius}: start inside")


def _require_level(level: Any) -> None:
    if not math.isfinite(float(level)):
        raise UserError(f"the risk at the centre is {float(level)}: it must be finite")
